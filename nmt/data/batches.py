"""Chooses the sentence pairs of each training update, and groups sentences into batches for evaluation.

Training follows the paper (appendix B.2). The training set is shuffled once and read repeatedly. The
pairs of 20 batches are read at a time, sorted by length and split into 20 batches. Update k depends only
on the seed and on k. A resumed run therefore continues exactly where it stopped, and an update has the
same sentences for any number of devices and workers.
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
    """Returns the numbers 0 … count - 1 in random order, sorted by a hash of each number and `seeds`.

    The random numbers of a library may change with its version. This hash never changes, so that a resumed
    run keeps its data order.
    """
    state = np.zeros(1, np.uint64)
    for seed in seeds:
        state = _mix(state + np.uint64(seed))
    order = _mix(np.arange(count, dtype=np.uint64) + state).argsort()
    return order.astype(np.int32 if count <= np.iinfo(np.int32).max else np.int64)


def _mix(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Applies a step of SplitMix64 (Steele, Lea, Flood 2014), a bijection of 64-bit integers."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


class TrainingSchedule:
    """Chooses the rows (indices of training pairs) of each update of a training run.

    A pool is a set of pairs that are sorted by length and split into batches. Each update uses one batch,
    which has a fixed number of sentences or a maximum number of tokens. Padding counts as tokens: if
    the longest sentence of a batch, source or target, has L symbols with END, its n pairs have n * L tokens.
    If the number of tokens is limited, all pools have the same number of pairs, enough for `pool` batches on
    average. The lengths of the sentences then determine the number of batches in a pool. The batches of a
    pool have about equally many tokens. A pair with more than `batch_size` tokens forms its own batch.

    Args:
        sizes: (pairs, 2) lengths of source and target of every pair.
        batch_size: sentences (or maximum tokens) per update, over all devices and accumulated
            micro-batches.
        pool: number of batches whose pairs are sorted together. A pool is at most one epoch long, so that
            a batch has a pair twice only if the batch is larger than the training set.
        seed: seed of the shuffled training set.
        by_tokens: whether `batch_size` is a number of tokens.
    """

    def __init__(
        self,
        sizes: Integers,
        batch_size: int,
        pool: int = 20,
        seed: int = 1,
        by_tokens: bool = False,
    ) -> None:
        self.batch_size = batch_size
        self.by_tokens = by_tokens
        self._sizes = sizes
        self._longer = sizes.max(axis=1)
        self._shuffled = shuffle(len(sizes), seed)
        if by_tokens:
            pairs = pool * batch_size * len(sizes) // int(self._longer.sum(dtype=int))
            self.pool_pairs = max(1, min(pairs, len(sizes)))
        else:
            self.pool_pairs = max(1, min(pool, len(sizes) // batch_size)) * batch_size
        self._starts = [0]  # first update of each pool, computed as needed
        self._cut: tuple[int, Sequence[Rows]] = (-1, [])  # the pool used last, and its batches
        self.first_pool = len(self._batches(0))  # number of updates in the first pool

    def rows(self, update: int) -> Rows:
        """Returns the rows of update number `update` (from 0), in order of increasing length."""
        pool, batch = self._place(update)
        return self._batches(pool)[batch]

    def share(self, update: int, micro: int, accumulate: int, rank: int, world: int) -> Rows:
        """Returns the rows of an update for micro-batch `micro` (of `accumulate`) on `rank` (of `world`).

        The batch is split into n = accumulate * world shares. Each share takes every n-th row of the sorted
        batch, so that all shares have similar lengths.
        """
        return self.rows(update)[micro * world + rank :: world * accumulate]

    def epoch(self, update: int) -> float:
        """Returns the number of epochs before update number `update`; it may be a fraction."""
        pool, batch = self._place(update)
        before = sum(map(len, self._batches(pool)[:batch])) if batch else 0
        return (pool * self.pool_pairs + before) / len(self._sizes)

    def by_size(self) -> list[int]:
        """Returns the updates of the first pool, sorted by increasing memory use."""

        def entries(update: int) -> int:
            rows = self.rows(update)
            return len(rows) * int(self._sizes[rows].max(axis=0).sum())

        return sorted(range(self.first_pool), key=entries)

    def updates_per_epoch(self) -> int:
        """Estimates the number of updates per epoch from the first pool."""
        return max(1, math.ceil(self.first_pool * len(self._sizes) / self.pool_pairs))

    def _place(self, update: int) -> tuple[int, int]:
        """Returns the pool of an update, and the index of its batch in that pool."""
        if not self.by_tokens:
            return divmod(update, self.pool_pairs // self.batch_size)
        while self._starts[-1] <= update:
            longer = np.sort(self._longer[self._pool_rows(len(self._starts) - 1)])
            self._starts.append(self._starts[-1] + len(_fill(longer, self.batch_size)))
        pool = bisect.bisect_right(self._starts, update) - 1
        return pool, update - self._starts[pool]

    def _pool_rows(self, pool: int) -> Rows:
        """Returns the rows of a pool in the order of the shuffled training set, epoch after epoch."""
        indices = np.arange(pool * self.pool_pairs, (pool + 1) * self.pool_pairs)
        return self._shuffled[indices % len(self._shuffled)].astype(np.int64)

    def _batches(self, pool: int) -> Sequence[Rows]:
        """Returns the rows of a pool's batches, from short to long sentences."""
        if self._cut[0] != pool:
            rows = self._pool_rows(pool)
            longer = self._longer[rows]
            order = np.lexsort((self._sizes[rows].min(axis=1), longer))
            self._cut = pool, np.split(rows[order], self._limits(longer[order]))
        return self._cut[1]

    def _limits(self, longer: Integers) -> Sequence[int]:
        """Returns the indices at which to split the sorted pairs of a pool into batches.

        `longer` holds the length of the longer sentence (source or target) of each pair.
        """
        if not self.by_tokens:
            return range(self.batch_size, len(longer), self.batch_size)
        # To fill the batches evenly, use the smallest token limit that does not increase the number of batches.
        count = len(_fill(longer, self.batch_size))
        limits = range(1, self.batch_size + 1)
        limit = limits[
            bisect.bisect_left(limits, True, key=lambda n: len(_fill(longer, n)) <= count)
        ]
        return _fill(longer, limit)[1:]


def _fill(longer: Integers, tokens: int) -> list[int]:
    """Fills each batch with as many sorted pairs as fit; returns the index of the first pair of each batch."""
    starts = []
    start = 0
    while start < len(longer):
        starts.append(start)
        limit = max(1, tokens // int(longer[start]))
        lengths = longer[start : start + limit].astype(np.int64)
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
    """Groups sentences into batches of similar length; a rank gets every `world`-th batch.

    The batches, and thus the padding and rounding errors of a sentence, do not depend on the number of
    ranks. No sentence is repeated or left out. The longest sentences come first, so that a run that
    needs too much memory fails at once. Sentences of equal length keep their order.

    Args:
        lengths: (sentences,) lengths, or (sentences, 2) length of source and target.
        batch_size: sentences per batch; the last one may have fewer.
        rank: rank of this process.
        world: number of processes.
        apart: the first `apart` sentences are put into separate batches, without other sentences.

    Returns:
        Sentence indices of each batch of this rank. A rank without sentences gets one empty batch, so
        that it takes part in the sums over all ranks.
    """
    keys = -np.asarray(lengths, np.int64)
    order = np.lexsort(keys.T[::-1] if keys.ndim > 1 else keys[None]).astype(np.int64)
    batches = [
        group[start : start + batch_size]
        for group in (order[order < apart], order[order >= apart])
        for start in range(0, len(group), batch_size)
    ]
    return batches[rank::world] or [order[:0]]
