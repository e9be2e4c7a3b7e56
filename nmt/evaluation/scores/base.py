"""The base class of scores, which sum statistics over sentences and apply a formula to the sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

Sentence = Mapping[str, Any]  # a record of `nmt.evaluation.records`, which scores only read


class Score(ABC):
    """A score of a set of sentences, computed from statistics that are summed over the sentences.

    Attributes:
        key: name in scores.csv, tables, pages and W&B.
        title: name to display.
        unit: unit of the values, such as `nats`; `ratio` for numbers near 1; empty for shares and plain numbers.
        digits: number of decimals to show.
        higher_is_better: None if neither direction is better.
        best, worst: the best and the worst possible value; None if unknown or unlimited. Nothing is left of the
            quality at the worst value, so a score has a retention only if this value is known.
        by_length: whether the score is also computed for each length bucket.
        default: whether the score is on by default.
        slow: whether the statistics are slow to compute. Such statistics are stored in the records. If they
            are missing in a run, they are computed only if the user names the score. If they are missing for
            another system, they are always computed.
        field: key of the statistics in records, for scores that do not override `statistics`.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str] = ""
    digits: ClassVar[int] = 2
    higher_is_better: ClassVar[bool | None] = True
    best: ClassVar[float | None] = None
    worst: ClassVar[float | None] = None
    by_length: ClassVar[bool] = True
    default: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    field: ClassVar[str] = ""

    def statistics(self, record: Sentence) -> Sequence[float] | None:
        """Returns the F statistics of a sentence, or None if the score does not apply to it."""
        return record.get(self.field)

    def all_statistics(self, records: Sequence[Sentence]) -> Sequence[Sequence[float] | None]:
        """Returns the `statistics` of each sentence."""
        return [self.statistics(record) for record in records]

    @abstractmethod
    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Computes the score from summed statistics, (..., F) -> (...) float64; NaN if undefined."""

    def enough(self, sums: np.ndarray) -> np.ndarray:
        """Tells whether summed statistics suffice for a length curve: (..., F) -> (...) bool."""
        return np.ones(sums.shape[:-1], dtype=bool)

    def curve(self, sums: np.ndarray) -> np.ndarray:
        """Computes the scores of all sentences and of R resamples at G lengths: (1 + R, G, F) -> (1 + R, G).

        They are NaN at lengths for which `enough` is false.
        """
        return np.where(self.enough(sums[0]), self.combine(sums), np.nan)

    def for_language(self, language: str | None) -> Self:
        """Returns the score for a target language; returns `self` if the language does not matter."""
        return self

    @property
    def signature(self) -> str | None:
        """The signature of a sacrebleu metric; None for all other scores."""
        return None

    def description(self) -> dict[str, Any]:
        """Returns the entry of the score in results.json, with which reports show the score without its code."""
        names = ["title", "unit", "digits", "higher_is_better", "by_length"]
        names += [] if self.signature is None else ["signature"]
        return {name: getattr(self, name) for name in names}

    def table(self, records: Iterable[Sentence], *, compute: bool = True) -> np.ndarray:
        """Returns the statistics (N, F) of N sentences; the row of a sentence without statistics is NaN.

        Args:
            compute: whether to compute statistics that are missing in the records.

        Raises:
            ValueError: if sentences have different numbers of statistics.
        """
        rows = []
        for record in records:
            stored = (record.get("statistics") or {}).get(self.key)
            rows.append(self.statistics(record) if stored is None and compute else stored)
        width = max((len(row) for row in rows if row is not None), default=1)
        missing = [np.nan] * width
        table = [missing if row is None else row for row in rows]
        return np.array(table, dtype=np.float64).reshape(len(rows), width)


class Ratio(Score):
    """A score that divides one summed statistic (index `above`) by another (index `below`)."""

    above: ClassVar[int] = 0
    below: ClassVar[int] = 1

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(sums[..., self.above], sums[..., self.below])


def quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Returns above / below; NaN where `below` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below != 0, above / below, np.nan)
