"""Bootstrap of anything that is a function of sums over sentences.

A quantity is given as one row of numbers per sentence and a function of the summed rows: BLEU of its
ten statistics, the alignment error rate of link counts, a mean of a sum and a count. The bootstrap
(Efron, 1979; for BLEU: Koehn, 2004) draws as many sentences as there are, with replacement, which is
one matrix product for all resamples. What is drawn depends on the number of sentences alone: all
scores and runs are resampled alike, so that resamples of two of them can be subtracted.

Legend: N sentences, F numbers a sentence, R resamples.
"""

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nmt.config.keys import CONFIDENCE

SEED = 12345  # one seed for every run, so that two runs on one test set are resampled alike
CHUNK = 1 << 22  # sentences drawn at a time: bounds the memory of a resample of a large set

Combine = Callable[[np.ndarray], np.ndarray]  # (..., F) sums -> (...) values


class Interval(NamedTuple):
    """Percentile interval; both ends None where no resample was asked for or defined."""

    low: float | None
    high: float | None


def resampled_sums(rows: np.ndarray, resamples: int) -> np.ndarray:
    """Sums over the sentences, then over sentences drawn with replacement.

    Args:
        rows: (N, F) numbers of each sentence, N at least 1. Sums of integers are exact up to 2^53.
        resamples: R. The draws are a function of N and R alone.

    Returns:
        (1 + R, F) float64.
    """
    values = np.asarray(rows, dtype=np.float64)
    drawn = (part.astype(np.float64) @ values for part in _draws(len(values), resamples))
    return np.concatenate([values.sum(axis=0, keepdims=True), *drawn])


def _draws(size: int, resamples: int) -> Iterator[np.ndarray]:
    """How often each sentence counts, in chunks of resamples: (r, N)."""
    if size * resamples <= CHUNK:
        yield _remembered_draws(size, resamples)
        return
    generator = np.random.default_rng(SEED)
    step = max(1, CHUNK // size)
    for start in range(0, resamples, step):
        yield _draw(generator, size, min(step, resamples - start))


@functools.lru_cache(maxsize=32)
def _remembered_draws(size: int, resamples: int) -> np.ndarray:
    """All draws of a set, (R, N): the same for every score and every run."""
    return _draw(np.random.default_rng(SEED), size, resamples)


def _draw(generator: np.random.Generator, size: int, resamples: int) -> np.ndarray:
    """How often each of N sentences is drawn in so many resamples: (R, N) uint16."""
    picks = generator.integers(size, size=(resamples, size))
    picks += size * np.arange(resamples)[:, None]
    counts = np.bincount(picks.ravel(), minlength=resamples * size)
    return counts.reshape(resamples, size).astype(np.uint16)


def interval_of(values: np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    """The percentile interval of resampled values (R,); those that are not finite are left out.

    >>> interval_of(np.arange(101.0), confidence=0.5)
    Interval(low=25.0, high=75.0)
    """
    values = values[np.isfinite(values)]
    if not len(values):
        return Interval(None, None)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return Interval(float(low), float(high))
