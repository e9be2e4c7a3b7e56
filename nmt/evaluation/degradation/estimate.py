"""Estimates of a slope or score, or of a difference, with intervals and tests over seeds and sentences.

The sentences are drawn once for all runs, so that a resample of a mean over seeds, or of a
difference, is the mean or the difference of resamples.

With fewer than `FEWEST_SEEDS` seeds the interval is the percentile interval of these resamples. It
is an interval over sentences, for the trained models at hand. With n >= `FEWEST_SEEDS` seeds it is
an interval over seeds and sentences. Let S^2 be the variance of the n figures. The variance of their
mean has two parts: S^2 / n, with n - 1 degrees of freedom, for the seeds and for the interaction of
seeds and sentences; and the variance that is due to the sentences, which all seeds share: the
bootstrap's variance of the mean, less the interaction, which S^2 / n holds already. The interval is
a t interval with the degrees of freedom of Satterthwaite (1946), or for a difference Welch (1947).
In these, the variance of the seeds counts as no smaller than the interaction in the bootstrap: that
of three seeds can be far below by chance.

Tests by resamples reject slightly more often than their level (docs/degradation.md). Tests of
equivalence must not: they take the larger of two p values, that of the resamples and that of a t test
with the standard error of the resamples. Its degrees of freedom are those of the smallest bucket,
which are never more than Satterthwaite's.

Legend: n runs of a group, R resamples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.degradation.curve import Curve
from nmt.evaluation.degradation.fit import Range
from nmt.evaluation.resampling import Interval, interval_of
from nmt.evaluation.student import t_probability, t_quantile

FEWEST_SEEDS = 3


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that differ by nothing but their seed, by one score on one text.

    Attributes:
        curves: one a run.
        max_length: longest training sentence; None where it is not known.
        models: what tells the trained model of each run from others; None where it is not known.
    """

    curves: Sequence[Curve]
    max_length: int | None = None
    models: Sequence[str | None] = ()

    def places_of(self, models: Sequence[str | None]) -> list[int] | None:
        """Where the runs of these models are; None unless both have the same ones, each once."""
        places = {model: place for place, model in enumerate(self.models) if model is not None}
        if not len(places) == len(self.models) == len(models) or places.keys() != set(models):
            return None
        return [places[model] for model in models if model is not None]


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate and its uncertainty.

    Attributes:
        score: the figure.
        resampled: (R,) of it.
        sentences: number of sentences it was computed from.
        seeds: number of runs in the smaller group.
        error: its standard error over seeds and sentences; None with too few seeds.
        df: degrees of freedom of `error`, or of the standard error of the resamples.
    """

    score: float
    resampled: np.ndarray = field(repr=False)
    sentences: int
    seeds: int = 1
    error: float | None = None
    df: float = math.inf

    @property
    def of(self) -> str:
        """What interval and p generalise to: other `seeds`, or these `runs` on other sentences."""
        return "runs" if self.error is None else "seeds"

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """The confidence interval; both ends are None without resamples."""
        if self.error is None:
            return interval_of(self.resampled, confidence)
        width = t_quantile((1 + confidence) / 2, self.df) * self.error
        return Interval(self.score - width, self.score + width)

    def p(self, threshold: float = 0.0) -> float | None:
        """The two-sided p value of the null hypothesis that the true value is `threshold`.

        None without resamples.
        """
        tails = self._tails(threshold)
        return None if tails is None else min(1.0, 2 * min(tails))

    def _tails(self, threshold: float) -> tuple[float, float] | None:
        """One-sided p values that the true value is above the threshold, and that it is below."""
        if self.error is None:
            values = self.resampled[np.isfinite(self.resampled)] - threshold
            if not len(values):
                return None
            beyond = (values <= 0).sum() + 1, (values >= 0).sum() + 1
            return float(beyond[0] / (len(values) + 1)), float(beyond[1] / (len(values) + 1))
        return _t_tails(self.score - threshold, self.error, self.df)

    def _careful_tails(self, threshold: float) -> tuple[float, float] | None:
        """As `_tails`, for tests that must not reject more often than their level."""
        tails = self._tails(threshold)
        if tails is None or self.error is not None:
            return tails
        if self.df < 1:  # of one sentence nothing tells how another would be
            return None
        error = math.sqrt(_variance(self.resampled))
        above, below = _t_tails(self.score - threshold, error, self.df)
        return max(tails[0], above), max(tails[1], below)

    def equivalence(self, margin: float, level: float = 0.05) -> dict[str, Any]:
        """Two one-sided tests (Schuirmann, 1987) that the truth is within `margin` of 0.

        Args:
            margin: above 0, in the units of the figure.
            level: of each test: the interval has a confidence of 1 - 2 level.

        Returns:
            `score`, `low`, `high`, `margin`, `p` and `equivalent`: whether p is below the level.
        """
        lower, upper = self._careful_tails(-margin), self._careful_tails(margin)
        p = None if lower is None or upper is None else max(lower[0], upper[1])
        return self._tested(margin, level, p, "equivalent")

    def no_fall(
        self, margin: float, level: float = 0.05, *, higher_is_better: bool = True
    ) -> dict[str, Any]:
        """One one-sided test that the figure is not worse than 0 by `margin` or more.

        Returns:
            As `equivalence`, with `holds` in place of `equivalent`.
        """
        tails = self._careful_tails(-margin if higher_is_better else margin)
        p = None if tails is None else tails[not higher_is_better]
        return self._tested(margin, level, p, "holds")

    def _tested(self, margin: float, level: float, p: float | None, name: str) -> dict[str, Any]:
        low, high = self.interval(1 - 2 * level)
        found = {"score": self.score, "low": low, "high": high, "margin": margin, "p": p}
        return {**found, name: None if p is None else p <= level}

    def report(self, confidence: float = CONFIDENCE) -> dict[str, Any]:
        """`score`, `low`, `high`, `p` (two-sided, against 0), `sentences`, `seeds` and `of`."""
        low, high = self.interval(confidence)
        beside = {"sentences": self.sentences, "seeds": self.seeds, "of": self.of}
        return {"score": self.score, "low": low, "high": high, "p": self.p(), **beside}


def estimate(
    group: Group,
    what: Literal["slope", "score"],
    part: Range = "all",
    *,
    against: Group | None = None,
) -> Estimate | None:
    """A slope over a range of lengths, or the corpus score of its sentences.

    Args:
        group: whose it is: the mean over its runs.
        what: `slope` (for `fit.WORDS` more words) or `score`.
        part: the range. Of two groups with different caps `to_cap` ends at the smaller and
            `beyond_cap` begins at the larger.
        against: a group on the same text: the difference, `group` less `against`, model by model
            where both are of the same models.

    Returns:
        None where it cannot be computed of every run.

    Raises:
        ValueError: where the two groups are of different sentences.
    """
    groups = [group] if against is None else [group, against]
    text = group.curves[0].text
    if any(curve.text is not text for each in groups for curve in each.curves):
        raise ValueError("runs of different sentences: measure them with one call of `curves`")
    cap = shared_cap(groups, part)
    inside = text.inside(part, cap)
    found = [_figures(each, what, part, cap) for each in groups]
    samples = [figures for figures in found if figures is not None]
    if len(samples) < len(groups) or not all(np.isfinite(each[:, 0]).all() for each in samples):
        return None
    if what == "slope":
        inside = inside & text.fitted
    sentences = text.sentences[inside]
    smallest = int(sentences.min()) if what == "slope" else None
    return combined(per_model(groups, samples), int(sentences.sum()), smallest)


def shared_cap(groups: Sequence[Group], part: Range) -> int | None:
    """The cap of groups that a range is measured with; None where one is not known."""
    caps = [group.max_length for group in groups]
    known = [cap for cap in caps if cap is not None]
    if len(known) < len(caps):
        return None
    return max(known) if part == "beyond_cap" else min(known)


def _figures(group: Group, what: str, part: Range, cap: int | None) -> np.ndarray | None:
    """(n, 1 + R) figures of each run, of the sentences and of their resamples."""
    if what == "score":
        scores = [curve.corpus(part, cap) for curve in group.curves]
        known = [score for score in scores if score is not None]
        return np.stack(known) if len(known) == len(scores) else None
    coefficients = group.curves[0].text.axis.slope(part, cap)
    if coefficients is None:
        return None
    return np.stack([(coefficients * curve.buckets).sum(axis=1) for curve in group.curves])


def per_model(groups: Sequence[Group], samples: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """The figures (n, 1 + R) of each group's runs; the paired differences of two groups of the same models.

    The effect of the seed is in both figures of a model, and cancels.
    """
    if len(groups) < 2 or not groups[0].models:
        return samples
    places = groups[1].places_of(groups[0].models)
    return samples if places is None else [samples[0] - samples[1][places]]


def combined(
    samples: Sequence[np.ndarray], sentences: int, smallest: int | None = None
) -> Estimate:
    """The estimate of the mean of a group's runs, or of the first group's less the second's.

    Args:
        samples: of each group (n, 1 + R): figures of its runs, of the sentences and of resamples.
        sentences: that they are of.
        smallest: of them in the bucket with the fewest; None where they are in one.
    """
    means = [figures.mean(axis=0) for figures in samples]
    values = means[0] if len(means) == 1 else means[0] - means[1]
    score, resampled = float(values[0]), values[1:]
    seeds = min(len(figures) for figures in samples)
    if seeds < FEWEST_SEEDS:
        df = (sentences if smallest is None else smallest) - 1
        return Estimate(score, resampled, sentences, seeds, df=df)
    shared = _variance(resampled)
    between, least, squares = 0.0, 0.0, 0.0
    for figures in samples:
        n = len(figures)
        apart = figures[:, 1:] - figures[:, 1:].mean(axis=0)
        own = sum(map(_variance, apart)) / (n - 1) / n  # of what a seed makes of each sentence
        found = float(figures[:, 0].var(ddof=1)) / n
        shared -= own
        between += found
        least += max(found, own)
        squares += max(found, own) ** 2 / (n - 1)
    shared = max(0.0, shared)
    freedom = (shared + least) ** 2 / squares if squares > 0 else math.inf
    return Estimate(score, resampled, sentences, seeds, math.sqrt(shared + between), freedom)


def _t_tails(distance: float, error: float, df: float) -> tuple[float, float]:
    """`_tails` of a t test, where the estimate lies `distance` above the threshold."""
    if error == 0.0:
        return float(distance <= 0), float(distance >= 0)
    ratio = distance / error
    return t_probability(-ratio, df), t_probability(ratio, df)


def _variance(values: np.ndarray) -> float:
    """The variance of the finite values; 0 with fewer than two."""
    known = values[np.isfinite(values)]
    return float(known.var(ddof=1)) if len(known) > 1 else 0.0
