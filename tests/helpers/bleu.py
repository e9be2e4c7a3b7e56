"""Random sentence pairs with the special cases of BLEU, such as empty hypotheses, and their BLEU."""

import numpy as np
from sacrebleu.metrics import BLEU

Corpus = list[tuple[list[str], list[str]]]


def corpus(sentences: int, seed: int = 0, longest: int = 70, quality: float = 0.8) -> Corpus:
    """Returns (hypothesis, reference) pairs. A hypothesis has each word of its reference with
    probability `quality`, else a random one; then the words are rotated, and up to two are dropped.
    One hypothesis in ten is empty, and one in ten has no word of its reference."""
    generator = np.random.default_rng(seed)
    pairs = []
    for number in range(sentences):
        length = int(generator.integers(1, longest + 1))
        reference = [f"w{word}" for word in generator.zipf(1.5, size=length) % 500]
        if number % 10 == 3:
            hypothesis = []
        elif number % 10 == 7:
            hypothesis = ["x"] * int(generator.integers(1, length + 4))
        else:
            kept = generator.random(length) < quality
            hypothesis = [
                word if keep else f"w{generator.integers(500)}"
                for word, keep in zip(reference, kept, strict=True)
            ]
            start = int(generator.integers(length))
            hypothesis = hypothesis[start:] + hypothesis[: max(0, start - 2)]
        pairs.append((hypothesis, reference))
    return pairs


def sacrebleu(pairs):
    """Returns sacrebleu's score of tokenised (hypothesis, reference) pairs."""
    hypotheses, references = (
        [" ".join(tokens) for tokens in side] for side in zip(*pairs, strict=True)
    )
    return BLEU(tokenize="none", force=True).corpus_score(hypotheses, [references])


def bleu_by_hand(sums, **options):
    """Computes BLEU with sacrebleu's formula from the ten statistics, summed over sentences."""
    counts = [int(count) for count in sums]
    return BLEU.compute_bleu(
        counts[:4], counts[4:8], *counts[8:], smooth_method="exp", **options
    ).score
