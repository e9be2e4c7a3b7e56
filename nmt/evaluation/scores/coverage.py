"""Share of source words left unread, and of repeated n-grams; off by default.

The statistics of unread words need the attention: they are computed while a set is tested, and
stored in the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from nmt.evaluation.coverage import NGRAM, repeated_ngrams
from nmt.evaluation.scores.base import Ratio, Record

UNREAD = "unread_words"


class _Fault(Ratio):
    """A share of what should not be there."""

    digits = 3
    higher_is_better: ClassVar[bool | None] = False
    default = False


class UnreadWords(_Fault):
    """Share of the source words whose attention, over the target words as expected, stays low."""

    key = UNREAD
    title = "Source words left unread"
    needs_attention = True
    only_kept = True

    def statistics(self, record: Record) -> Sequence[float] | None:
        return None


class RepeatedNgrams(_Fault):
    """Share of the n-grams written that repeat another, more often than in the reference."""

    key = "repeated_ngrams"
    title = f"Repeated {NGRAM}-grams"

    def statistics(self, record: Record) -> Sequence[float] | None:
        return repeated_ngrams(record["hypothesis"], record["reference"])
