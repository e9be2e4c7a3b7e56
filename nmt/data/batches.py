"""Which pairs make which batch: pure functions of the seed and the number of the update.

Training follows the paper (appendix B.2): the training set is shuffled once and read again and
again; 20 batches' worth of pairs are fetched at a time, sorted by length and cut into 20 batches.
Since update k depends on nothing but the seed and k, training goes on after an interruption exactly
where it was, and sees the same sentences on any number of devices and with any number of workers.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]


def shuffle(count: int, *seeds: int) -> npt.NDArray[np.integer]:
    """A permutation of 0 … count - 1: the numbers sorted by a hash of themselves and the seeds.

    Spelt out instead of taken from a library's generator, whose stream may change with its version:
    the order of the data then changes in the middle of a resumed training.
    """
    state = np.zeros(1, np.uint64)
    for seed in seeds:
        state = _mix(state + np.uint64(seed))
    order = np.argsort(_mix(np.arange(count, dtype=np.uint64) + state), kind="stable")
    return order.astype(np.int32 if count <= np.iinfo(np.int32).max else np.int64)


def _mix(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A step of SplitMix64 (Steele, Lea, Flood 2014), modulo 2^64: a bijection that mixes bits."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


class TrainingSchedule:
    """The rows of every update of a training.

    Args:
        sizes: (pairs, 2) length of source and target of every pair.
        batch_size: sentences an update, over all devices and accumulated micro-batches.
        pool: batches' worth of pairs that are sorted together.
        order: `ascending` takes a pool's batches from the shortest to the longest, `random` in an
            order drawn from the seed.
        seed: of the order of the data.
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
        self.pool = pool
        self.order = order
        self.seed = seed
        self._sizes = sizes
        self._shuffled = shuffle(len(sizes), seed)
        # Batches are asked for in order, by several workers perhaps: the pool at hand and the next.
        self._sorted_pool = functools.lru_cache(maxsize=2)(self._sort_pool)

    def rows(self, update: int) -> Rows:
        """(batch_size,) rows of update number `update`, from 0, by rising length."""
        pool, batch = divmod(update, self.pool)
        return self._sorted_pool(pool)[batch]

    def share(self, update: int, micro: int, accumulate: int, rank: int, world: int) -> Rows:
        """The rows of micro-batch `micro` (of `accumulate`) of an update on `rank` (of `world`).

        The sorted batch is dealt out like cards, so that all shares are about equally long, and any
        way of dealing it out is the same batch.
        """
        return self.rows(update)[micro * world + rank :: world * accumulate]

    def epoch(self, update: int) -> float:
        """Passes over the training set before update number `update`."""
        return update * self.batch_size / len(self._shuffled)

    def _sort_pool(self, pool: int) -> npt.NDArray[np.int64]:
        """(pool, batch_size) rows of a pool's batches in the order they are taken."""
        size = self.pool * self.batch_size
        places = np.arange(pool * size, (pool + 1) * size) % len(self._shuffled)
        rows = self._shuffled[places].astype(np.int64)
        sizes = self._sizes[rows]
        rows = rows[np.lexsort((sizes.min(axis=1), sizes.max(axis=1)))]
        batches = rows.reshape(self.pool, self.batch_size)
        return batches[shuffle(self.pool, self.seed, pool)] if self.order == "random" else batches

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        settings = (self.batch_size, self.pool, self.order, self.seed)
        return TrainingSchedule, (np.asarray(self._sizes), *settings)


def evaluation_batches(
    sizes: npt.NDArray[np.integer], batch_size: int, rank: int = 0, world: int = 1
) -> list[Rows]:
    """All pairs in batches of like length, or the share of one rank: every `world`-th batch.

    The batches are the same whatever the number of ranks, so that a sentence is always padded and
    rounded alike, and no sentence is repeated or left out. The longest come first: what does not
    fit into memory shows at once.

    Args:
        sizes: (pairs, 2) length of source and target of every pair.
        batch_size: sentences a batch; the last one may have fewer.
        rank: of this process.
        world: number of processes.
    """
    order = np.lexsort((sizes[:, 1], sizes[:, 0]))[::-1].astype(np.int64)
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    return batches[rank::world]
