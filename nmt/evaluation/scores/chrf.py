"""chrF2 (Popović, 2015): F-score of character n-grams of detokenised text."""

from __future__ import annotations

import numpy as np
from sacrebleu.metrics import CHRF

from nmt.evaluation.scores.base import quotient
from nmt.evaluation.scores.text import TextScore


class ChrF(TextScore):
    """The statistics are n-grams of the hypothesis, of the reference, and shared, an order each."""

    key = "chrf"
    title = "chrF"
    unit = "points"

    def metric(self) -> CHRF:
        return CHRF()

    def combine(self, sums: np.ndarray) -> np.ndarray:
        hypothesis, reference, shared = sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
        both = (hypothesis > 0) & (reference > 0)  # orders that count
        orders = both.sum(axis=-1)
        precision = np.where(both, quotient(shared, hypothesis), 0.0)
        recall = np.where(both, quotient(shared, reference), 0.0)
        p = precision.sum(axis=-1) / np.maximum(orders, 1)
        r = recall.sum(axis=-1) / np.maximum(orders, 1)
        weight = CHRF.BETA**2
        return 100 * np.nan_to_num(quotient((1 + weight) * p * r, weight * p + r), nan=0.0)
