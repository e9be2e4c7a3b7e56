"""`Pairs`: the encoded sentence pairs of one split, accessible by index."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nmt.data.cache import Stored
from nmt.data.sources import SIDES
from nmt.data.vocabulary import Vocabularies
from nmt.text.symbols import UNKNOWN

if TYPE_CHECKING:
    from nmt.data.batch import Batch

Array = npt.NDArray[Any]

WORDS = [f"{side}_words" for side in SIDES]  # columns with word counts
IDS = {side: f"{side}_ids" for side in SIDES}  # the columns that `encode` adds


class Pairs:
    """The encoded pairs of one split, numbered from 0.

    `pairs[i]` is a dictionary with `source` and `target` (lists of words), and `source_ids` and
    `target_ids` (int arrays, with END). It also has `line` (index of the pair in the original text, from
    0), `alignment` (Pharaoh format, or None) and `target_text` (raw text; None in training pairs).

    Args:
        name: `train`, `valid`, or the name of a test set.
        rows: tokenised pairs with the ids that `encode` adds; may be memory-mapped.
        vocabularies: the vocabularies that encoded source and target.
        counts: statistics of the text, including pairs that are too long. `empty` is the number of pairs
            dropped because a side has no words. The other entries are each side's number of words
            and share of `<unk>`. For training text, there is also, if counted, each side's number of
            distinct words.
        fingerprint: digest of everything that determines the rows.
        max_words: maximum words per side; pairs with a longer side are dropped. None: no maximum.

    Attributes:
        counts: `pairs` (number of kept pairs), `too_long` (dropped pairs), and the entries of the argument `counts`.
        kept: (pairs,) indices of the rows that are kept.
        words: (pairs, 2) numbers of words of source and target, without END.
        sizes: (pairs, 2) numbers of ids of source and target, with END.
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
        self.name = name
        self.vocabularies = vocabularies
        self.fingerprint = fingerprint
        self._batches = rows.to_batches()
        self._starts = np.cumsum([0, *map(len, self._batches)]).tolist()
        # NumPy views of the ids, since reading single rows with pyarrow is many times slower
        self._ids = [
            [
                (ids.offsets.to_numpy(), ids.values.to_numpy())
                for ids in map(batch.column, IDS.values())
            ]
            for batch in self._batches
        ]
        words = np.stack([rows.column(name).to_numpy() for name in WORDS], axis=1)
        fitting = slice(None) if max_words is None else words.max(axis=1) <= max_words
        self.kept = np.arange(len(rows), dtype=np.int32)[fitting]
        self.words = words[self.kept]
        sizes = [[np.diff(offsets) for offsets, _ in ids] for ids in self._ids]
        self.sizes = np.concatenate([np.stack(each, axis=1) for each in sizes])[self.kept]
        kept = len(self.kept)
        too_long = len(rows) - len(self.kept)
        self.counts = {"pairs": kept, "too_long": too_long, **counts}

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, number: int) -> dict[str, Any]:
        batch, place = self._find(number)
        row: dict[str, Any] = self._batches[batch].slice(place, 1).to_pylist()[0]
        source_ids, target_ids = self.ids(number)
        row["source"] = row["source"].split(" ")
        row["target"] = row["target"].split(" ")
        return {**row, "source_ids": source_ids, "target_ids": target_ids}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.__getitem__, range(len(self)))

    def ids(self, number: int) -> tuple[Array, Array]:
        """Returns the source ids and the target ids of a pair, with END."""
        batch, place = self._find(number)
        source, target = (ids[at[place] : at[place + 1]] for at, ids in self._ids[batch])
        return source, target

    def batch(self, numbers: Sequence[int] | Array, weight: float | None = None) -> Batch:
        """Returns the pairs with these indices as one batch; `weight` as in `collate`."""
        from nmt.data.batch import collate  # imports torch, which text is prepared without

        numbers = np.asarray(numbers, np.int64)
        ids = [self.ids(number) for number in numbers]
        words = int(self.words[numbers, 1].sum(dtype=np.int64)) + len(ids)
        return collate([s for s, _ in ids], [t for _, t in ids], numbers, weight, words)

    def _find(self, number: int) -> tuple[int, int]:
        """Returns the index of the record batch that holds a pair, and the pair's index in it."""
        row = int(self.kept[number])
        batch = bisect.bisect_right(self._starts, row) - 1
        return batch, row - self._starts[batch]


def encode(rows: pa.Table | pa.RecordBatch, vocabularies: Vocabularies) -> Any:
    """Adds the columns `source_ids` and `target_ids` to rows."""
    for side, vocabulary in zip(SIDES, vocabularies, strict=True):
        ids = [vocabulary.encode(line.split(" ")) for line in rows.column(side).to_pylist()]
        rows = rows.append_column(IDS[side], pa.array(ids, pa.list_(pa.int32())))
    return rows


def count_encoded(rows: pa.Table) -> dict[str, Any]:
    """Returns the number of words of each side, and the share of UNKNOWN in its ids (END excluded)."""
    counts = {}
    for side in SIDES:
        ids = pc.list_flatten(rows.column(IDS[side]))
        unknown = pc.sum(pc.equal(ids, UNKNOWN)).as_py()
        counts[f"{side}_words"] = pc.sum(rows.column(f"{side}_words")).as_py()
        counts[f"{side}_unknown"] = unknown / (len(ids) - len(rows))
    return counts


def held_out_pairs(name: str, text: Stored, vocabularies: Vocabularies) -> Pairs:
    """Returns all pairs of a development or test set, encoded in memory."""
    rows = encode(text.rows.combine_chunks(), vocabularies)
    counts = {"empty": text.facts["empty"], **count_encoded(rows)}
    return Pairs(name, rows, vocabularies, counts, text.facts["fingerprint"])
