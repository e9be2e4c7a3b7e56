"""`Pairs`: the encoded sentence pairs of one split, by number."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import datasets
import numpy as np
import numpy.typing as npt

from nmt.data.batch import Batch, collate
from nmt.data.vocabulary import Vocabularies, Vocabulary

Array = npt.NDArray[Any]

IDS = {
    name: datasets.List(datasets.Value("int32")) for name in ("source_ids", "target_ids")
}  # columns that `encode` adds


class Pairs:
    """The pairs of one split, numbered from 0.

    `pairs[i]` is a dictionary: `source` and `target` (lists of words), `source_ids` and
    `target_ids` (int arrays, END included), and the other columns of the rows: `line` (number of the
    pair in its source, from 0), `alignment` (Pharaoh format, or None), and, but for training pairs,
    `target_text` (raw).

    Args:
        name: `train`, `valid`, or the name of a test set.
        rows: tokenised pairs (`nmt.data.text`) with their ids (`encode`).
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
        rows: datasets.Dataset,
        vocabularies: Vocabularies,
        counts: Mapping[str, Any],
        fingerprint: str,
        max_words: int | None = None,
    ) -> None:
        self.name, self.rows, self.fingerprint = name, rows, fingerprint
        self.source_vocabulary, self.target_vocabulary = vocabularies
        self._ids = [IdColumn(rows, name) for name in IDS]
        columns = [rows.data.column(f"{side}_words").to_numpy() for side in ("source", "target")]
        words = np.stack(columns, axis=1)
        fitting = slice(None) if max_words is None else words.max(axis=1) <= max_words
        self.kept = np.arange(len(rows), dtype=np.int32)[fitting]
        self.words = words[self.kept]
        self.sizes = np.stack([column.sizes() for column in self._ids], axis=1)[self.kept]
        kept, too_long = len(self.kept), len(rows) - len(self.kept)
        self.counts = {"pairs": kept, "too_long": too_long, **counts}

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, number: int) -> dict[str, Any]:
        source_ids, target_ids = self.ids(number)
        row = self.rows[int(self.kept[number])]
        row["source"], row["target"] = row["source"].split(" "), row["target"].split(" ")
        return {**row, "source_ids": source_ids, "target_ids": target_ids}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self.__getitem__, range(len(self)))

    def ids(self, number: int) -> tuple[Array, Array]:
        """Ids of source and target of a pair, END included."""
        row = int(self.kept[number])
        return self._ids[0][row], self._ids[1][row]

    def text(self, number: int) -> tuple[str, str]:
        """Source and target of a pair, words separated by spaces."""
        row = self.rows[int(self.kept[number])]
        return row["source"], row["target"]

    def batch(self, numbers: Sequence[int] | Array, weight: float | None = None) -> Batch:
        """The pairs of these numbers as one batch; `weight` as in `collate`."""
        numbers = np.asarray(numbers, np.int64)
        ids = [self.ids(number) for number in numbers]
        words = int(self.words[numbers, 1].sum(dtype=np.int64)) + len(ids)
        return collate([s for s, _ in ids], [t for _, t in ids], numbers, weight, words)


def encode(rows: datasets.Dataset, vocabularies: Vocabularies, **options: Any) -> datasets.Dataset:
    """Rows with the columns `source_ids` and `target_ids`; `options` are those of `Dataset.map`."""
    return rows.map(
        _encode,
        batched=True,
        fn_kwargs=dict(zip(("source", "target"), vocabularies, strict=True)),
        features=datasets.Features({**rows.features, **IDS}),
        **options,
    )


def _encode(rows: dict[str, list[Any]], **vocabularies: Vocabulary) -> dict[str, list[list[int]]]:
    # Processes share the cores already; the library's own threads do not survive a fork.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return {
        f"{side}_ids": [vocabulary.encode(line.split(" ")) for line in rows[side]]
        for side, vocabulary in vocabularies.items()
    }


class IdColumn:
    """A column of id lists in a memory-mapped table, each row a view without a copy.

    Going through `datasets` row by row takes about 50 times as long, which a batch would feel.
    """

    def __init__(self, dataset: datasets.Dataset, name: str) -> None:
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
