"""Tests of claims: p-values of an estimate, and whether it has enough resamples.

Bootstrap tests reject a true null hypothesis slightly more often than their significance level states. To
avoid this, tests of equivalence use the larger of two p-values: one from the resamples, and one from a t test
with the standard error of the resamples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtr

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.estimate import Estimate, combined

PARTS = 10  # number of subsets of the resamples in `enough_resamples`


def p_value(estimate: Estimate, threshold: float = 0.0) -> float | None:
    """Returns the two-sided p-value of the null hypothesis that the true value is `threshold`.

    Returns None if the p-value is unknown, for example with few seeds and no resamples.
    """
    tails = _tails(estimate, threshold)
    return None if tails is None else min(1.0, 2 * min(tails))


def equivalence_p(estimate: Estimate, margin: float) -> float | None:
    """Returns the p-value of the equivalence test within ±`margin` (two one-sided tests; Schuirmann, 1987)."""
    lower = _tails(estimate, -margin, careful=True)
    upper = _tails(estimate, margin, careful=True)
    return None if lower is None or upper is None else max(lower[0], upper[1])


def _tails(
    estimate: Estimate, threshold: float, careful: bool = False
) -> tuple[float, float] | None:
    """Returns two p-values: for the claim that the true value is above the threshold, and that it is below.

    Args:
        careful: whether each p-value is the larger of two: from the bootstrap, and from a t test.
    """
    by_t = _t_tails(estimate.score - threshold, estimate.error, estimate.df)
    if estimate.over_seeds:
        return by_t
    few = careful or estimate.documents is not None
    values = estimate.resampled[np.isfinite(estimate.resampled)] - threshold
    if not len(values) or (few and estimate.df < 1):  # a single sentence has no variance
        return None
    if estimate.documents is not None:
        return by_t
    beyond = (values <= 0).sum() + 1, (values >= 0).sum() + 1
    above, below = (float(count / (len(values) + 1)) for count in beyond)
    return (max(above, by_t[0]), max(below, by_t[1])) if careful else (above, below)


def _t_tails(distance: float, error: float, df: float) -> tuple[float, float]:
    """Returns both one-sided p-values of a t test; `distance` is the estimate minus the threshold."""
    if error == 0.0:
        return float(distance <= 0), float(distance >= 0)
    ratio = distance / error
    return float(stdtr(df, -ratio)), float(stdtr(df, ratio))


def enough_resamples(
    samples: Sequence[np.ndarray], estimate: Estimate, limits: Sequence[float]
) -> bool:
    """Checks that more resamples would not move an end of the interval across a limit.

    The ends of the 90 and 95 % intervals must be more than three standard errors away from each
    limit. The standard errors are estimated from the intervals of `PARTS` subsets of the resamples.
    """
    size = (samples[0].shape[1] - 1) // PARTS
    if not size:
        return True
    parts = [
        combined(
            [each[:, [0, *range(first, first + size)]] for each in samples],
            estimate.sentences,
            estimate.documents,
        )
        for first in range(1, 1 + PARTS * size, size)
    ]
    for confidence in (CONFIDENCE, 2 * CONFIDENCE - 1):  # for two-sided and equivalence tests
        ends = np.array([part.interval(confidence) for part in parts], dtype=np.float64)
        errors = ends.std(axis=0, ddof=1) / PARTS**0.5
        low_high = np.array(estimate.interval(confidence), dtype=np.float64)
        if (np.abs(low_high[:, None] - np.array(limits)) <= 3 * errors[:, None]).any():
            return False
    return True
