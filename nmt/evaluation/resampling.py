"""Bootstrap of scores that are functions of sums over sentences.

The input is a row of numbers for each sentence, and a function of the summed rows. For BLEU, a row has ten
statistics. For the alignment error rate, it has counts of links. For a mean, it has a value and a count.

The bootstrap (Efron, 1979; Koehn, 2004, for BLEU) draws N sentences with replacement. All resamples
are summed in one matrix product. The random draws depend only on the numbers of resamples and sentences. So
all scores and runs on a test set use the same resamples, and the resampled scores of two runs can be subtracted.

Sentences of one document are similarly difficult. Therefore, if the documents are known, whole documents are
drawn instead of sentences. Resamples of few documents vary too little, so their intervals are widened with
Student's t distribution (expanded percentile interval of Hesterberg, 2015).

Array shapes: N sentences, D documents, F numbers per sentence, R resamples.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from nmt.config.keys import CONFIDENCE

SEED = 12345  # fixed, so that two runs on one test set use the same resamples
CHUNK = 1 << 22  # maximum number of sentences to draw at a time, which limits memory

Interval = tuple[float | None, float | None]  # lower and upper end; both are None if unknown
Combine = Callable[[np.ndarray], np.ndarray]  # (..., F) sums -> (...) values


def resampled_sums(
    rows: np.ndarray, resamples: int, documents: np.ndarray | None = None
) -> np.ndarray:
    """Sums rows over all sentences, and over each resample of the sentences or documents.

    Args:
        rows: (N, F) numbers of each sentence, N >= 1. Sums of integers are exact up to 2^53.
        resamples: number R of resamples. The draws depend only on R and on the number of sentences or documents.
        documents: (N,) document index of each sentence, or None to resample sentences.

    Returns:
        (1 + R, F) float64: the sums over all sentences, then over each resample.
    """
    values = np.asarray(rows, dtype=np.float64)
    if documents is not None:
        values = sums_by_document(values, documents)
    few = len(values) * resamples <= CHUNK
    draws = (_remembered_draws if few else _draws)(len(values), resamples)
    drawn = (part.astype(np.float64) @ values for part in draws)
    return np.concatenate([values.sum(axis=0, keepdims=True), *drawn])


def signed_sums(terms: np.ndarray, resamples: int) -> np.ndarray:
    """Sums the rows of terms (U, G) with random signs, R times: (R, G)."""
    generator = np.random.default_rng(SEED)
    size = len(terms)
    step = max(1, CHUNK // size)
    counts = [min(step, resamples - start) for start in range(0, resamples, step)]
    bits = (generator.integers(2, size=(count, size), dtype=np.int8) for count in counts)
    return np.concatenate([(2.0 * part - 1.0) @ terms for part in bits])


def sums_by_document(rows: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """Sums the rows (N, F) of each document: (D, F), in ascending order of the document indices (N,)."""
    _, index = np.unique(documents, return_inverse=True)
    order = np.argsort(index, kind="stable")
    first = np.flatnonzero(np.diff(index[order], prepend=-1))
    return np.add.reduceat(rows[order], first, axis=0)


def number_documents(names: Iterable[Any]) -> np.ndarray | None:
    """Returns a document index (N,) for the document name of each sentence.

    Indices start at 0, in order of first appearance. Returns None if a name is None, or if there are no names.
    """
    listed = list(names)
    if None in listed or not listed:
        return None
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in listed])


def count_documents(documents: np.ndarray | None) -> int | None:
    """Counts the distinct document indices (N,) of sentences; returns None if the documents are unknown."""
    return None if documents is None else len(np.unique(documents))


def _draws(size: int, resamples: int) -> Iterator[np.ndarray]:
    """Yields how often each resample draws each sentence, in chunks (r, N) of r resamples."""
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
    """Returns all draws for a small test set; they are cached for other scores and runs."""
    return [*_draws(size, resamples)]


def interval_of(
    values: np.ndarray, confidence: float = CONFIDENCE, documents: int | None = None
) -> Interval:
    """Returns the percentile interval of resampled values (R,); values that are not finite are ignored.

    Args:
        documents: number of resampled documents (the interval is then widened); None if sentences were resampled.

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
    values = np.sort(values)
    return _quantile(values, tail), _quantile(values, 1.0 - tail)


def _quantile(ordered: np.ndarray, share: float) -> float:
    """Returns the same quantile of sorted values as `np.quantile`, which takes six times as long for 1,000 values."""
    place = share * (len(ordered) - 1)
    below = int(place)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    rest = place - below
    # NumPy, too, starts from the nearer of the two values
    return float(low + (high - low) * rest if rest < 0.5 else high - (high - low) * (1 - rest))


@functools.cache
def widening(documents: int, confidence: float = CONFIDENCE) -> float:
    """Returns the factor that corrects the width of an interval over D resampled documents.

    The variance over the resamples is too small by the factor (D - 1) / D. In addition, the mean of D
    documents has Student's t distribution with D - 1 degrees of freedom.
    """
    tail = (1.0 - confidence) / 2.0
    by_t = stdtrit(documents - 1, tail) / ndtri(tail)
    return float(math.sqrt(documents / (documents - 1)) * by_t)


def interval_row(
    values: np.ndarray, sentences: int, documents: int | None = None
) -> dict[str, Any]:
    """Returns the columns `value`, `low`, `high`, `sentences` and `interval` of scores.csv.

    Args:
        values: (1 + R,) the value on all sentences, then the values on resamples.
        sentences: number of sentences.
        documents: number of resampled documents; None if sentences were resampled.
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
