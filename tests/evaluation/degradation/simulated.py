"""Records of a made-up run whose BLEU over length is known: words go wrong independently."""

from typing import Any

import numpy as np

from nmt.evaluation.bleu import ORDERS


def simulated_run(
    sentences: int, *, seed: int, right: float = 0.9, fall: float = 0.0, cap: int = 50
) -> list[dict[str, Any]]:
    """Records of sentences of 1 to 70 words, the same lengths for every seed.

    Args:
        seed: of the words that go wrong.
        right: probability of a right word.
        fall: what this loses for each word of the sentence beyond `cap`.
    """
    lengths = np.random.default_rng(11).integers(1, 71, sentences).tolist()
    draw = np.random.default_rng(seed)
    rows = []
    for number, length in enumerate(lengths):
        words = draw.random(length) < right - fall * max(0, length - cap)
        runs = [
            np.lib.stride_tricks.sliding_window_view(words, n).all(axis=1).sum()
            if length >= n
            else 0
            for n in range(1, ORDERS + 1)
        ]
        total = [max(0, length - n) for n in range(ORDERS)]
        statistics = [*map(int, runs), *total, length, length]
        record = {"id": number, "length": length, "bleu_stats": statistics}
        rows.append(record | {"reference": ["w"] * length, "nll": float(length) / right})
    return rows
