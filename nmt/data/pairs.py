"""`Pairs`: the encoded sentence pairs of one split, by number."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nmt.data.batch import Batch, collate
from nmt.data.sources import SIDES
from nmt.data.vocabulary import UNKNOWN, Vocabularies

Array = npt.NDArray[Any]

IDS = {side: f"{side}_ids" for side in SIDES}  # columns that `encode` adds


class Pairs:
    """The pairs of one split, numbered from 0.

    `pairs[i]` is a dictionary: `source` and `target` (lists of words), `source_ids` and
    `target_ids` (int arrays, END included), and the other columns of the rows: `line` (number of the
    pair in its source, from 0), `alignment` (Pharaoh format, or None), and, but for training pairs,
    `target_text` (raw).

    Args:
        name: `train`, `valid`, or the name of a test set.
        rows: tokenised pairs (`nmt.data.prepare`) with their ids (`encode`), which may be
            memory-mapped.
        vocabularies: that source and target are encoded with.
        counts: of the text, before long pairs are left out: `empty` (pairs that are not among the
            rows), words of each side and the share that is `<unk>`; of training text also the pairs
            that each filter dropped, and the distinct words of each side if they were counted.
        fingerprint: changes when a row could.
        max_words: leave out pairs with a longer side; None: keep all.

    Attributes:
        counts: with `pairs` (kept) and `too_long` (left out) before the others.
        kept: (pairs,) numbers of the rows that are pairs of the split.
        words: (pairs, 2) words of source and target, without END.
        sizes: (pairs, 2) ids of source and target, END included.
    """

    def __init__(
        self,
        name: str,
        rows: pa.Table,
        vocabularies: Vocabularies,
        counts: Mapping[str, Any],
        fingerprint: str,
        max_words: int | None = None,
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.source_vocabulary, self.target_vocabulary = vocabularies
        self._batches = rows.to_batches()
        self._starts = np.cumsum([0, *map(len, self._batches)]).tolist()
        # views without a copy; through pyarrow, each row would take many times as long
        self._ids = [
            [
                (ids.offsets.to_numpy(), ids.values.to_numpy())
                for ids in map(batch.column, IDS.values())
            ]
            for batch in self._batches
        ]
        words = np.stack([rows.column(f"{side}_words").to_numpy() for side in SIDES], axis=1)
        fitting = slice(None) if max_words is None else words.max(axis=1) <= max_words
        self.kept = np.arange(len(rows), dtype=np.int32)[fitting]
        self.words = words[self.kept]
        sizes = [[np.diff(offsets) for offsets, _ in ids] for ids in self._ids]
        self.sizes = np.concatenate([np.stack(each, axis=1) for each in sizes])[self.kept]
        kept, too_long = len(self.kept), len(rows) - len(self.kept)
        self.counts = {"pairs": kept, "too_long": too_long, **counts}

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, number: int) -> dict[str, Any]:
        batch, place = self._find(number)
        row: dict[str, Any] = self._batches[batch].slice(place, 1).to_pylist()[0]
        source_ids, target_ids = self.ids(number)
        row["source"], row["target"] = row["source"].split(" "), row["target"].split(" ")
        return {**row, "source_ids": source_ids, "target_ids": target_ids}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.__getitem__, range(len(self)))

    def ids(self, number: int) -> tuple[Array, Array]:
        """Ids of source and target of a pair, END included."""
        batch, place = self._find(number)
        source, target = (ids[at[place] : at[place + 1]] for at, ids in self._ids[batch])
        return source, target

    def text(self, number: int) -> tuple[str, str]:
        """Source and target of a pair, words separated by spaces."""
        batch, place = self._find(number)
        source, target = (self._batches[batch].column(side)[place].as_py() for side in SIDES)
        return source, target

    def batch(self, numbers: Sequence[int] | Array, weight: float | None = None) -> Batch:
        """The pairs of these numbers as one batch; `weight` as in `collate`."""
        numbers = np.asarray(numbers, np.int64)
        ids = [self.ids(number) for number in numbers]
        words = int(self.words[numbers, 1].sum(dtype=np.int64)) + len(ids)
        return collate([s for s, _ in ids], [t for _, t in ids], numbers, weight, words)

    def _find(self, number: int) -> tuple[int, int]:
        """The record batch that holds a pair, and the pair's place in it."""
        row = int(self.kept[number])
        batch = bisect.bisect_right(self._starts, row) - 1
        return batch, row - self._starts[batch]


def encode(rows: pa.Table | pa.RecordBatch, vocabularies: Vocabularies) -> Any:
    """The rows with the columns `source_ids` and `target_ids`."""
    for side, vocabulary in zip(SIDES, vocabularies, strict=True):
        ids = [vocabulary.encode(line.split(" ")) for line in rows.column(side).to_pylist()]
        rows = rows.append_column(IDS[side], pa.array(ids, pa.list_(pa.int32())))
    return rows


def count_words(rows: pa.Table) -> dict[str, Any]:
    """Words of each side of encoded rows, and the share of its ids but for END that are UNKNOWN."""
    counts = {}
    for side in SIDES:
        ids = pc.list_flatten(rows.column(IDS[side]))
        unknown = pc.sum(pc.equal(ids, UNKNOWN)).as_py()
        counts[f"{side}_words"] = pc.sum(rows.column(f"{side}_words")).as_py()
        counts[f"{side}_unknown"] = unknown / (len(ids) - len(rows))
    return counts
