"""Bootstrap of anything that is a function of sums over sentences.

The input is one row of numbers per sentence and a function of the summed rows: for BLEU ten statistics,
for the alignment error rate link counts, for a mean a sum and a count. The bootstrap (Efron, 1979; for
BLEU: Koehn, 2004) draws N of N sentences with replacement, by one matrix product for all resamples. The
draws depend only on the number of sentences: all scores and runs use the same draws, so that resamples
of two of them can be subtracted.

Sentences of one document resemble each other in how hard they are. Where documents are known, whole
documents are drawn, D of D, instead of sentences. Resamples of few documents vary too little: their
intervals are widened as Student's t requires (the expanded percentile interval of Hesterberg, 2015).

Legend: N sentences, D documents, F numbers per sentence, R resamples.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from nmt.config.keys import CONFIDENCE

SEED = 12345  # the same for every run, so that two runs on one test set use the same draws
CHUNK = 1 << 22  # sentences drawn at a time, which bounds the memory for large sets

Interval = tuple[float | None, float | None]  # both None without resamples, or if all are undefined
Combine = Callable[[np.ndarray], np.ndarray]  # (..., F) sums -> (...) values


def resampled_sums(
    rows: np.ndarray, resamples: int, documents: np.ndarray | None = None
) -> np.ndarray:
    """Sums rows over the sentences, then over sentences, or documents, drawn with replacement.

    Args:
        rows: (N, F) numbers of each sentence, N at least 1. Sums of integers are exact up to 2^53.
        resamples: R. The draws depend only on R and on the number of sentences or documents.
        documents: (N,) number of each sentence's document; None: sentences are drawn.

    Returns:
        (1 + R, F) float64.
    """
    values = np.asarray(rows, dtype=np.float64)
    if documents is not None:
        values = sums_by_document(values, documents)
    few = len(values) * resamples <= CHUNK
    draws = (_remembered_draws if few else _draws)(len(values), resamples)
    drawn = (part.astype(np.float64) @ values for part in draws)
    return np.concatenate([values.sum(axis=0, keepdims=True), *drawn])


def sums_by_document(rows: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Sums rows (N, F) within each document of `documents` (N,): (D, F), in ascending order."""
    _, index = np.unique(documents, return_inverse=True)
    order = np.argsort(index, kind="stable")
    first = np.flatnonzero(np.diff(index[order], prepend=-1))
    return np.add.reduceat(rows[order], first, axis=0)


def number_documents(names: Iterable[Any]) -> np.ndarray | None:
    """Numbers the documents of sentences (N,) from the first on; None unless each names one."""
    listed = list(names)
    if None in listed or not listed:
        return None
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in listed])


def count_documents(documents: np.ndarray | None) -> int | None:
    """Counts the documents of sentences (N,); None where they are unknown."""
    return None if documents is None else len(np.unique(documents))


def _draws(size: int, resamples: int) -> Iterator[np.ndarray]:
    """Yields how often each of N sentences counts, in chunks of resamples: (r, N) uint16."""
    generator = np.random.default_rng(SEED)
    step = max(1, CHUNK // size)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        picks = generator.integers(size, size=(count, size))
        picks += size * np.arange(count)[:, None]
        counts = np.bincount(picks.ravel(), minlength=count * size)
        yield counts.reshape(count, size).astype(np.uint16)


@functools.lru_cache(maxsize=32)
def _remembered_draws(size: int, resamples: int) -> list[np.ndarray]:
    """Returns all draws of a small set, the same for every score and run."""
    return [*_draws(size, resamples)]


def interval_of(
    values: np.ndarray, confidence: float = CONFIDENCE, documents: int | None = None
) -> Interval:
    """Returns the percentile interval of resampled values (R,), without those that are not finite.

    Args:
        documents: D; wider percentiles, as D resampled documents require.

    >>> interval_of(np.arange(101.0), confidence=0.5)
    (25.0, 75.0)
    >>> low, high = interval_of(np.arange(101.0), confidence=0.5, documents=3)
    >>> round(low, 1), round(high, 1)
    (15.9, 84.1)
    """
    values = values[np.isfinite(values)]
    if not len(values):
        return None, None
    tail = (1.0 - confidence) / 2.0
    if documents is not None:
        if documents < 2:
            return None, None
        tail = float(ndtr(widening(documents, confidence) * ndtri(tail)))
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)


def widening(documents: int, confidence: float = CONFIDENCE) -> float:
    """Returns the factor by which an interval over D resampled documents must be wider.

    Resamples of D documents vary by a factor (D - 1) / D too little, and their mean has the
    distribution of Student's t with D - 1 degrees of freedom.
    """
    tail = (1.0 - confidence) / 2.0
    by_t = stdtrit(documents - 1, tail) / ndtri(tail)
    return float(math.sqrt(documents / (documents - 1)) * by_t)


def interval_row(
    values: np.ndarray, sentences: int, documents: int | None = None
) -> dict[str, Any]:
    """Returns columns of scores.csv: `value`, `low`, `high`, `sentences` and `interval`.

    Args:
        values: (1 + R,) the value on the sentences, and on resamples.
        sentences: number of these sentences.
        documents: D, if documents were drawn.
    """
    low, high = interval_of(values[1:], documents=documents)
    drawn = "sentences" if documents is None else "documents"
    return {
        "value": float(values[0]),
        "low": low,
        "high": high,
        "sentences": sentences,
        "interval": "" if low is None else drawn,
    }
