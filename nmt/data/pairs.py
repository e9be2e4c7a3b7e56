"""`Pairs`: the encoded sentence pairs of one split, by number."""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.data.batch import Batch, collate
from nmt.data.vocabulary import Vocabularies, Vocabulary

Array = npt.NDArray[Any]


class Pairs:
    """The pairs of one split, numbered from 0.

    `pairs[i]` is a dictionary: `source` and `target` (lists of words), `source_ids` and
    `target_ids` (int arrays, END included), `line` (number of the pair in its source, from 0),
    `alignment` (Pharaoh format, or None), and, but for training pairs, `source_text` and
    `target_text` (raw).

    Args:
        name: `train`, `valid`, or the name of a test set.
        rows: tokenised pairs, one mapping each (`nmt.data.tokenised`).
        vocabularies: that source and target are encoded with.
        ids: source and target of every row as int arrays, END included.
        sizes: (rows, 4) words of source and target, ids of source and target.
        kept: rows that are pairs of the split, in order; by default all.
    """

    def __init__(
        self,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        vocabularies: Vocabularies,
        ids: tuple[Sequence[Array] | IdColumn, Sequence[Array] | IdColumn],
        sizes: Array,
        kept: Array | None = None,
    ) -> None:
        self.name = name
        self.kept = np.arange(len(rows), dtype=np.int32) if kept is None else kept
        self.source_vocabulary, self.target_vocabulary = vocabularies
        self._rows, self._ids, self._sizes = rows, ids, sizes

    @classmethod
    def encode(
        cls, name: str, rows: Sequence[Mapping[str, Any]], source: Vocabulary, target: Vocabulary
    ) -> Pairs:
        """Encodes tokenised pairs in memory."""
        words = [(row["source"].split(" "), row["target"].split(" ")) for row in rows]
        ids = [
            (np.array(source.encode(s), np.int32), np.array(target.encode(t), np.int32))
            for s, t in words
        ]
        sizes = [
            (len(s), len(t), len(x), len(y)) for (s, t), (x, y) in zip(words, ids, strict=True)
        ]
        columns = [s for s, _ in ids], [t for _, t in ids]
        return cls(name, rows, (source, target), columns, np.array(sizes, np.int32).reshape(-1, 4))

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, number: int) -> dict[str, Any]:
        source_ids, target_ids = self.ids(number)
        row = dict(self._rows[int(self.kept[number])])
        row["source"], row["target"] = row["source"].split(" "), row["target"].split(" ")
        return {**row, "source_ids": source_ids, "target_ids": target_ids}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.__getitem__, range(len(self)))

    @functools.cached_property
    def sizes(self) -> Array:
        """(pairs, 2) ids of source and target of every pair, END included."""
        return self._sizes[self.kept, 2:]

    @property
    def words(self) -> Array:
        """(pairs, 2) words of source and target of every pair, without END."""
        return self._sizes[self.kept, :2]

    def ids(self, number: int) -> tuple[Array, Array]:
        """Ids of source and target of a pair, END included."""
        row = int(self.kept[number])
        return self._ids[0][row], self._ids[1][row]

    def text(self, number: int) -> tuple[str, str]:
        """Source and target of a pair, words separated by spaces."""
        row = self._rows[int(self.kept[number])]
        return row["source"], row["target"]

    def batch(self, numbers: Sequence[int] | Array, weight: float | None = None) -> Batch:
        """The pairs of these numbers as one batch; `weight` as in `collate`."""
        numbers = np.asarray(numbers, np.int64)
        ids = [self.ids(number) for number in numbers]
        words = int(self._sizes[self.kept[numbers], 1].sum(dtype=np.int64)) + len(ids)
        return collate([s for s, _ in ids], [t for _, t in ids], numbers, weight, words)


class IdColumn:
    """A column of id lists in a memory-mapped table, each row a view without a copy.

    Going through `datasets` row by row takes about 50 times as long, which a batch would feel.
    """

    def __init__(self, dataset: Any, name: str) -> None:
        self._dataset, self._name = dataset, name
        chunks = dataset.data.column(name).chunks
        self._starts = np.cumsum([0, *map(len, chunks)]).tolist()
        self._offsets = [chunk.offsets.to_numpy() for chunk in chunks]
        self._values = [chunk.values.to_numpy() for chunk in chunks]

    def sizes(self) -> Array:
        """(rows,) number of ids of every row."""
        return np.concatenate([np.diff(offsets) for offsets in self._offsets])

    def __getitem__(self, row: int) -> Array:
        chunk = bisect.bisect_right(self._starts, row) - 1
        place = row - self._starts[chunk]
        offsets = self._offsets[chunk]
        return self._values[chunk][offsets[place] : offsets[place + 1]]

    def __reduce__(self) -> tuple[Any, ...]:
        return IdColumn, (self._dataset, self._name)  # another process maps the file itself
