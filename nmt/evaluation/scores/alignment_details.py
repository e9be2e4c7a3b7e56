"""A closer look at alignment; off unless named in `evaluation.scores`.

The statistics are made while the attention is there, and kept in the records.
"""

from __future__ import annotations

from collections.abc import Sequence

from nmt.evaluation.scores.alignment import ErrorRate
from nmt.evaluation.scores.base import Record
from nmt.evaluation.word_classes import CLASSES

SHIFTS = {"aer_shift_minus_1": -1, "aer_shift_plus_1": 1}
OF_CLASSES = {f"aer_{name}": name for name in CLASSES}


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
