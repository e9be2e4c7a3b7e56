"""TER (Snover et al., 2006): edits a word of the reference, shifts of phrases among them.

Slow on long bad hypotheses, hence off unless asked for.
"""

from __future__ import annotations

import numpy as np
from sacrebleu.metrics import TER

from nmt.evaluation.scores.text import TextScore


class Ter(TextScore):
    """The statistics are edits and words of the reference."""

    key = "ter"
    title = "TER"
    unit = "points"
    higher_is_better = False
    default = False

    def metric(self) -> TER:
        return TER()

    def combine(self, sums: np.ndarray) -> np.ndarray:
        edits, words = sums[..., 0], sums[..., 1]
        without_words = np.where(edits > 0, 1.0, 0.0)
        return 100 * np.where(words > 0, edits / np.where(words > 0, words, 1), without_words)
