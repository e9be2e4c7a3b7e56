"""Estimates of a score from one run or several seeds, with confidence intervals.

With fewer than `FEWEST_SEEDS` seeds, the interval is the percentile interval over resamples of the
sentences or documents (`nmt.evaluation.resampling`). This interval accounts for the choice of sentences only.

With n >= `FEWEST_SEEDS` seeds, the interval accounts for the choice of both seeds and sentences. Let
S^2 be the variance of the n values. The variance of their mean is the sum of two terms:

- S^2 / n, with n - 1 degrees of freedom. It contains the variance between seeds, and the interaction of seeds
  and sentences.
- The variance due to the sentences. It is the bootstrap variance of the mean, from which the interaction is
  subtracted, because S^2 / n already contains the interaction.

The interval is a t interval with the degrees of freedom of Satterthwaite (1946), or Welch (1947) for a
difference. With three seeds, S^2 can be far too small by chance. Therefore, the degrees of freedom are
computed with the larger of S^2 / n and the interaction as the first term.

In array shapes, n is the number of runs of a group, and R the number of resamples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.resampling import Interval, interval_of

FEWEST_SEEDS = 3  # minimum number of seeds for an interval that accounts for the choice of seeds


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate and its uncertainty."""

    score: float
    resampled: np.ndarray  # (R,) score on each resample
    sentences: int  # number of sentences
    documents: int | None  # number of resampled documents; None if sentences were resampled
    seeds: int  # number of runs; for a difference, the number in the smaller group
    df: float  # degrees of freedom of `error`
    # standard error over seeds and sentences; None with few seeds
    error_over_seeds: float | None = None
    # variance over seeds beyond the interaction: 0 with few seeds; may be below 0 by chance
    variance_of_seeds: float = 0.0
    df_of_seeds: float = math.inf  # degrees of freedom of `variance_of_seeds`

    @property
    def over_seeds(self) -> bool:
        """Whether the interval accounts for the choice of seeds, not only of sentences."""
        return self.seeds >= FEWEST_SEEDS

    @property
    def drawn(self) -> str:
        """The value in the column `interval` of scores.csv, such as `sentences and seeds`."""
        drawn = "sentences" if self.documents is None else "documents"
        return f"{drawn} and seeds" if self.over_seeds else drawn

    @property
    def error(self) -> float:
        """The standard error over seeds and sentences; with few seeds, over sentences only."""
        return self.error_of_runs if self.error_over_seeds is None else self.error_over_seeds

    @property
    def error_of_runs(self) -> float:
        """The standard error over sentences or documents alone, for these runs."""
        return math.sqrt(self.variance_of_runs)

    @property
    def variance_of_runs(self) -> float:
        """The square of `error_of_runs`."""
        return _variance(self.resampled) * _correction(self.documents)

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Returns the confidence interval; both ends are None if unknown, such as with few seeds and no resamples."""
        if not self.over_seeds:
            return interval_of(self.resampled, confidence, self.documents)
        margin = self.margin(confidence)
        return self.score - margin, self.score + margin

    def margin(self, confidence: float = CONFIDENCE) -> float:
        """Returns half the width of the t interval."""
        return self.error * float(stdtrit(self.df, (1 + confidence) / 2))


def combined(
    samples: Sequence[np.ndarray], sentences: int, documents: int | None = None
) -> Estimate:
    """Estimates the mean of a group of runs, or the mean of the first group minus the mean of the second.

    Args:
        samples: an array (n, 1 + R) per group. Each row has the score of a run, then its scores on resamples.
        sentences: number of sentences.
        documents: number of resampled documents; None if sentences were resampled.
    """
    # Do not average a single run. This saves a copy for each length of each curve.
    means = [each[0] if len(each) == 1 else each.mean(axis=0) for each in samples]
    score, *_ = values = means[0] - means[1] if len(means) == 2 else means[0]
    df = (sentences if documents is None else documents) - 1.0
    seeds = min(map(len, samples))
    estimate = Estimate(float(score), values[1:], sentences, documents, seeds, df)
    if seeds < FEWEST_SEEDS:
        return estimate
    variance, df, *of_seeds = _over_seeds(samples, estimate.variance_of_runs, documents)
    return Estimate(
        float(score), values[1:], sentences, documents, seeds, df, math.sqrt(variance), *of_seeds
    )


def _over_seeds(
    samples: Sequence[np.ndarray], of_mean: float, documents: int | None
) -> tuple[float, ...]:
    """Returns the variance over seeds and sentences, its degrees of freedom, and `Estimate`'s two values of seeds.

    Example: three seeds with the values 1, 2 and 3 have S^2 / n = 1/3. Assume that over the resamples, the
    mean of the seeds has a variance of 12, and the three differences (seed minus mean) have variances of
    4/3, 0 and 4/3. Then the interaction is (4/3 + 4/3) / 2 / 3 = 4/9, and the total
    variance is 12 - 4/9 + 1/3. S^2 / n is below the interaction, so nothing is left for the seeds alone.

    Args:
        of_mean: bootstrap variance of the mean, or of the difference of two means.
    """
    within, between, least, squares, of_between = 0.0, 0.0, 0.0, 0.0, 0.0
    for sample in samples:
        n = len(sample)
        apart = sample[:, 1:] - sample[:, 1:].mean(axis=0)
        interaction = sum(map(_variance, apart)) * _correction(documents) / (n - 1) / n
        observed = float(sample[:, 0].var(ddof=1)) / n  # S^2 / n
        within += interaction
        between += observed
        of_between += observed**2 / (n - 1)
        least += max(observed, interaction)
        squares += max(observed, interaction) ** 2 / (n - 1)
    shared = max(0.0, of_mean - within)
    if documents is not None and documents > 1:
        squares += shared**2 / (documents - 1)
    return (
        shared + between,
        (shared + least) ** 2 / squares if squares > 0 else math.inf,
        between - within,
        between**2 / of_between if of_between > 0 else math.inf,
    )


def _correction(documents: int | None) -> float:
    """Returns D / (D - 1) for D documents, since the variance over resamples is too small by this factor."""
    return documents / (documents - 1) if documents is not None and documents > 1 else 1.0


def _variance(values: np.ndarray) -> float:
    """Returns the variance of the finite values, or 0 if there are fewer than two."""
    known = values[np.isfinite(values)]
    return float(known.var(ddof=1)) if len(known) > 1 else 0.0
