"""Scores of detokenised text, from sacrebleu's own statistics of a sentence.

sacrebleu gives those of a sentence only through methods that it does not document:
`_preprocess_segment`, `_extract_reference_info`, `_compute_segment_statistics`. They are called here
and nowhere else.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from sacrebleu.metrics.base import Metric

from nmt.evaluation.scores.base import Record, Score

REMEMBERED = 1 << 14  # references whose n-grams are kept: runs on one test set share them


class TextScore(Score):
    """A metric of sacrebleu; sentences without the reference as the file has it are left out."""

    slow = True

    @abstractmethod
    def metric(self) -> Metric:
        """sacrebleu's object."""

    @cached_property
    def _metric(self) -> Metric:
        metric = self.metric()
        metric.num_refs = 1  # part of the signature, which scoring a corpus would set
        return metric

    @cached_property
    def _reference(self) -> Any:
        return lru_cache(maxsize=REMEMBERED)(self._count)

    def _count(self, reference: str) -> Mapping[str, Any]:
        return self._metric._extract_reference_info([self._metric._preprocess_segment(reference)])

    def statistics(self, record: Record) -> Sequence[float] | None:
        reference = record.get("raw_reference")
        if reference is None:
            return None
        hypothesis = self._metric._preprocess_segment(record["detokenised"])
        found: list[float] = self._metric._compute_segment_statistics(
            hypothesis, self._reference(reference)
        )
        return found

    @property
    def signature(self) -> str:
        return str(self._metric.get_signature())
