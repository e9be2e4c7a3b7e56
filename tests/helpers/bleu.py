"""Random sentence pairs with the special cases of BLEU, such as empty hypotheses, and their BLEU."""

import numpy as np
from sacrebleu.metrics import BLEU

Corpus = list[tuple[list[str], list[str]]]


def corpus(sentences: int, seed: int = 0, longest: int = 70, quality: float = 0.8) -> Corpus:
    """Returns (hypothesis, reference) pairs.

    A hypothesis copies its reference, but a random word replaces each word with probability 1 - `quality`.
    Then the words are rotated, and up to two are dropped. One hypothesis in ten is empty, and one in ten has
    no word of its reference.
    """
    draw = np.random.default_rng(seed)
    pairs = []
    for number in range(sentences):
        length = int(draw.integers(1, longest + 1))
        reference = [f"w{word}" for word in draw.zipf(1.5, size=length) % 500]
        kept = draw.random(length) < quality
        words = np.where(kept, reference, [f"w{word}" for word in draw.integers(500, size=length)])
        start = int(draw.integers(length))
        hypothesis = [*words[start:].tolist(), *words[: max(0, start - 2)].tolist()]
        if number % 10 == 3:
            hypothesis = []
        if number % 10 == 7:
            hypothesis = ["x"] * int(draw.integers(1, length + 4))
        pairs.append((hypothesis, reference))
    return pairs


def sacrebleu(pairs):
    """Returns sacrebleu's score of tokenised (hypothesis, reference) pairs."""
    hypotheses, references = (
        [" ".join(tokens) for tokens in side] for side in zip(*pairs, strict=True)
    )
    return BLEU(tokenize="none", force=True).corpus_score(hypotheses, [references])


def bleu_by_hand(sums, **options):
    """Computes BLEU with sacrebleu's formula from sums of n-gram matches, n-gram totals and lengths."""
    counts = [int(count) for count in sums]
    return BLEU.compute_bleu(
        counts[:4], counts[4:8], *counts[8:], smooth_method="exp", **options
    ).score
