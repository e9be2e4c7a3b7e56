"""Scores as non-parametric functions of sentence length.

The score at a length x is computed from weighted sums of the sentence statistics. The weights are a
Gaussian kernel over log length, with the standard deviation `WIDTH`. The kernel is shifted so that the
mean log length, weighted by the kernel and by the number of words, is log x. Without the shift, the score would
be biased if there were more sentences on one side of x than on the other. The curve has a value only at lengths
with an effective sample size of at least `FEWEST` sentences. The effective sample size (Kish, 1965) is the
squared sum of the weights, divided by the sum of the squared weights.

The bootstrap (`nmt.evaluation.resampling`) sums the weighted statistics of all resamples in one matrix
product. The variance between seeds is estimated as in `nmt.evaluation.estimate`. The band of a curve is
a separate interval at each length; that of a difference of curves holds at all lengths together
(`nmt.evaluation.compared_curve`).

Array shapes: N sentences, U resampled units (sentences or documents), F statistics of a sentence, G lengths
of the curve, R resamples, n runs of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from nmt.config.keys import EDGES
from nmt.evaluation.estimate import Estimate, combined
from nmt.evaluation.measured import CommonSentences, Measured, common_sentences
from nmt.evaluation.resampling import (
    Combine,
    count_documents,
    resampled_sums,
    sums_by_document,
)
from nmt.evaluation.scores import Score

WIDTH = 0.15  # in log length; 50 % of the kernel weight is within 10 % of x, 95 % within 34 %
FEWEST = 30  # minimum effective sample size at a length of a curve
SHORT, LONG = 10, 50  # in words; retention is the score at LONG divided by the score at SHORT
STEP = math.log(LONG / SHORT) / 16  # log ratio of neighbouring lengths of a curve, about log(1.11)
MAX_GAP = 1.5  # a curve is not interpolated between lengths further apart than this factor
BLOCK = 1 << 24  # maximum number of weighted statistics in memory
LOST = (0.10, 0.25, 0.50)  # reports show at which lengths these shares of the score are lost


@dataclass(frozen=True)
class LengthScale:
    """The unit of length of a test set, the two lengths to compare, and the length buckets."""

    unit: str = "words"  # unit of length, in the plural
    short: int = SHORT  # retention is the score at `long` divided by the score at `short`
    long: int = LONG
    edges: Sequence[int] = EDGES  # largest length of each bucket

    def kernel(
        self,
        lengths: Sequence[int] | np.ndarray,
        at: Sequence[float] | None = None,
        fewest: float = FEWEST,
    ) -> Kernel:
        """Computes the kernel of sentences with these lengths (N,)."""
        return kernel(lengths, at, short=self.short, long=self.long, fewest=fewest)

    def weights(self, sentences: CommonSentences) -> Kernel:
        """Computes the kernel of sentences; `length_curves` calls this method by default."""
        return self.kernel(sentences.lengths)


def fitting_scale(lengths: Sequence[int] | np.ndarray, unit: str) -> LengthScale:
    """Returns a suitable scale for a test set with sentences of these lengths (N,).

    The default scale is suitable if at least 90 % of the sentences have at most 60 words, and at least 10 % of
    the words are in sentences of 30 or more words. Otherwise, `short` and `long` are chosen from the lengths.
    About 10 % of the words are in sentences shorter than `short`, and about 10 % in sentences longer than `long`.

    >>> fitting_scale([5, 12, 20, 20, 30, 45], "words").edges
    (10, 20, 30, 40, 50, 60)
    >>> fitting_scale([20, 60, 100, 150, 220, 310], "words")
    LengthScale(unit='words', short=100, long=310, edges=(100, 130, 160, 200, 250, 310))
    """
    ascending = np.sort(np.maximum(np.asarray(lengths, dtype=np.float64), 1))
    shares = np.cumsum(ascending) / ascending.sum()
    short, long = ascending[np.searchsorted(shares, [0.1, 0.9])]
    if np.percentile(ascending, 90) <= EDGES[-1] and long >= 30:
        return LengthScale(unit)
    ends = _rounded(short), max(_rounded(long), _rounded(short) + 5)
    edges = dict.fromkeys(_rounded(edge) for edge in np.geomspace(*ends, len(EDGES)))
    return LengthScale(unit, *ends, tuple(edges))


def _rounded(length: float) -> int:
    """Rounds a length to a multiple of 5 (below 50), of 10 (below 400), or of 50."""
    step = 5 if length < 50 else 10 if length < 400 else 50
    return max(step, int(step * round(length / step)))


Name = TypeVar("Name", bound=Hashable)  # name of a group of runs


@dataclass(frozen=True, eq=False)
class Kernel:
    """The weights of N sentences at G lengths."""

    lengths: np.ndarray  # (G,) ascending, without lengths that have too few sentences
    weights: np.ndarray  # (G, N); the weights at a length sum to its effective sample size
    sentences: np.ndarray  # (G,) effective sample sizes
    short: float = SHORT  # retention is relative to the score at this length

    def sums(
        self, table: np.ndarray, resamples: int, documents: np.ndarray | None = None
    ) -> np.ndarray:
        """Sums the weighted statistics (N, F) of all sentences, and of R resamples: (1 + R, G, F)."""
        size, features = table.shape
        count = max(1, BLOCK // table.size)  # lengths at a time
        parts = []
        for at in range(0, len(self.lengths), count):
            weights = self.weights[at : at + count].T
            rows = (weights[:, :, None] * table[:, None, :]).reshape(size, -1)
            sums = resampled_sums(rows, resamples, documents)
            parts.append(sums.reshape(len(sums), -1, features))
        return np.concatenate(parts, axis=1)

    def influence(
        self, table: np.ndarray, combine: Combine, documents: np.ndarray | None = None
    ) -> np.ndarray:
        """Returns the influence of each sentence or document on a score at each length: (U, G).

        The influence is the product of the weighted statistics and the gradient of the score. The
        gradient is approximated by central differences.
        """
        sums = self.weights @ table  # (G, F)
        steps = 1e-4 * np.abs(sums) + 1e-6
        gradient = np.empty_like(sums)
        for f in range(sums.shape[1]):
            step = np.zeros_like(sums)
            step[:, f] = steps[:, f]
            gradient[:, f] = (combine(sums + step) - combine(sums - step)) / (2 * steps[:, f])
        terms = self.weights.T * (table @ gradient.T)
        return terms if documents is None else sums_by_document(terms, documents)

    def shares(self, documents: np.ndarray | None) -> np.ndarray | None:
        """Returns the share (D, G) of each document in the weights at each length; None if documents are unknown."""
        if documents is None:
            return None
        return sums_by_document((self.weights / self.weights.sum(axis=1)[:, None]).T, documents)


def kernel(
    lengths: Sequence[int] | np.ndarray,
    at: Sequence[float] | None = None,
    *,
    short: float = SHORT,
    long: float = LONG,
    fewest: float = FEWEST,
) -> Kernel:
    """Computes the kernel of a set of sentences.

    Args:
        lengths: (N,) lengths of the sentences; 0 counts as 1.
        at: lengths of the curve, ascending. None means steps of about 11 %, including `short` and `long`.
        short, long: the two lengths that retention compares.
        fewest: minimum effective sample size. Lengths with a smaller sample are left out.
    """
    words = np.maximum(np.asarray(lengths, dtype=np.float64), 1.0)
    # Sentences of the same length have the same weights, so compute these once for each distinct length.
    words, places, counts = np.unique(words, return_inverse=True, return_counts=True)
    logs = np.log(words)
    if at is None:
        ratio_logs = np.log(long / short)
        count = round(ratio_logs / STEP)
        step = ratio_logs / count if count else STEP
        first, last = (np.log(end / short) / step for end in (words.min(), words.max()))
        grid = np.log(short) + step * np.arange(np.ceil(first), np.floor(last) + 1)
        if not count:  # `long` lies between two steps
            grid = np.sort([*grid, np.log(long)])
    else:
        grid = np.log(np.asarray(at, dtype=np.float64))

    def gaussian(centres: np.ndarray) -> np.ndarray:
        exponents = -0.5 * ((logs - centres[:, None]) / WIDTH) ** 2
        return np.exp(exponents - exponents.max(axis=1, keepdims=True))

    centres = np.arange(logs.min() - 4 * WIDTH, logs.max() + 4 * WIDTH, WIDTH / 10)
    by_words = gaussian(centres) * words * counts
    means = by_words @ logs / by_words.sum(axis=1)
    weights = gaussian(np.interp(grid, means, centres))
    total = weights @ counts
    effective = total**2 / (weights**2 @ counts)
    # If no sentence is near a length, its kernel is shifted far away and would count distant sentences. So
    # limit `effective` by the number of sentences near the length.
    near = np.exp(-0.5 * ((logs - grid[:, None]) / WIDTH) ** 2) @ counts
    effective = np.minimum(effective, np.sqrt(2) * near)
    known = effective >= fewest
    weights *= (effective / total)[:, None]
    return Kernel(
        np.exp(grid)[known], np.take(weights[known], places, axis=1), effective[known], short
    )


@dataclass(frozen=True, eq=False)
class Curve:
    """The mean score of a group of runs as a function of length.

    For two groups (`nmt.evaluation.compared_curve`), the value is the mean of the first minus the mean of the second.
    """

    kernel: Kernel  # weights of the sentences
    # for each group, the scores (n runs, 1 + R, G lengths); axis 1: on all sentences, then on R resamples
    samples: Sequence[np.ndarray]
    ids: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # (N,)
    documents: int | None = None  # number of resampled documents; None if sentences were resampled
    worst: float | None = 0.0  # `Score.worst`
    # returns the influence (U, G) of each sentence or document on the value at each length
    influence: Callable[[], Any] = lambda: None
    shares: np.ndarray | None = None  # (D, G) `Kernel.shares`; None if sentences were resampled

    @property
    def lengths(self) -> np.ndarray:
        """The lengths (G,) at which the curve has a value."""
        return self.kernel.lengths

    @cached_property
    def estimates(self) -> list[Estimate]:
        """The estimate at each length; its attribute `sentences` is the effective sample size."""
        counts = self.kernel.sentences.astype(int).tolist()
        return [
            combined([each[:, :, g] for each in self.samples], n, self.documents)
            for g, n in enumerate(counts)
        ]

    @property
    def score(self) -> np.ndarray:
        """The values (G,) of the curve; NaN at lengths with too little data (`Score.enough`)."""
        return np.array([each.score for each in self.estimates])

    @cached_property
    def band(self) -> tuple[np.ndarray, np.ndarray]:
        """The lower ends (G,) and the upper ends (G,) of the intervals; NaN if unknown."""
        ends = [each.interval() for each in self.estimates]
        low, high = np.array(ends, dtype=np.float64).reshape(-1, 2).T
        return low, high

    def at(self, length: float) -> Estimate:
        """Returns the interpolated estimate at a length; the score is NaN outside the curve."""
        if length not in self._known:
            self._known[length] = self._interpolate(length)
        return self._known[length]

    @cached_property
    def _known(self) -> dict[float, Estimate]:
        return {}

    def _interpolate(self, length: float) -> Estimate:
        first, last = self.lengths[[0, -1]]
        inside = first * (1 - 1e-9) <= length <= last * (1 + 1e-9)  # exp(log(10)) > 10
        place = float(np.interp(np.log(length), np.log(self.lengths), np.arange(len(self.lengths))))
        below, above = int(np.floor(place + 1e-9)), int(np.ceil(place - 1e-9))
        inside &= self.lengths[above] <= MAX_GAP * self.lengths[below]
        share = place - below if inside else np.nan
        values = [
            (1 - share) * each[:, :, below] + share * each[:, :, above] for each in self.samples
        ]
        return combined(values, int(self.kernel.sentences[below]), self.documents)

    def alone(self, run: int) -> Curve:
        """Returns the curve of one run of the group, without resamples."""
        return replace(self, samples=[self.samples[0][[run], :1]])

    @cached_property
    def relative(self) -> Curve:
        """What is left of the score: its distance from the worst value, divided by that at the short length."""
        return self.relative_to(self.worst)

    def relative_to(self, zero: float | None) -> Curve:
        """Divides the distance from `zero` by its value at the short length; NaN if this is unknown or 0.

        With several runs, the mean curve is divided by the mean value at the short length.
        """
        (values,) = self.samples
        values = values - (np.nan if zero is None else zero)
        base = values[:, :, np.isclose(self.lengths, self.kernel.short)]
        if not base.size or base[:, 0].mean() == 0:
            base = np.full_like(values[:, :, :1], np.nan)
        # Delta method: `terms` has the same mean and about the same variance as the ratio of means.
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = base.mean(axis=0)
            quotient = values.mean(axis=0) / mean
            terms = quotient + (values - quotient * base) / mean
        return Curve(self.kernel, [terms], self.ids, self.documents)

    @cached_property
    def change(self) -> Curve:
        """The curve minus its value at the short length; NaN if this value is unknown."""
        (values,) = self.samples
        base = values[:, :, np.isclose(self.lengths, self.kernel.short)]
        base = base if base.size else np.full_like(values[:, :, :1], np.nan)
        return replace(self, samples=[values - base])

    def lost(self, share: float) -> tuple[float | None, ...]:
        """Finds the first length at which the score is at most (1 - share) times its value at the short length.

        Returns:
            Three lengths at which the relative curve, the lower edge of its band, and the upper edge
            fall to 1 - `share`. The last two lengths are a confidence interval of the first one. A length
            is None if the curve or edge does not fall so far.
        """
        curve = self.relative
        parts = (curve.score, *curve.band)
        beyond = self.lengths >= self.kernel.short * (1 - 1e-9)
        return tuple(_first_below(self.lengths, part, 1 - share, beyond) for part in parts)


def length_curves(
    groups: Mapping[Name, Sequence[Measured]],
    keys: Iterable[str],
    weights: Callable[[CommonSentences], Kernel] = LengthScale().weights,
    resamples: int | None = None,
    *,
    masked: bool = True,
) -> dict[str, dict[Name, Curve]]:
    """Computes the length curve of each score for each group of runs.

    Groups without the score are left out. All other groups use the same sentences: those for which all runs
    have the score. So any two curves of a score can be compared.

    Args:
        groups: runs on one test set, by group name. The runs of a group differ only in their seed.
        resamples: number R of resamples, or None for the number in the settings of the runs.
        masked: whether a score is NaN at lengths with too little data (`Score.enough`).

    Returns:
        Curves by key of the score, then by group name. A score is left out if the groups have too few
        common sentences of similar length.
    """
    curves: dict[str, dict[Name, Curve]] = {}
    # resampled sums, for scores of the same statistics
    known: dict[tuple[bytes, bytes], np.ndarray] = {}
    for key in keys:
        having = {
            name: runs for name, runs in groups.items() if all(r.has(key).any() for r in runs)
        }
        common = common_sentences([*chain(*having.values())], key) if having else None
        if common is None or not len(common.ids) or not len((of_length := weights(common)).lengths):
            continue
        tables = iter(common.tables)
        shares = of_length.shares(common.documents)
        curves[key] = {}
        for name, runs in having.items():
            score = runs[0].scores[key]
            of_group = [*islice(tables, len(runs))]
            values = []
            for table in of_group:
                place = blake2b(common.ids.data).digest(), blake2b(table.data).digest()
                if place not in known:
                    count = runs[0].resamples if resamples is None else resamples
                    known[place] = of_length.sums(table, count, common.documents)
                values.append((score.curve if masked else score.combine)(known[place]))
            curves[key][name] = Curve(
                of_length,
                [np.stack(values)],
                common.ids,
                count_documents(common.documents),
                score.worst,
                partial(_remembered, partial(_mean_influence, of_length, of_group, score, common)),
                shares,
            )
    return curves


def separate_curves(
    groups: Mapping[Name, Sequence[Measured]],
    keys: Iterable[str],
    weights: Callable[[CommonSentences], Kernel],
) -> dict[str, dict[Name, Curve]]:
    """Computes curves like `length_curves`, but each group uses all its sentences, not only common ones."""
    curves: dict[str, dict[Name, Curve]] = {}
    weights = shared(weights)
    for name, runs in groups.items():
        for key, own in length_curves({name: runs}, keys, weights).items():
            curves.setdefault(key, {}).update(own)
    return curves


def shared(weights: Callable[[CommonSentences], Kernel]) -> Callable[[CommonSentences], Kernel]:
    """Returns `weights` with a cache: groups and scores on the same sentences share one kernel."""
    kernels: dict[tuple[bytes, ...], Kernel] = {}

    def of_sentences(common: CommonSentences) -> Kernel:
        domains = () if common.domains is None else (common.domains.tobytes(),)
        place = (common.ids.tobytes(), common.lengths.tobytes(), *domains)
        if place not in kernels:
            kernels[place] = weights(common)
        return kernels[place]

    return of_sentences


@lru_cache(maxsize=8)
def _remembered(influence: Callable[[], np.ndarray]) -> np.ndarray:
    """Returns the influence on a curve, and keeps it for the comparisons of the same score."""
    return influence()


def _mean_influence(
    of_length: Kernel, tables: Sequence[np.ndarray], score: Score, common: CommonSentences
) -> np.ndarray:
    terms = [of_length.influence(table, score.combine, common.documents) for table in tables]
    return np.mean(terms, axis=0)


def excess_retention(curve: Curve, constant: Curve) -> Curve:
    """Subtracts the relative curve of the simulated systems from that of the models, for each seed.

    Both curves must use the same sentences. A negative value means that long sentences lose more of
    the score than constant error rates explain.
    """
    (own,) = curve.relative.samples
    (simulated,) = constant.relative.samples
    return replace(curve.relative, samples=[own - simulated])


def _first_below(
    lengths: np.ndarray, values: np.ndarray, threshold: float, allowed: np.ndarray
) -> float | None:
    """Interpolates the first allowed length where the curve is at most `threshold`; None if there is no such length."""
    logs = np.log(lengths)
    for place in np.flatnonzero((values <= threshold) & allowed).tolist()[:1]:
        before, after = values[place - 1 : place + 1] if place else (values[0], values[0])
        share = 1.0 if before == after else (before - threshold) / (before - after)
        return float(np.exp(logs[place - 1] + share * (logs[place] - logs[place - 1])))
    return None
