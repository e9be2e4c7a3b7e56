"""Links read from the attention against gold links: alignment error rate, precision, recall.

The statistics are the six counts of `nmt.evaluation.alignment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nmt.evaluation.alignment import COUNTS, error_rates
from nmt.evaluation.scores.base import Record, Score, quotient


class ErrorRate(Score):
    """Alignment error rate (Och and Ney, 2003), 0 to 1."""

    key = "alignment_error_rate"
    title = "Alignment error rate"
    digits = 3
    higher_is_better: ClassVar[bool | None] = False

    def statistics(self, record: Record) -> Sequence[float] | None:
        return record.get("alignment_counts")

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return error_rates(sums)


class _Share(ErrorRate):
    """One count as a share of another."""

    higher_is_better: ClassVar[bool | None] = True
    counted: str
    of: str

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(sums[..., COUNTS.index(self.counted)], sums[..., COUNTS.index(self.of)])


class Precision(_Share):
    """|A∩P| / |A|."""

    key = "precision"
    title = "Alignment precision"
    counted, of = "hits_possible", "links"


class Recall(_Share):
    """|A∩S| / |S|."""

    key = "recall"
    title = "Alignment recall"
    counted, of = "hits_sure", "sure"


class EosShare(_Share):
    """Share of target words whose largest weight is on the source `</s>`."""

    key = "eos_share"
    title = "Words that attend most to </s>"
    higher_is_better = None
    counted, of = "on_eos", "words"
