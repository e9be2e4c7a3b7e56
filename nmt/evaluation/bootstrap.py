"""Bootstrap intervals (Efron, 1979; for BLEU: Koehn, 2004) of anything that sums over sentences.

A quantity is given as one row of numbers a sentence and a function of their sums: BLEU of the ten
statistics, the alignment error rate of link counts, a mean of a sum and a count. A resample draws
as many sentences as there are, with replacement; its sums are one matrix product for all of them.

Legend: N sentences, F numbers a sentence, R resamples.
"""

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

SEED = 12345  # one seed for every run, so that two runs on one test set are resampled alike
CHUNK = 1 << 22  # sentences drawn at a time: bounds the memory of a resample of a large set


class Interval(NamedTuple):
    """Percentile interval; both ends None where no resample was asked for or defined."""

    low: float | None
    high: float | None


def resampled_sums(rows: np.ndarray, resamples: int, seed: int = SEED) -> np.ndarray:
    """Sums over sentences drawn with replacement.

    Args:
        rows: (N, F) numbers of each sentence, N at least 1. Sums of integers are exact up to 2^53.
        resamples: R.
        seed: the draws are a function of (seed, N, R) alone.

    Returns:
        (R, F) float64.
    """
    values = np.asarray(rows, dtype=np.float64)
    return np.concatenate([counts @ values for counts in _draws(len(values), resamples, seed)])


def _draws(size: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """How often each sentence was drawn, in chunks of resamples: (r, N) float64."""
    if size * resamples <= CHUNK:
        yield _remembered(size, resamples, seed).astype(np.float64)
        return
    generator = np.random.default_rng(seed)
    step = max(1, CHUNK // size)
    for start in range(0, resamples, step):
        yield _counts(generator, size, min(step, resamples - start)).astype(np.float64)


@functools.lru_cache(maxsize=16)
def _remembered(size: int, resamples: int, seed: int) -> np.ndarray:
    """All draws of a set (R, N) uint16: every pair of runs is resampled alike, in every bucket."""
    return _counts(np.random.default_rng(seed), size, resamples).astype(np.uint16)


def _counts(generator: np.random.Generator, size: int, resamples: int) -> np.ndarray:
    """How often each of N sentences is drawn in so many resamples: (R, N)."""
    picks = generator.integers(size, size=(resamples, size))
    picks += size * np.arange(resamples)[:, None]
    return np.bincount(picks.ravel(), minlength=resamples * size).reshape(resamples, size)


def interval(
    rows: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = SEED,
) -> Interval:
    """The percentile interval of a statistic of sums.

    Args:
        rows: (N, F) numbers of each sentence.
        statistic: (R, F) sums -> (R,) values; a NaN (an undefined ratio) is left out.
        resamples: R; 0 gives no interval.
        confidence: share of the resamples between `low` and `high`.

    >>> words = np.array([[10, 4.0], [20, 9.0], [30, 11.0]])  # words and nats of three sentences
    >>> interval(words, lambda sums: sums[:, 1] / sums[:, 0], resamples=200).low < 0.4
    True
    """
    if resamples == 0 or len(rows) == 0:
        return Interval(None, None)
    values = statistic(resampled_sums(rows, resamples, seed))
    values = values[~np.isnan(values)]
    if not len(values):
        return Interval(None, None)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return Interval(float(low), float(high))
