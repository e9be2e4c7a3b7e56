"""Which pairs make up which batch: pure functions of the seed and the number of the update.

Training follows the paper (appendix B.2): the training set is shuffled once and read again and
again; 20 batches' worth of pairs are fetched at a time, sorted by length and cut into 20 batches.
Update k depends on the seed and on k alone: a resumed training continues exactly where it was, and
an update sees the same sentences with any number of devices and workers.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


def shuffle(count: int, *seeds: int) -> npt.NDArray[np.integer]:
    """A permutation of 0 … count - 1: the numbers sorted by a hash of themselves and the seeds.

    A library's generator is not used: its stream may change with its version, and with it the order
    of the data in the middle of a resumed training.
    """
    state = np.zeros(1, np.uint64)
    for seed in seeds:
        state = _mix(state + np.uint64(seed))
    order = _mix(np.arange(count, dtype=np.uint64) + state).argsort()
    return order.astype(np.int32 if count <= np.iinfo(np.int32).max else np.int64)


def _mix(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A step of SplitMix64 (Steele, Lea, Flood 2014), modulo 2^64: a bijection that mixes bits."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


class TrainingSchedule:
    """The rows of every update of a training, with a fixed number of sentences per update (as in the paper).

    Args:
        sizes: (pairs, 2) length of source and target of every pair.
        batch_size: sentences an update, over all devices and accumulated micro-batches.
        pool: number of batches whose pairs are sorted together; at most as many as a pass over the
            training set fills, so that no batch holds a pair twice unless it is larger than the set.
        order: `ascending` takes a pool's batches from the shortest to the longest, `random` in an
            order drawn from the seed.
        seed: of the order of the data.

    Attributes:
        shuffled: (pairs,) rows in the order in which pools fetch them, pass after pass.
    """

    def __init__(
        self,
        sizes: npt.NDArray[np.integer],
        batch_size: int,
        pool: int = 20,
        order: str = "ascending",
        seed: int = 1,
    ) -> None:
        if not len(sizes):
            raise ValueError("a schedule needs at least one pair")
        self.batch_size = batch_size
        self.pool = max(1, min(pool, len(sizes) // batch_size))
        self.order = order
        self.seed = seed
        self._sizes = sizes
        self.shuffled = shuffle(len(sizes), seed)
        # batches are asked for in order, possibly by several workers: this pool and the next suffice
        self._batches_of = functools.lru_cache(maxsize=2)(self._cut_pool)

    def rows(self, update: int) -> Rows:
        """Rows of update number `update`, from 0, by rising length."""
        pool, batch = self._place(update)
        return self._batches_of(pool)[batch]

    def share(self, update: int, micro: int, accumulate: int, rank: int, world: int) -> Rows:
        """The rows of micro-batch `micro` (of `accumulate`) of an update on `rank` (of `world`).

        Each of the n shares takes every n-th row of the sorted batch, so that all have about the same
        lengths. Together they are the batch, whatever their number.
        """
        return self.rows(update)[micro * world + rank :: world * accumulate]

    def sentences(self, update: int) -> int:
        """Sentences of an update."""
        return self.batch_size

    def seen(self, update: int) -> int:
        """Pairs, counted as often as they are read, before update number `update`."""
        pool, batch = self._place(update)
        before = sum(map(len, self._batches_of(pool)[:batch])) if batch else 0
        return pool * self._pool_size + before

    def epoch(self, update: int) -> float:
        """Passes over the training set before update number `update`."""
        return self.seen(update) / len(self.shuffled)

    def updates_per_epoch(self) -> int:
        """Updates of a pass over the training set; of batches by tokens estimated from the first pool."""
        return max(1, math.ceil(len(self._batches_of(0)) * len(self.shuffled) / self._pool_size))

    @property
    def _pool_size(self) -> int:
        """Pairs of a pool."""
        return self.pool * self.batch_size

    def _place(self, update: int) -> tuple[int, int]:
        """The pool that an update belongs to, and its number among the batches of that pool."""
        return divmod(update, self.pool)

    def _pairs(self, pool: int) -> Rows:
        """Rows of a pool's pairs in the order of the shuffled training set, pass after pass."""
        size = self._pool_size
        places = np.arange(pool * size, (pool + 1) * size) % len(self.shuffled)
        return self.shuffled[places].astype(np.int64)

    def _cut_pool(self, pool: int) -> Sequence[Rows]:
        """Rows of each of a pool's batches in the order they are taken."""
        rows = self._pairs(pool)
        sizes = self._sizes[rows]
        order = np.lexsort((sizes.min(axis=1), sizes.max(axis=1)))
        batches = self._cut(rows[order], sizes.max(axis=1)[order])
        if self.order == "random":
            return [batches[place] for place in shuffle(len(batches), self.seed, pool)]
        return batches

    def _cut(self, rows: Rows, longer: npt.NDArray[np.integer]) -> Sequence[Rows]:
        """Sorted rows as batches; `longer` is the length of each one's longer side."""
        return list(rows.reshape(self.pool, self.batch_size))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        settings = (self.batch_size, self.pool, self.order, self.seed)
        return type(self), (np.asarray(self._sizes), *settings)


class TokenSchedule(TrainingSchedule):
    """The rows of every update of a training, with a bounded number of tokens per update.

    A batch of n pairs counts as n times its longest sentence of either side, END included, so that
    padding counts. All pools have the same number of pairs, those of `pool` batches on average. The
    number of batches of a pool follows from the lengths, and they are filled evenly. A pair that
    exceeds `tokens` is a batch of its own.

    Args:
        sizes: as in `TrainingSchedule`.
        tokens: most tokens of an update, over all devices and accumulated micro-batches.
        pool, order, seed: as in `TrainingSchedule`.
    """

    def __init__(
        self,
        sizes: npt.NDArray[np.integer],
        tokens: int,
        pool: int = 20,
        order: str = "ascending",
        seed: int = 1,
    ) -> None:
        super().__init__(sizes, tokens, pool, order, seed)
        self.tokens, self.pool = tokens, pool
        self._longer = sizes.max(axis=1)
        pairs = pool * tokens * len(sizes) // int(self._longer.sum(dtype=int))
        self._pairs_of_pool = max(1, min(pairs, len(sizes)))
        self._starts = [0]  # number of the first update of each pool, as far as they were needed

    def sentences(self, update: int) -> int:
        return len(self.rows(update))

    @property
    def _pool_size(self) -> int:
        return self._pairs_of_pool

    def _place(self, update: int) -> tuple[int, int]:
        while self._starts[-1] <= update:
            longer = np.sort(self._longer[self._pairs(len(self._starts) - 1)])
            self._starts.append(self._starts[-1] + len(_fill(longer, self.tokens)))
        pool = bisect.bisect_right(self._starts, update) - 1
        return pool, update - self._starts[pool]

    def _cut(self, rows: Rows, longer: npt.NDArray[np.integer]) -> Sequence[Rows]:
        # The smallest number of tokens for which no more batches are needed leaves no small rest.
        batches = len(_fill(longer, self.tokens))
        low, high = 1, self.tokens
        while low < high:
            middle = (low + high) // 2
            if len(_fill(longer, middle)) > batches:
                low = middle + 1
            else:
                high = middle
        return np.split(rows, _fill(longer, low)[1:])


def _fill(longer: npt.NDArray[np.integer], tokens: int) -> list[int]:
    """Where batches begin when each takes as many of the sorted sentences as it can hold."""
    starts, start = [], 0
    while start < len(longer):
        starts.append(start)
        most = max(1, tokens // int(longer[start]))
        lengths = longer[start : start + most].astype(np.int64)
        fitting = np.count_nonzero(lengths * np.arange(1, len(lengths) + 1) <= tokens)
        start += max(1, int(fitting))
    return starts


def evaluation_batches(
    lengths: Sequence[int] | npt.NDArray[np.integer], batch_size: int, rank: int = 0, world: int = 1
) -> list[Rows]:
    """All sentences in batches of like length, or the share of one rank: every `world`-th batch.

    The batches do not depend on the number of ranks: a sentence is always padded and rounded in the
    same way, and none is repeated or left out. The longest come first, so that a lack of memory shows
    at once. Sentences of equal length keep their order.

    Args:
        lengths: (sentences,) what they are sorted by, or (sentences, 2) length of source and
            target of every pair, sorted by the source, then by the target.
        batch_size: sentences a batch; the last one may have fewer.
        rank: of this process.
        world: number of processes.

    Returns:
        Numbers of the sentences of each batch, one without sentences where there is no other: a
        rank without a batch would be left out by Lightning, and the others wait for its sums.
    """
    keys = -np.asarray(lengths, np.int64)
    order = np.lexsort(keys.T[::-1] if keys.ndim > 1 else keys[None]).astype(np.int64)
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    return batches[rank::world] or [order[:0]]
