"""What every score is: statistics of a sentence, and a formula of their sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from nmt.utils.errors import InputError

Record = Mapping[str, Any]  # a sentence, see nmt.evaluation.records


class Score(ABC):
    """A score of any set of sentences, made of statistics that are summed over them.

    Attributes:
        key: in scores.csv, tables, pages and W&B.
        title: for people.
        unit: of its values, such as `nats`; empty: a share or a plain number; `ratio`: near 1.
        digits: decimals that are shown.
        higher_is_better: None where neither way is.
        by_length: whether it is also given for each length bucket.
        default: whether it is chosen where nothing else is asked for.
        slow: whether its statistics take long. They are kept in the records, and computed for records
            without them only where the score is named.
        field: of the record, that has the statistics; for scores that do not compute them.
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
        """F numbers of a sentence; None of one that the score says nothing about."""
        return record.get(self.field)

    @abstractmethod
    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Sums of statistics (..., F) -> the score (...) float64; NaN where it is undefined."""

    def enough(self, sums: np.ndarray) -> np.ndarray:
        """Whether sums (..., F) are of enough events for a curve over length: (...) bool."""
        return np.ones(sums.shape[:-1], dtype=bool)

    def curve(self, sums: np.ndarray) -> np.ndarray:
        """The score of sums (1 + R, G, F), of the sentences and of resamples: (1 + R, G).

        NaN at the lengths at which the sentences have too few events.
        """
        return np.where(self.enough(sums[0]), self.combine(sums), np.nan)

    def for_language(self, language: str | None) -> Self:
        """The score of text in this target language; the same for scores that do not depend on it."""
        return self

    @property
    def signature(self) -> str | None:
        """How it was computed, where there is a standard way to say so (sacrebleu's)."""
        return None

    def description(self) -> dict[str, Any]:
        """What is needed to show the score without its code: its entry of results.json."""
        names = ["title", "unit", "digits", "higher_is_better", "by_length"]
        names += [] if self.signature is None else ["signature"]
        return {name: getattr(self, name) for name in names}

    def table(self, records: Iterable[Record], *, compute: bool = True) -> np.ndarray:
        """The statistics of N sentences: (N, F) float64; a row of NaN where there are none.

        Args:
            compute: whether statistics that the records do not hold are computed.

        Raises:
            InputError: where sentences have different numbers of statistics.
        """
        rows = []
        for record in records:
            stored = (record.get("statistics") or {}).get(self.key)
            rows.append(self.statistics(record) if stored is None and compute else stored)
        widths = {len(row) for row in rows if row is not None} or {1}
        if len(widths) > 1:
            raise InputError(f"{self.key}: sentences have {sorted(widths)} statistics")
        table = np.full((len(rows), widths.pop()), np.nan)
        for place, row in enumerate(rows):
            if row is not None:
                table[place] = row
        return table


class Ratio(Score):
    """A score that is the sum of the statistic at `above` by that of the one at `below`."""

    above: ClassVar[int] = 0
    below: ClassVar[int] = 1

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(sums[..., self.above], sums[..., self.below])


def quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below; NaN where `below` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below != 0, above / below, np.nan)
