"""Bootstrap of anything that is a function of sums over sentences.

The input is one row of numbers per sentence and a function of the summed rows: for BLEU ten statistics,
for the alignment error rate link counts, for a mean a sum and a count. The bootstrap (Efron, 1979; for
BLEU: Koehn, 2004) draws N of N sentences with replacement, by one matrix product for all resamples. The
draws depend only on the number of sentences: all scores and runs use the same draws, so that resamples
of two of them can be subtracted.

Legend: N sentences, F numbers per sentence, R resamples.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nmt.config.keys import CONFIDENCE

SEED = 12345  # the same for every run, so that two runs on one test set use the same draws
CHUNK = 1 << 22  # sentences drawn at a time, which bounds the memory for large sets

Interval = tuple[float | None, float | None]  # both None without resamples, or if all are undefined
Combine = Callable[[np.ndarray], np.ndarray]  # (..., F) sums -> (...) values


def resampled_sums(rows: np.ndarray, resamples: int) -> np.ndarray:
    """Sums rows over the sentences, then over sentences drawn with replacement.

    Args:
        rows: (N, F) numbers of each sentence, N at least 1. Sums of integers are exact up to 2^53.
        resamples: R. The draws depend only on N and R.

    Returns:
        (1 + R, F) float64.
    """
    values = np.asarray(rows, dtype=np.float64)
    drawn = (part.astype(np.float64) @ values for part in _draws(len(values), resamples))
    return np.concatenate([values.sum(axis=0, keepdims=True), *drawn])


def _draws(size: int, resamples: int) -> Iterator[np.ndarray]:
    """Yields how often each sentence counts, in chunks of resamples: (r, N)."""
    if size * resamples <= CHUNK:
        yield _remembered_draws(size, resamples)
        return
    generator = np.random.default_rng(SEED)
    step = max(1, CHUNK // size)
    for start in range(0, resamples, step):
        yield _draw(generator, size, min(step, resamples - start))


@functools.lru_cache(maxsize=32)
def _remembered_draws(size: int, resamples: int) -> np.ndarray:
    """Returns all draws of a set (R, N), the same for every score and run."""
    return _draw(np.random.default_rng(SEED), size, resamples)


def _draw(generator: np.random.Generator, size: int, resamples: int) -> np.ndarray:
    """Draws resamples; returns how often each has each of N sentences: (R, N) uint16."""
    picks = generator.integers(size, size=(resamples, size))
    picks += size * np.arange(resamples)[:, None]
    counts = np.bincount(picks.ravel(), minlength=resamples * size)
    return counts.reshape(resamples, size).astype(np.uint16)


def interval_of(values: np.ndarray, confidence: float = CONFIDENCE) -> Interval:
    """Returns the percentile interval of resampled values (R,), without those that are not finite.

    >>> interval_of(np.arange(101.0), confidence=0.5)
    (25.0, 75.0)
    """
    values = values[np.isfinite(values)]
    if not len(values):
        return None, None
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def interval_row(values: np.ndarray, sentences: int) -> dict[str, Any]:
    """Returns columns of scores.csv: `value`, `low`, `high`, `sentences` and `interval`.

    Args:
        values: (1 + R,) the value on the sentences, and on resamples.
        sentences: number of these sentences.
    """
    low, high = interval_of(values[1:])
    return {
        "value": float(values[0]),
        "low": low,
        "high": high,
        "sentences": sentences,
        "interval": "" if low is None else "sentences",
    }
