"""The base class of scores: additive statistics of a sentence, and a formula of their sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

Record = Mapping[str, Any]  # record of a sentence (nmt.evaluation.records)


class Score(ABC):
    """A score of any set of sentences, computed from statistics that are summed over these sentences.

    Attributes:
        key: name in scores.csv, tables, pages and W&B.
        title: name for people.
        unit: unit of its values, such as `nats`; empty: a share or a plain number; `ratio`: a number near 1.
        digits: decimals to show.
        higher_is_better: None if neither direction is better.
        by_length: whether it is also computed for each length bucket.
        default: whether it is on by default.
        slow: whether its statistics are slow to compute. Records store these statistics. If the records of
            a run lack them, they are computed only if the user names the score; for systems, always.
        field: key under which records hold the statistics, for scores that do not override `statistics`.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str] = ""
    digits: ClassVar[int] = 2
    higher_is_better: ClassVar[bool | None] = True
    by_length: ClassVar[bool] = True
    default: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    field: ClassVar[str] = ""

    def statistics(self, record: Record) -> Sequence[float] | None:
        """Returns the F statistics of a sentence; None if the score does not apply to it."""
        return record.get(self.field)

    @abstractmethod
    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Computes the score (...) float64 from sums of statistics (..., F); NaN if undefined."""

    def enough(self, sums: np.ndarray) -> np.ndarray:
        """Tells whether sums (..., F) count enough events for a curve over length: (...) bool."""
        return np.ones(sums.shape[:-1], dtype=bool)

    def curve(self, sums: np.ndarray) -> np.ndarray:
        """Computes scores (1 + R, G) from sums (1 + R, G, F) of the sentences and of resamples.

        NaN at lengths where the sentences have too few events.
        """
        return np.where(self.enough(sums[0]), self.combine(sums), np.nan)

    def for_language(self, language: str | None) -> Self:
        """Returns the score for this target language; itself if it does not depend on the language."""
        return self

    @property
    def signature(self) -> str | None:
        """sacrebleu's signature, for scores that have one."""
        return None

    def description(self) -> dict[str, Any]:
        """Returns what is needed to show the score without its code: its entry in results.json."""
        names = ["title", "unit", "digits", "higher_is_better", "by_length"]
        names += [] if self.signature is None else ["signature"]
        return {name: getattr(self, name) for name in names}

    def table(self, records: Iterable[Record], *, compute: bool = True) -> np.ndarray:
        """Returns the statistics of N sentences: (N, F) float64; NaN in the row of a sentence without any.

        Args:
            compute: whether to compute statistics that the records do not store.

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
    """A score that divides the summed statistic at index `above` by that at index `below`."""

    above: ClassVar[int] = 0
    below: ClassVar[int] = 1

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(sums[..., self.above], sums[..., self.below])


def quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Returns above / below; NaN where `below` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below != 0, above / below, np.nan)
