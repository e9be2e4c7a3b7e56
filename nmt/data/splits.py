"""Encoded pairs by number: training pairs (`Train`), development and test pairs (`HeldOut`)."""

from __future__ import annotations

import bisect
import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.data.batch import Batch, collate
from nmt.data.vocabulary import Vocabulary

Array = npt.NDArray[Any]


class Split(ABC):
    """Pairs of one split, numbered from 0.

    `split[i]` is a dictionary: `source` and `target` (lists of words), `source_ids` and
    `target_ids` (int arrays, END included), `line` (number of the pair in its corpus, from 0),
    `alignment` (Pharaoh format, or None), and for held-out pairs `source_text` and `target_text`
    (raw).

    Args:
        name: `train`, `valid`, or the name of a test set.
        rows: tokenised pairs as `TokenisedText.rows` has them, or a sequence of such dictionaries.
        source_vocabulary: what encodes the source.
        target_vocabulary: what encodes the target.
    """

    def __init__(
        self,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
    ) -> None:
        self.name = name
        self.rows = rows
        self.source_vocabulary = source_vocabulary
        self.target_vocabulary = target_vocabulary

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, Any]:
        source_ids, target_ids = self.ids(number)  # first, since it refuses a wrong number
        row = dict(self.rows[self._row(number)])
        row["source"], row["target"] = row["source"].split(" "), row["target"].split(" ")
        return {**row, "source_ids": source_ids, "target_ids": target_ids}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[number] for number in range(len(self)))

    @abstractmethod
    def ids(self, number: int) -> tuple[Array, Array]:
        """Ids of source and target of a pair, END included."""

    @property
    @abstractmethod
    def sizes(self) -> Array:
        """(pairs, 2) ids of source and target of every pair, END included."""

    @abstractmethod
    def target_words(self, numbers: Sequence[int] | Array) -> Array:
        """Words of the targets of some pairs, without END."""

    def text(self, number: int) -> tuple[str, str]:
        """Source and target of a pair, words separated by spaces."""
        row = self.rows[self._row(number)]
        return row["source"], row["target"]

    def batch(self, numbers: Sequence[int] | Array, weight: float | None = None) -> Batch:
        """The pairs of these numbers as one batch; `weight` as in `collate`."""
        pairs = [self.ids(int(number)) for number in numbers]
        sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
        words = int(self.target_words(numbers).sum(dtype=np.int64)) + len(pairs)
        return collate(sources, targets, numbers, weight, words)

    def _row(self, number: int) -> int:
        return number


class HeldOut(Split):
    """Pairs a model is measured on: all that the corpus has, encoded when first asked for.

    Args:
        name, rows, source_vocabulary, target_vocabulary: as in `Split`.
        lines: of the corpus, those of pairs with an empty side included.
    """

    def __init__(
        self,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        lines: int,
    ) -> None:
        super().__init__(name, rows, source_vocabulary, target_vocabulary)
        self.lines = lines

    def ids(self, number: int) -> tuple[Array, Array]:
        return self._encoded[number]

    @functools.cached_property
    def sizes(self) -> Array:
        sizes = [(len(source), len(target)) for source, target in self._encoded]
        return np.array(sizes, np.int32).reshape(-1, 2)

    @functools.cached_property
    def words(self) -> Array:
        words = [(row["source_words"], row["target_words"]) for row in self.rows]
        return np.array(words, np.int32).reshape(-1, 2)

    def target_words(self, numbers: Sequence[int] | Array) -> Array:
        return self.words[np.asarray(numbers, np.int64), 1]

    @functools.cached_property
    def _encoded(self) -> list[tuple[Array, Array]]:
        return [
            (
                np.array(self.source_vocabulary.encode(row["source"].split(" ")), np.int32),
                np.array(self.target_vocabulary.encode(row["target"].split(" ")), np.int32),
            )
            for row in self.rows
        ]


class Train(Split):
    """Training pairs that obey the cap on length, read from the memory-mapped encoding.

    Args:
        rows: as in `Split`, all pairs of the corpus.
        source_vocabulary: as in `Split`.
        target_vocabulary: as in `Split`.
        encoded: `datasets.Dataset` of columns `source_ids` and `target_ids`, in step with `rows`.
        lengths: (pairs of the corpus, 4) words of source and target, ids of source and target.
        max_length: longest sentence kept, in words of either side.

    Attributes:
        kept: (pairs,) row of the corpus of every pair.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        source_vocabulary: Vocabulary,
        target_vocabulary: Vocabulary,
        encoded: Any,
        lengths: Array,
        max_length: int,
    ) -> None:
        super().__init__("train", rows, source_vocabulary, target_vocabulary)
        self.max_length = max_length
        self._columns = [IdColumn(encoded, name) for name in ("source_ids", "target_ids")]
        self._lengths = lengths
        short = (lengths[:, 0] <= max_length) & (lengths[:, 1] <= max_length)
        self.kept = np.flatnonzero(short).astype(np.int32)

    def __len__(self) -> int:
        return len(self.kept)

    def ids(self, number: int) -> tuple[Array, Array]:
        row = self._row(number)
        source, target = self._columns
        return source[row], target[row]

    @functools.cached_property
    def sizes(self) -> Array:
        return self._lengths[:, 2:][self.kept]

    def target_words(self, numbers: Sequence[int] | Array) -> Array:
        return self._lengths[self.kept[np.asarray(numbers, np.int64)], 1]

    def _row(self, number: int) -> int:
        return int(self.kept[number])


class IdColumn:
    """A column of id lists in a memory-mapped table, each row a view without a copy.

    Going through `datasets` row by row costs about 50 times as much, which a batch would feel.
    """

    def __init__(self, dataset: Any, name: str) -> None:
        self._dataset, self._name = dataset, name
        chunks = dataset.data.column(name).chunks
        self._starts = np.cumsum([0, *map(len, chunks)]).tolist()
        self._offsets = [chunk.offsets.to_numpy() for chunk in chunks]
        self._values = [chunk.values.to_numpy() for chunk in chunks]

    def __getitem__(self, row: int) -> Array:
        chunk = bisect.bisect_right(self._starts, row) - 1
        place = row - self._starts[chunk]
        offsets = self._offsets[chunk]
        return self._values[chunk][offsets[place] : offsets[place + 1]]

    def __reduce__(self) -> tuple[Any, ...]:
        return IdColumn, (self._dataset, self._name)  # a process that is not forked maps the file
