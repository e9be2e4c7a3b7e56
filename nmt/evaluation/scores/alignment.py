"""Links read from the attention against gold links: AER, precision, recall, and AER in more detail.

The statistics are the six counts of `nmt.evaluation.alignment`. Those of the detailed error rates,
which are off by default, are computed from the attention while a set is tested, and stored in the
records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nmt.evaluation.alignment import COUNTS, error_rates
from nmt.evaluation.scores.base import Record, Score, quotient
from nmt.evaluation.word_classes import CLASSES

SHIFTS = {"aer_shift_minus_1": -1, "aer_shift_plus_1": 1}
OF_CLASSES = {f"aer_{name}": name for name in CLASSES}


class ErrorRate(Score):
    """AER (Och and Ney, 2003), 0 to 1."""

    key = "alignment_error_rate"
    title = "Alignment error rate"
    digits = 3
    higher_is_better: ClassVar[bool | None] = False
    needs_attention = True
    section = "alignment"

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


class DetailedErrorRate(ErrorRate):
    """AER of other links than the model's own, or of some target words."""

    default = False
    only_kept = True

    def __init__(self, key: str, title: str) -> None:
        self.key, self.title = key, title  # type: ignore[misc]  # one class for several scores

    def statistics(self, record: Record) -> Sequence[float] | None:
        return None


def detailed_error_rates() -> list[DetailedErrorRate]:
    """AER with the weights of the step before and after, and by class of target word."""
    shifted = [
        DetailedErrorRate(key, f"AER, weights of the step {'after' if shift > 0 else 'before'}")
        for key, shift in SHIFTS.items()
    ]
    return shifted + [
        DetailedErrorRate(key, f"AER, {name}{'' if name == 'punctuation' else ' words'}")
        for key, name in OF_CLASSES.items()
    ]
