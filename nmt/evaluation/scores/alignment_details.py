"""A closer look at alignment and coverage; off unless named in `evaluation.scores`.

Their statistics are made while the attention is there, and kept in the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from nmt.evaluation.coverage import NGRAM, repeated_ngrams
from nmt.evaluation.scores.alignment import ErrorRate
from nmt.evaluation.scores.base import Record, Score, quotient
from nmt.evaluation.word_classes import CLASSES

SHIFTS = {"aer_shift_minus_1": -1, "aer_shift_plus_1": 1}
OF_CLASSES = {f"aer_{name}": name for name in CLASSES}
UNREAD = "unread_words"


class DetailedErrorRate(ErrorRate):
    """AER of other links than the model's own, or of some target words."""

    default = False

    def __init__(self, key: str, title: str) -> None:
        self.key, self.title = key, title  # type: ignore[misc]  # one class for several scores

    def statistics(self, record: Record) -> Sequence[float] | None:
        return None  # only where they are kept


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


class _Fault(Score):
    """A share of what should not be there."""

    digits = 3
    higher_is_better: ClassVar[bool | None] = False
    default = False

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(sums[..., 0], sums[..., 1])


class UnreadWords(_Fault):
    """Share of the source words whose attention, over all target words written, stays low."""

    key = UNREAD
    title = "Source words left unread"

    def statistics(self, record: Record) -> Sequence[float] | None:
        return None  # only where they are kept


class RepeatedNgrams(_Fault):
    """Share of the n-grams written that repeat another, more often than in the reference."""

    key = "repeated_ngrams"
    title = f"Repeated {NGRAM}-grams"

    def statistics(self, record: Record) -> Sequence[float] | None:
        return repeated_ngrams(record["hypothesis"], record["reference"])
