"""Fits of a score over length: slopes, the length of a loss, a breakpoint.

Everything is computed for all samples at once, one per row: the sentences themselves and their
resamples. A slope is linear in the scores, so that its coefficients are computed once for all scores
and runs on the same sentences.

The weight of a bucket is its number of sentences in the sample. It depends on the text alone, so
that slopes of two runs are comparable; with the inverse of each run's variance they would not be.

Legend: M samples, B buckets, K candidate positions of a breakpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

Range = Literal["all", "to_cap", "beyond_cap"]
RANGES: tuple[Range, ...] = get_args(Range)

FEWEST_BUCKETS = 3  # that a slope is fitted to
WORDS = 10  # that a slope is the change for
TINY = np.finfo(np.float64).tiny  # in place of no weight at all


def inside(first: np.ndarray, last: np.ndarray, part: Range, cap: int | None) -> np.ndarray:
    """Which intervals of length lie entirely in a range: a bool for each.

    Args:
        first, last: the lengths they begin and end with.
        cap: longest training sentence; None: no interval is on either side of it.
    """
    if part == "all":
        return np.ones(len(first), dtype=bool)
    if cap is None:
        return np.zeros(len(first), dtype=bool)
    return last <= cap if part == "to_cap" else first > cap


@dataclass(frozen=True)
class LengthAxis:
    """The buckets of some samples of sentences.

    Attributes:
        first, last: (B,) the lengths a bucket begins and ends with, ascending.
        weights: (M, B) sentences.
        lengths: (M, B) their mean length; of a bucket without sentences any finite number.
    """

    first: np.ndarray
    last: np.ndarray
    weights: np.ndarray
    lengths: np.ndarray

    def inside(self, part: Range, cap: int | None) -> np.ndarray:
        """Which buckets (B,) lie entirely in a range."""
        return inside(self.first, self.last, part, cap)

    def slope(self, part: Range, cap: int | None) -> np.ndarray | None:
        """The coefficients of the slope over a range.

        Each range is fitted by a line of its own. In a joint fit that is continuous at the cap, the
        data on one side would change the slope on the other.

        Returns:
            (M, B): the sum of their products with the scores is the change for `WORDS` more words;
            None with fewer than `FEWEST_BUCKETS` in the range.
        """
        if (part, cap) not in self._slopes:
            inside = self.inside(part, cap)
            enough = inside.sum() >= FEWEST_BUCKETS
            self._slopes[part, cap] = (
                WORDS * _coefficients(self.weights * inside, self.lengths) if enough else None
            )
        return self._slopes[part, cap]

    @cached_property
    def _slopes(self) -> dict[tuple[Range, int | None], np.ndarray | None]:
        """Results of `slope`, which are the same for every run and score."""
        return {}

    def lines(self, scores: np.ndarray, cap: int | None) -> list[tuple[float, float]]:
        """The fitted lines of the first sample: of the sides of the cap that have a slope, or of all buckets.

        Args:
            scores: (B,) of the first sample.

        Returns:
            (length, score) of the ends of one line, or of two, one after the other; empty with
            fewer than `FEWEST_BUCKETS`.
        """
        parts = [self.inside(part, cap) for part in RANGES]
        fitted = [part for part in parts if part.sum() >= FEWEST_BUCKETS]  # the first is the whole
        found: list[tuple[float, float]] = []
        for side in fitted[1:] or fitted:
            lengths, weights = self.lengths[0, side], self.weights[0, side]
            line = np.polynomial.Polynomial.fit(lengths, scores[side], 1, w=np.sqrt(weights))
            found += [(float(end), float(line(end))) for end in (lengths[0], lengths[-1])]
        return found

    @cached_property
    def _bends(self) -> tuple[np.ndarray, np.ndarray]:
        """Lengths (K,) where a line may bend, and coefficients (K, M, B) of what a bend explains."""
        if len(self.first) < 2 * FEWEST_BUCKETS:
            return np.zeros(0), np.zeros((0, *self.weights.shape))
        places = np.arange(self.last[FEWEST_BUCKETS - 1], self.first[-FEWEST_BUCKETS])
        coefficients = [
            _direction(self.weights, np.maximum(self.lengths - place, 0), self.lengths)
            for place in places
        ]
        return places.astype(np.float64), np.stack(coefficients)

    def breakpoints(self, scores: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Where a line of two pieces fits best, its bend anywhere with `FEWEST_BUCKETS` either side.

        Args:
            scores: (M, B).

        Returns:
            (M,) lengths, -inf where the best place is the first that was tried and inf where it is
            the last; and p of the first sample's bend: the share of the other samples whose
            deviations from it bend as much somewhere. None with too few buckets.
        """
        places, coefficients = self._bends
        if len(places) < FEWEST_BUCKETS:
            return None
        explained = np.einsum("kmb,mb->km", coefficients, scores) ** 2
        best = explained.argmax(axis=0)
        found = np.concatenate([[-np.inf], places[1:-1], [np.inf]])[best]
        deviations = scores[1:] - scores[0]
        chance = np.einsum("kmb,mb->km", coefficients[:, 1:], deviations) ** 2
        exceeding = (chance.max(axis=0) >= explained[:, 0].max()).sum()
        return found, (float(exceeding) + 1) / (len(deviations) + 1)

    def losses(
        self, scores: np.ndarray, shares: Sequence[float], *, higher_is_better: bool
    ) -> list[np.ndarray]:
        """The lengths at which shares of the best bucket's score are lost beyond that bucket.

        The best is the bucket that is best with its two neighbours: the highest of many that are
        alike is high by chance. From there on the curve is the nearest one that never rises
        (isotonic regression), straight between the mean lengths of two buckets. Where lower is
        better, a share is added to the best score, and the curve never falls.

        Args:
            scores: (M, B).

        Returns:
            For each share (M,) in words; infinite where that much is not lost.
        """
        sign = 1.0 if higher_is_better else -1.0
        rows = np.arange(len(scores))
        best = _with_neighbours(self.weights, sign * scores).argmax(axis=1)
        heights = _never_rising(self.weights, sign * scores, best)
        beyond = np.arange(heights.shape[1]) > best[:, None]
        found = []
        for share in shares:
            limit = heights[rows, best] * (1 - sign * share)
            lost = beyond & (heights <= limit[:, None])
            after = lost.argmax(axis=1)
            before = np.maximum(after - 1, 0)
            high, low = heights[rows, before], heights[rows, after]
            with np.errstate(divide="ignore", invalid="ignore"):
                part = (high - limit) / (high - low)
                lengths = self.lengths[rows, before] * (1 - part) + self.lengths[rows, after] * part
            found.append(np.where(lost.any(axis=1), lengths, np.inf))
        return found


def _with_neighbours(weights: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The mean score of each bucket and those beside it: (M, B)."""

    def summed(values: np.ndarray) -> np.ndarray:
        around = np.pad(values, ((0, 0), (1, 1)))
        return around[:, :-2] + around[:, 1:-1] + around[:, 2:]

    return summed(weights * scores) / np.maximum(summed(weights), TINY)


def _never_rising(weights: np.ndarray, scores: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The nearest curve (M, B) that never rises from a bucket on; before it, infinitely low.

    Its value at a bucket is the least over all beginnings up to it, of the greatest over all ends
    from it, of the mean between the two (Robertson, Wright and Dykstra, 1988, theorem 1.4.4).

    Args:
        start: (M,) the bucket that it begins with.
    """
    counts = np.cumsum(np.pad(weights, ((0, 0), (1, 0))), axis=1)
    totals = np.cumsum(np.pad(weights * scores, ((0, 0), (1, 0))), axis=1)
    fitted = np.full_like(scores, np.inf)
    size = scores.shape[1]
    for begin in range(size):
        means = (totals[:, begin + 1 :] - totals[:, begin : begin + 1]) / np.maximum(
            counts[:, begin + 1 :] - counts[:, begin : begin + 1], TINY
        )
        greatest = np.maximum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        allowed = np.where(begin >= start[:, None], greatest, np.inf)
        fitted[:, begin:] = np.minimum(fitted[:, begin:], allowed)
    return np.where(np.arange(size) >= start[:, None], fitted, -np.inf)


def _coefficients(weights: np.ndarray, regressor: np.ndarray) -> np.ndarray:
    """(M, B): the sum of products with scores (M, B) is the weighted least-squares coefficient of a
    regressor (M, B) beside a constant."""
    left = _residual(weights, regressor)
    with np.errstate(divide="ignore", invalid="ignore"):
        return weights * left / (weights * left**2).sum(axis=-1, keepdims=True)


def _direction(weights: np.ndarray, regressor: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(M, B): the square of the sum of products with scores (M, B) is the weighted sum of squares
    that a regressor explains beside a constant and another regressor."""
    left = _residual(weights, regressor, other)
    with np.errstate(divide="ignore", invalid="ignore"):
        return weights * left / np.sqrt((weights * left**2).sum(axis=-1, keepdims=True))


def _residual(weights: np.ndarray, regressor: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """The residual of a regressor (M, B) on a constant and others: weighted Gram-Schmidt."""
    kept: list[np.ndarray] = []
    for column in [np.ones_like(regressor), *others, regressor]:
        for earlier in kept:
            products = (weights * earlier * column).sum(axis=-1, keepdims=True)
            squares = (weights * earlier**2).sum(axis=-1, keepdims=True)
            with np.errstate(divide="ignore", invalid="ignore"):
                column = column - earlier * (products / squares)
        kept.append(column)
    return kept[-1]
