"""Which pairs make up which batch: pure functions of the seed and the number of the update.

Training follows the paper (appendix B.2): the training set is shuffled once and read again and
again; 20 batches' worth of pairs are fetched at a time, sorted by length and cut into 20 batches.
Update k depends on the seed and on k alone: a resumed training continues exactly where it was, and
an update sees the same sentences with any number of devices and workers.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer]


def shuffle(count: int, *seeds: int) -> Integers:
    """A permutation of 0 … count - 1: the numbers sorted by a hash of themselves and the seeds.

    The stream of a library's generator may change with its version, and with it the order of the
    data in the middle of a resumed training.
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
    """The rows of every update of a training.

    An update has a fixed number of sentences, or a bounded number of tokens. By tokens, a batch of n
    pairs counts as n times its longest sentence of either side, END included, so that padding
    counts. All pools then have the same number of pairs, `pool` batches' worth on average; their
    number of batches follows from the lengths, and the batches of a pool are filled evenly. A pair
    that exceeds `batch_size` is a batch of its own.

    Args:
        sizes: (pairs, 2) length of source and target of every pair.
        batch_size: sentences (or most tokens) per update, over all devices and accumulated
            micro-batches.
        pool: number of batches whose pairs are sorted together; at most as many as a pass over the
            training set fills, so that no batch holds a pair twice unless it is larger than the set.
        order: `ascending` takes the batches of a pool from the shortest to the longest, `random` in
            an order drawn from the seed.
        seed: of the order of the data.
        by_tokens: `batch_size` counts tokens.
    """

    def __init__(
        self,
        sizes: Integers,
        batch_size: int,
        pool: int = 20,
        order: str = "ascending",
        seed: int = 1,
        by_tokens: bool = False,
    ) -> None:
        self.batch_size, self.order, self.seed, self.by_tokens = batch_size, order, seed, by_tokens
        self._sizes, self._longer = sizes, sizes.max(axis=1)
        self._shuffled = shuffle(len(sizes), seed)
        if by_tokens:
            pairs = pool * batch_size * len(sizes) // int(self._longer.sum(dtype=int))
            self.pool_pairs = max(1, min(pairs, len(sizes)))
        else:
            self.pool_pairs = max(1, min(pool, len(sizes) // batch_size)) * batch_size
        self._starts = [0]  # number of the first update of each pool, as far as they were needed
        self._cut: tuple[int, Sequence[Rows]] = (-1, [])  # the pool that was cut last
        self._first = len(self._batches(0))  # updates of the first pool

    def rows(self, update: int) -> Rows:
        """Rows of update number `update`, from 0, by rising length."""
        pool, batch = self._place(update)
        return self._batches(pool)[batch]

    def share(self, update: int, micro: int, accumulate: int, rank: int, world: int) -> Rows:
        """The rows of micro-batch `micro` (of `accumulate`) of an update on `rank` (of `world`).

        Each of the n shares takes every n-th row of the sorted batch, so that all have about the
        same lengths. Together they are the batch.
        """
        return self.rows(update)[micro * world + rank :: world * accumulate]

    def epoch(self, update: int) -> float:
        """Passes over the training set before update number `update`."""
        pool, batch = self._place(update)
        before = sum(map(len, self._batches(pool)[:batch])) if batch else 0
        return (pool * self.pool_pairs + before) / len(self._sizes)

    def updates_per_epoch(self) -> int:
        """Updates of a pass over the training set; estimated from the first pool."""
        return max(1, math.ceil(self._first * len(self._sizes) / self.pool_pairs))

    def _place(self, update: int) -> tuple[int, int]:
        """The pool that an update belongs to, and its number among the batches of that pool."""
        if not self.by_tokens:
            return divmod(update, self.pool_pairs // self.batch_size)
        while self._starts[-1] <= update:
            longer = np.sort(self._longer[self._pool_rows(len(self._starts) - 1)])
            self._starts.append(self._starts[-1] + len(_fill(longer, self.batch_size)))
        pool = bisect.bisect_right(self._starts, update) - 1
        return pool, update - self._starts[pool]

    def _pool_rows(self, pool: int) -> Rows:
        """Rows of the pairs of a pool in the order of the shuffled training set, pass after pass."""
        places = np.arange(pool * self.pool_pairs, (pool + 1) * self.pool_pairs)
        return self._shuffled[places % len(self._shuffled)].astype(np.int64)

    def _batches(self, pool: int) -> Sequence[Rows]:
        """Rows of the batches of a pool in the order in which they are taken."""
        if self._cut[0] != pool:
            rows = self._pool_rows(pool)
            longer = self._longer[rows]
            order = np.lexsort((self._sizes[rows].min(axis=1), longer))
            batches = np.split(rows[order], self._limits(longer[order]))
            if self.order == "random":
                batches = [batches[place] for place in shuffle(len(batches), self.seed, pool)]
            self._cut = pool, batches
        return self._cut[1]

    def _limits(self, longer: Integers) -> Sequence[int]:
        """Where the sorted pairs of a pool are cut into batches; `longer` is their longer side."""
        if not self.by_tokens:
            return range(self.batch_size, len(longer), self.batch_size)
        # The smallest limit that needs no more batches leaves no small rest.
        count = len(_fill(longer, self.batch_size))
        limits = range(1, self.batch_size + 1)
        limit = limits[
            bisect.bisect_left(limits, True, key=lambda n: len(_fill(longer, n)) <= count)
        ]
        return _fill(longer, limit)[1:]


def _fill(longer: Integers, tokens: int) -> list[int]:
    """Where batches begin if each takes as many of the sorted sentences as it can hold."""
    starts, start = [], 0
    while start < len(longer):
        starts.append(start)
        most = max(1, tokens // int(longer[start]))
        lengths = longer[start : start + most].astype(np.int64)
        fitting = np.count_nonzero(lengths * np.arange(1, len(lengths) + 1) <= tokens)
        start += max(1, int(fitting))
    return starts


def evaluation_batches(
    lengths: Sequence[int] | Integers,
    batch_size: int,
    rank: int = 0,
    world: int = 1,
    apart: int = 0,
) -> list[Rows]:
    """All sentences in batches of like length, or the share of one rank: every `world`-th batch.

    The batches do not depend on the number of ranks: a sentence is always padded and rounded in the
    same way, and none is repeated or left out. The longest come first, so that a lack of memory shows
    at once. Sentences of equal length keep their order.

    Args:
        lengths: (sentences,) lengths, or (sentences, 2) length of source and target.
        batch_size: sentences per batch; the last one may have fewer.
        rank: of this process.
        world: number of processes.
        apart: sentences, from the first, that share no batch with the others.

    Returns:
        Numbers of the sentences of each batch. A rank without a share gets one empty batch, since
        the other ranks wait for its sums.
    """
    keys = -np.asarray(lengths, np.int64)
    order = np.lexsort(keys.T[::-1] if keys.ndim > 1 else keys[None]).astype(np.int64)
    batches = [
        group[start : start + batch_size]
        for group in (order[order < apart], order[order >= apart])
        for start in range(0, len(group), batch_size)
    ]
    return batches[rank::world] or [order[:0]]
