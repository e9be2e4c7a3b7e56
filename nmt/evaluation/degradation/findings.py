"""The fall of a score with length as results.json and the tables hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.degradation.curve import Curve
from nmt.evaluation.degradation.estimate import FEWEST_SEEDS, Group, estimate
from nmt.evaluation.degradation.fit import FEWEST_BUCKETS, RANGES
from nmt.evaluation.resampling import SEED

LOSSES = {"tenth": 0.1, "half": 0.5}  # of the best bucket, by their key
LEVEL = 0.05  # of the test for a breakpoint


def degradation_of(group: Group, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """How a score falls with length: `degradation.<score>` of results.json.

    Returns:
        By range `slope` ({score, low, high} or None); `losses` by key of `LOSSES`, and `breakpoint`,
        each {status, score, low, high} or None where it is not defined: `status` is `found`, `none`,
        `before the data` or `beyond the data`, and an end that is None lies outside the data;
        `line`: the fit as a list of [length, score], None without one.
    """
    found: dict[str, Any] = {part: {"slope": _slope(group, part, confidence)} for part in RANGES}
    axis = group.curves[0].text.axis
    means, resampled = _mean_curves(group)
    higher = group.curves[0].score.higher_is_better
    losses = dict.fromkeys(LOSSES)
    breakpoint = None
    if len(axis.first) >= FEWEST_BUCKETS and np.isfinite(means).all():
        samples = np.concatenate([means[None], resampled])
        if higher is not None:
            found_lengths = axis.losses(samples, [*LOSSES.values()], higher_is_better=higher)
            losses = {
                key: _loss(lengths, confidence)
                for key, lengths in zip(LOSSES, found_lengths, strict=True)
            }
        breakpoint = _breakpoint(axis.breakpoints(samples), confidence)
    line = axis.lines(means, group.max_length) if np.isfinite(means).all() else []
    return {
        **found,
        "losses": losses,
        "breakpoint": breakpoint,
        "line": [list(point) for point in line] or None,
    }


def compare_degradation(a: Group, b: Group, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Two groups on one text, the first less the second.

    Returns:
        By range `slope` and `score`, each `Estimate.report` or None.
    """
    found: dict[str, Any] = {}
    for part in RANGES:
        measured = {what: estimate(a, what, part, against=b) for what in ("slope", "score")}
        found[part] = {
            what: None if each is None else each.report(confidence)
            for what, each in measured.items()
        }
    return found


def _slope(group: Group, part: Any, confidence: float) -> dict[str, Any] | None:
    measured = estimate(group, "slope", part)
    if measured is None:
        return None
    low, high = measured.interval(confidence)
    return {"score": measured.score, "low": low, "high": high}


def _mean_curves(group: Group) -> tuple[np.ndarray, np.ndarray]:
    """The mean curve over the runs (B,) and its resamples (R, B).

    With enough seeds the runs are resampled, too. Lengths of losses and breakpoints are read from the
    mean curve, not averaged over runs: a single run may have none.
    """
    curves: Sequence[Curve] = group.curves
    scores = np.stack([curve.buckets for curve in curves])  # (n, M, B)
    n, resamples = len(curves), scores.shape[1] - 1
    if n < FEWEST_SEEDS:
        return scores[:, 0].mean(axis=0), scores[:, 1:].mean(axis=0)
    drawn = np.random.default_rng(SEED).integers(n, size=(n, resamples))
    picked = scores[drawn, np.arange(1, resamples + 1)]  # (n, R, B)
    return scores[:, 0].mean(axis=0), picked.mean(axis=0)


def located(
    status: str, score: float | None = None, low: float | None = None, high: float | None = None
) -> dict[str, Any]:
    """The result of looking for a length, as results.json holds it."""
    return {"status": status, "score": score, "low": low, "high": high}


def _loss(lengths: np.ndarray, confidence: float) -> dict[str, Any]:
    """The length of a loss, from the lengths (M,) of the sample and of its resamples."""
    low, high = _ends(lengths[1:], confidence)
    if np.isfinite(lengths[0]):
        return located("found", float(lengths[0]), low, high)
    return located("none" if low is None and len(lengths) > 1 else "beyond the data", None, low)


def _breakpoint(found: tuple[np.ndarray, float] | None, confidence: float) -> dict[str, Any] | None:
    if found is None:
        return None
    lengths, p = found
    if p > LEVEL:
        return located("none")
    low, high = _ends(lengths[1:], confidence)
    if not np.isfinite(lengths[0]):
        side = "before" if lengths[0] < 0 else "beyond"
        return located(f"{side} the data", None, low, high)
    return located("found", float(lengths[0]), low, high)


def _ends(lengths: np.ndarray, confidence: float) -> tuple[float | None, float | None]:
    """Ends of the percentile interval of lengths, None of one outside the data (infinite)."""
    if not len(lengths):
        return None, None
    tail = (1 - confidence) / 2
    ends = np.quantile(lengths, [tail, 1 - tail], method="nearest")
    low, high = (float(end) if np.isfinite(end) else None for end in ends)
    return low, high
