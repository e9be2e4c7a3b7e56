"""Predicts source words from the encoder outputs of a trained model, with linear probes.

    python examples/probe.py RUN
    python examples/probe.py RUN --sentences 2000 --positions 20

A probe is a multinomial logistic regression of the word at a position (Alain and Bengio, 2017). Its input is
the vector from which the decoder starts. In RNNencdec, this vector is all that the decoder knows about the
sentence. For comparison, the input of a second probe is the annotation of the position, and a baseline
predicts the most frequent word at the position.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
import torch
from torch import Tensor, nn

import nmt
from nmt import grammar


def fit_probe(vectors: Tensor, words: Tensor, classes: int, steps: int = 200) -> nn.Module:
    """Trains a linear classifier of words (N,) from vectors (N, D), with Adam."""
    torch.manual_seed(0)
    mean = vectors.mean(0)
    deviation = vectors.std(0).clamp_min(1e-6)
    linear = nn.Linear(vectors.shape[1], classes)
    optimizer = torch.optim.Adam(linear.parameters(), lr=0.01, weight_decay=1e-4)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(linear((vectors - mean) / deviation), words).backward()
        optimizer.step()
    with torch.no_grad():  # merges the standardisation into the layer
        linear.weight /= deviation
        linear.bias -= linear.weight @ mean
    return linear


def accuracy(train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor], classes: int) -> float:
    """Trains a probe, and returns the share of test words that it predicts correctly."""
    probe = fit_probe(*train, classes)
    return float((probe(test[0]).argmax(1) == test[1]).float().mean())


def probe(run: str, sentences: int = 2000, positions: int = 20) -> list[dict[str, float]]:
    """Returns, for each position, the accuracies of both probes and of the baseline.

    Args:
        run: a run folder or a checkpoint.
        sentences: number of sentences to train the probes; a quarter as many others test them.
        positions: number of positions to probe, beginning with the first word.
    """
    model = nmt.load(run)
    texts = [
        [" ".join(grammar.draw(1, split, number).source) for number in range(count)]
        for split, count in (("train", sentences), ("valid", max(sentences // 4, 1)))
    ]
    words = [[text.split(" ") for text in split] for split in texts]
    encoded = [model.encode(split, tokenised=True) for split in texts]
    rows = []
    for position in range(positions):
        kept = [[n for n, each in enumerate(split) if len(each) > position] for split in words]
        if min(map(len, kept)) < 2:
            break
        seen = [[words[s][n][position] for n in kept[s]] for s in (0, 1)]
        number = {word: index for index, word in enumerate(dict.fromkeys(seen[0]))}
        labels = [torch.tensor([number.get(word, -1) for word in split]) for split in seen]
        vectors = [
            [torch.from_numpy(np.stack(each)) for each in zip(*pairs, strict=True)]
            for pairs in (
                [(encoded[s][n][1], encoded[s][n][0][position]) for n in kept[s]] for s in (0, 1)
            )
        ]
        frequent = Counter(seen[0]).most_common(1)[0][0]
        summary, annotation = (
            accuracy((vectors[0][kind], labels[0]), (vectors[1][kind], labels[1]), len(number))
            for kind in (0, 1)
        )
        chance = sum(word == frequent for word in seen[1]) / len(seen[1])
        rows.append({"summary": summary, "annotation": annotation, "chance": chance})
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="a run folder or a checkpoint")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--positions", type=int, default=20)
    print("position  vector  annotation  frequent word")
    for place, row in enumerate(probe(**vars(parser.parse_args())), 1):
        print(f"{place:8}  {row['summary']:6.2f}  {row['annotation']:10.2f}  {row['chance']:13.2f}")
