"""Bootstrap and approximate randomisation of anything that is a function of sums over sentences.

A quantity is given as one row of numbers per sentence and a function of the summed rows: BLEU of its
ten statistics, the alignment error rate of link counts, a mean of a sum and a count. The bootstrap
(Efron, 1979; for BLEU: Koehn, 2004) draws as many sentences as there are, with replacement;
approximate randomisation (Riezler and Maxwell, 2005) draws which sentences two systems exchange.
Either is one matrix product for all resamples. What is drawn depends on the number of sentences
alone: all scores and runs are resampled alike, so that resamples of two of them can be subtracted.

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
    """Sums over sentences drawn with replacement.

    Args:
        rows: (N, F) numbers of each sentence, N at least 1. Sums of integers are exact up to 2^53.
        resamples: R. The draws are a function of N and R alone.

    Returns:
        (R, F) float64.
    """
    return _sums(rows, resamples, _draw_counts)


def kept_sums(rows: np.ndarray, trials: int) -> np.ndarray:
    """Sums over sentences each kept with probability 1/2: (N, F) -> (R, F); as `resampled_sums`."""
    return _sums(rows, trials, _draw_kept)


Sampler = Callable[[np.random.Generator, int, int], np.ndarray]


def _sums(rows: np.ndarray, resamples: int, draw: Sampler) -> np.ndarray:
    values = np.asarray(rows, dtype=np.float64)
    drawn = _draws(len(values), resamples, draw)
    parts = (part.astype(np.float64) @ values for part in drawn)
    return np.concatenate(list(parts))


def _draws(size: int, resamples: int, draw: Sampler) -> Iterator[np.ndarray]:
    """How often each sentence counts, in chunks of resamples: (r, N) of a small type."""
    if size * resamples <= CHUNK:
        yield _remembered(size, resamples, draw)
        return
    generator = np.random.default_rng(SEED)
    step = max(32, CHUNK // size // 32 * 32)  # random bits are drawn 32 at a time
    for start in range(0, resamples, step):
        yield draw(generator, size, min(step, resamples - start))


@functools.lru_cache(maxsize=32)
def _remembered(size: int, resamples: int, draw: Sampler) -> np.ndarray:
    """All draws of a set, (R, N): the same for every score and every run."""
    return draw(np.random.default_rng(SEED), size, resamples)


def _draw_counts(generator: np.random.Generator, size: int, resamples: int) -> np.ndarray:
    """How often each of N sentences is drawn in so many resamples: (R, N) uint16."""
    picks = generator.integers(size, size=(resamples, size))
    picks += size * np.arange(resamples)[:, None]
    counts = np.bincount(picks.ravel(), minlength=resamples * size)
    return counts.reshape(resamples, size).astype(np.uint16)


def _draw_kept(generator: np.random.Generator, size: int, trials: int) -> np.ndarray:
    """Which of N sentences stay with their system in so many trials: (R, N) bool."""
    return generator.integers(2, size=(trials, size), dtype=bool)


def interval_of(values: np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    """The percentile interval of resampled values (R,); those that are not finite are left out."""
    values = values[np.isfinite(values)]
    if not len(values):
        return Interval(None, None)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return Interval(float(low), float(high))


def interval(
    rows: np.ndarray,
    combine: Combine,
    *,
    resamples: int = 1000,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The percentile interval of a function of sums.

    Args:
        rows: (N, F) numbers of each sentence.
        combine: (R, F) sums -> (R,) values; a NaN (an undefined ratio) is left out.
        resamples: R; 0 gives no interval, nor does one sentence, which tells nothing of another.
        confidence: share of the resamples between `low` and `high`.

    >>> words = np.array([[10, 4.0], [20, 9.0], [30, 11.0]])  # words and nats of three sentences
    >>> interval(words, lambda sums: sums[:, 1] / sums[:, 0], resamples=200).low < 0.4
    True
    """
    if resamples == 0 or len(rows) < 2:
        return Interval(None, None)
    return interval_of(combine(resampled_sums(rows, resamples)), confidence)
