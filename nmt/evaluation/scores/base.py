"""`Score`: additive statistics of a sentence, and a formula of their sums.

Legend: F statistics of a sentence; ... any leading axes (resamples, runs, buckets).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from nmt.utils.errors import InputError

Record = Mapping[str, Any]  # a sentence, see nmt.evaluation.records


class Score(ABC):
    """A score of any set of sentences, made of statistics that are summed over them.

    Attributes:
        key: in results.json, tables, pages and W&B.
        title: for people.
        unit: of its values, such as `nats`; empty: a share or a plain number; `ratio`: near 1.
        digits: decimals that are shown.
        higher_is_better: None where neither way is.
        by_length: whether it is also given for each length bucket.
        default: whether it is chosen where nothing else is asked for.
        slow: whether its statistics take long: they are kept in the records (`statistics`), and
            those of records without them are computed only where the score is named.
        only_kept: whether its statistics can be made only while a set is tested, and are kept in the
            records where `evaluation.scores` names it; `statistics` then gives None.
        needs_attention: whether models without attention have none of it.
        section: the object of a test set's results that holds it; empty: the test set's own.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str] = ""
    digits: ClassVar[int] = 2
    higher_is_better: ClassVar[bool | None] = True
    by_length: ClassVar[bool] = True
    default: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    only_kept: ClassVar[bool] = False
    needs_attention: ClassVar[bool] = False
    section: ClassVar[str] = ""

    @abstractmethod
    def statistics(self, record: Record) -> Sequence[float] | None:
        """F numbers of a sentence; None of one that the score says nothing about."""

    @abstractmethod
    def combine(self, sums: np.ndarray) -> np.ndarray:
        """Sums of statistics (..., F) -> the score (...) float64; NaN where it is undefined."""

    @property
    def signature(self) -> str | None:
        """How it was computed, where there is a standard way to say so (sacrebleu's)."""
        return None

    def description(self) -> dict[str, Any]:
        """What a page needs to show the score without its code: its entry of results.json."""
        return {
            "title": self.title,
            "unit": self.unit,
            "digits": self.digits,
            "higher_is_better": self.higher_is_better,
            "by_length": self.by_length,
        }

    def table(self, records: Iterable[Record], *, compute: bool = True) -> np.ndarray:
        """The statistics of N sentences: (N, F) float64; a row of NaN where there are none.

        Args:
            compute: whether statistics that the records do not hold are computed.

        Raises:
            InputError: as `checked`, or where sentences have different numbers of statistics.
        """
        rows, width = [], None
        for record in records:
            row = self._row(record, compute)
            rows.append(row)
            if row is not None:
                width = len(row) if width is None else width
                if len(row) != width:
                    raise self._refusal(
                        record, f"{len(row)} statistics, where other sentences have {width}"
                    )
        width = width or 1
        empty = [np.nan] * width
        found = [empty if row is None else row for row in rows]
        return np.array(found, dtype=np.float64).reshape(len(found), width)

    def _row(self, record: Record, compute: bool) -> Sequence[float] | None:
        stored: Mapping[str, Sequence[float]] = record.get("statistics") or {}
        if self.key in stored:
            return stored[self.key]
        compute = compute and not record.get("without_text")
        return self.checked(record) if compute else None

    def checked(self, record: Record) -> list[float] | None:
        """The `statistics` of a sentence.

        Raises:
            InputError: where they raise, or are not a row of numbers; naming score and sentence.
        """
        try:
            found = self.statistics(record)
            if found is None:
                return None
            row = np.asarray(found)
            if row.dtype.kind not in "iuf":
                row = row.astype(np.float64)
        except Exception as error:
            raise self._refusal(record, _reason(error)) from error
        if row.ndim != 1 or not row.size:
            raise self._refusal(record, "its statistics are not a list of numbers")
        numbers: list[float] = row.tolist()
        return numbers

    def values(self, sums: np.ndarray) -> np.ndarray:
        """What `combine` makes of sums; raises InputError where it raises or omits some."""
        try:
            found = np.asarray(self.combine(sums), dtype=np.float64)
        except Exception as error:
            raise InputError(f"scores: {self._name}: combine: {_reason(error)}") from error
        if found.shape != sums.shape[:-1]:
            raise InputError(
                f"scores: {self._name}: combine: values of shape {found.shape}, not "
                f"{sums.shape[:-1]}, for sums of shape {sums.shape}"
            )
        return found

    @property
    def _name(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}"

    def _refusal(self, record: Record, wrong: str) -> InputError:
        return InputError(f"scores: {self._name}: sentence {record.get('id')}: {wrong}")


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


class Ratio(Score):
    """A score that is the sum of the first statistics by that of the second."""

    def combine(self, sums: np.ndarray) -> np.ndarray:
        return quotient(sums[..., 0], sums[..., 1])


def quotient(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below; NaN where `below` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below != 0, above / below, np.nan)
