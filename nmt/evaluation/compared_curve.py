"""Compares two length curves (`nmt.evaluation.length_curve`): their difference, with a simultaneous band.

Array shapes: U resampled units (sentences or documents), G lengths of the curve, R resamples.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.length_curve import Curve
from nmt.evaluation.resampling import resampled_sums, signed_sums


class ComparedCurve(Curve):
    """The difference of two curves, with a band that holds at all lengths together.

    For two equal systems, the band excludes equality at one or more lengths in 5 % of the cases. Its width has
    two parts, whose squares are added:

    - What the choice of sentences contributes, and what the seeds make of each sentence. It differs from length
      to length, so its quantile is that of the largest deviation over all lengths, in standard errors. Each
      resample of the sentences is divided by its own standard error, which is computed from the influence of each
      sentence (bootstrap-t; Efron and Tibshirani, 1993, section 12.5). Resamples of few documents would make
      the band too wide. So the influence of each document gets a random sign instead (wild bootstrap; Cameron,
      Gelbach and Miller, 2008), as if some documents swapped their translations by the two systems. A document
      with a large share of the words at a length pulls the difference towards its own. So the standard error
      of such a resample comes from the influences minus the document's share of their sum.
    - What the seeds contribute beyond it (`Estimate.variance_of_seeds`). A better seed is better at most lengths, so
      this part has the quantile of Student's t at a single length. But over all lengths, the variance of a few
      seeds is almost surely too small at one of them. So the variance at a length is at least what the variances
      at all lengths suggest, if a better seed is better by the same percentage of the score everywhere.
    """

    @cached_property
    def band(self) -> tuple[np.ndarray, np.ndarray]:
        resamples = self.samples[0].shape[1] - 1
        unknown = np.full_like(self.score, np.nan)
        terms = self.influence() if resamples else unknown[:0]
        if len(terms) < 3:  # the signs of two documents have no standard error
            return unknown, unknown
        quantile = self._largest_deviation(terms, np.isfinite(self.score))
        if not np.isfinite(quantile):
            return unknown, unknown
        of_runs, of_seeds, df = np.array(
            [
                (each.variance_of_runs, each.variance_of_seeds, each.df_of_seeds)
                for each in self.estimates
            ]
        ).T
        of_seeds = np.maximum(of_seeds, self._proportional(of_seeds, of_runs))
        by_t = stdtrit(df, (1 + CONFIDENCE) / 2)
        widths = np.sqrt(quantile**2 * of_runs + by_t**2 * np.maximum(of_seeds, 0))
        return self.score - widths, self.score + widths

    def _proportional(self, of_seeds: np.ndarray, of_runs: np.ndarray) -> np.ndarray:
        """Returns the variances (G,) that are proportional to the squared score and fit those of the seeds best.

        The fit is by least squares. A variance of the seeds is as uncertain as the variance of the runs at the
        length is large, so both sides are divided by it.
        """
        squares = self.samples[0][:, 0].mean(axis=0) ** 2
        fits = np.isfinite(squares) & (of_runs > 0)
        given, wanted = squares[fits] / of_runs[fits], of_seeds[fits] / of_runs[fits]
        return squares * (given @ wanted) / max(given @ given, np.finfo(float).tiny)

    def _largest_deviation(self, terms: np.ndarray, known: np.ndarray) -> float:
        """Returns the quantile of the largest deviation over all lengths, in standard errors.

        Args:
            terms: influence (U, G) of U sentences or documents.
            known: (G,) whether the curve has a value at a length.
        """
        size = len(terms)
        terms = (terms - terms.mean(axis=0))[:, known]
        squares = (terms**2).sum(axis=0)
        resampled = np.array([each.resampled for each in self.estimates]).T  # (R, G)
        if self.documents is None:
            deviations = resampled[:, known] - self.score[known]
            sums = resampled_sums(np.concatenate([terms, terms**2], axis=1), len(resampled))[1:]
            total, of_resample = np.split(sums, 2, axis=1)
            variances = of_resample - total**2 / size
        else:
            assert self.shares is not None
            shares = self.shares[:, known]
            sums = signed_sums(np.concatenate([terms, shares * terms], axis=1), len(resampled))
            deviations, of_shares = np.split(sums, 2, axis=1)
            # The sum of (signed term - share * deviation)^2
            variances = squares + deviations**2 * (shares**2).sum(axis=0)
            variances -= 2 * deviations * of_shares
            variances *= size / (size - 1)
        # It is 0 where each signed term is its document's share of their sum.
        variances[variances < 1e-9 * squares] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = np.nanmax(np.abs(deviations) / np.sqrt(variances), axis=1, initial=0.0)
            return float(np.quantile(largest, CONFIDENCE))


def difference(first: Curve, second: Curve) -> ComparedCurve:
    """Subtracts the second curve from the first; both must use the same sentences."""
    samples = [*first.samples, *second.samples]
    return ComparedCurve(
        first.kernel,
        samples,
        first.ids,
        first.documents,
        influence=lambda: first.influence() - second.influence(),
        shares=first.shares,
    )
