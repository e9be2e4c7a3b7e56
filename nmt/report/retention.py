"""Tables of the curves over sentence length, and of what long sentences keep (score at the long and the short length).

Every group of seeds has a curve (`nmt.evaluation.length_curve`). A pair of groups also has curves of the
difference of their scores. There, the difficulty of the sentences cancels, since both groups translate the same
sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from nmt.evaluation.compared_curve import difference
from nmt.evaluation.length_curve import (
    LOST,
    Curve,
    LengthScale,
    excess_retention,
)
from nmt.evaluation.scores import Score
from nmt.evaluation.scores_csv import VALUE
from nmt.report.runs import FinishedRun

MAX_COMPARED = 6  # maximum number of groups that are compared in pairs; 6 groups make 15 pairs
CURVES = ("set", "key", "kind", "name", "other", "words", *VALUE, "sentences", "interval")
"""Columns of the curves. `kind` is `score`, `constant` (a system with a constant error rate), `seed`
(one run of a group, without a band), `difference` or `domain`. `name` is a group or a run. `other`
is the domain, or the group that `name` is compared with. `sentences` is the effective number of sentences."""
RETENTION = (
    "set",
    "key",
    "name",
    "domain",
    "statistic",
    *VALUE,
    "interval",
    "from",
    "to",
    "longest",
)
"""Columns of retention. `from` is the short length, or the first length of an adjusted curve that starts
beyond it. `longest` is the last length of the curve. `to` is the long length, but at most `longest`. An empty
`domain` means all sentences. `statistic` is one of: `at 10 words` and `at 50 words` (scores), `change` (their
difference), `retention` (the ratio of their distances from the worst value of the score), `retention at a constant
error rate`, `excess retention` (the first retention minus the second), `error ratio` (the ratio of two scores whose
best value is 0), `10% lost at` (the length at which this share of the score is lost; NaN if it is not reached), and
`of the median at 10 words` (the score divided by that of the median system)."""
ADJUSTED = "adjusted"  # value of `domain` for curves with the same mix of domains at all lengths
RETAINED, CONSTANT = "retention", "retention at a constant error rate"
EXCESS, CHANGE, ERRORS = "excess retention", "change", "error ratio"
SMALLEST_RATIO = 2  # of two lengths; kernels of closer lengths overlap
SHORT_END_FAILS = 1.2  # a larger retention means that the system fails on short sentences
FEWEST_SYSTEMS = 3  # that have a median

Curves = Mapping[str, Mapping[tuple[str, str], Curve]]  # key of a score -> (kind, name) -> curve


def resampled_words(frame: pd.DataFrame) -> str:
    """Names the units that were resampled for the intervals of a frame, from its column `interval`.

    >>> resampled_words(pd.DataFrame({"interval": ["documents", "documents and seeds", ""]}))
    'documents, and seeds where there are three or more'
    """
    kinds = set(frame["interval"]) - {""}
    seeded = {kind for kind in kinds if kind.endswith(" and seeds")}
    drawn = " or ".join(sorted({kind.removesuffix(" and seeds") for kind in kinds}))
    if seeded and seeded != kinds:
        return f"{drawn}, and seeds where there are three or more"
    return f"{drawn} and seeds" if seeded else drawn


def curve_rows(
    curves: Curves,
    groups: Mapping[str, Sequence[FinishedRun]],
    controls: Sequence[str],
    on_common: Callable[[str, str, str], tuple[Curve, Curve] | None],
) -> Iterator[dict[str, Any]]:
    """Yields rows with the columns `CURVES` except `set`.

    Args:
        curves: curves of one test set.
        groups: the runs of each group, in the same order as in the group's curve.
        controls: names of groups. The first `MAX_COMPARED` are compared, each with all groups before it.
        on_common: returns the curves of two groups for a score, on the sentences that both groups have; None
            if these sentences are too few.
    """
    for key, of_key in curves.items():
        for (kind, name), curve in of_key.items():
            yield from _points(curve, key=key, kind=kind, name=name)
            several = kind == "score" and len(groups[name]) > 1
            for place, run in enumerate(groups[name] if several else ()):
                yield from _points(curve.alone(place), key=key, kind="seed", name=run.label)
        names = [name for name in controls if ("score", name) in of_key][:MAX_COMPARED]
        for control, name in combinations(names, 2):
            pair: tuple[Curve, Curve] | None = of_key["score", name], of_key["score", control]
            if pair and not np.array_equal(pair[0].ids, pair[1].ids):
                pair = on_common(key, name, control)
            if pair is not None:
                compared = difference(*pair)
                yield from _points(compared, key=key, kind="difference", name=name, other=control)


def domain_rows(curves: Curves, domain: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a domain's curves, with the columns `CURVES` except `set`."""
    for key, of_key in curves.items():
        for (_, name), curve in of_key.items():
            yield from _points(curve, key=key, kind="domain", name=name, other=domain)


def _points(curve: Curve, **head: str) -> Iterator[dict[str, Any]]:
    columns = curve.lengths, curve.estimates, *curve.band
    for words, estimate, low, high in zip(*columns, strict=True):
        if np.isfinite(estimate.score):
            ends = {"words": words, "value": estimate.score, "low": low, "high": high}
            drawn = estimate.drawn if np.isfinite(low) else ""
            yield head | ends | {"sentences": estimate.sentences, "interval": drawn}


def retention_rows(
    curves: Curves, scores: Mapping[str, Score], scale: LengthScale, domain: str = ""
) -> Iterator[dict[str, Any]]:
    """Yields rows with the columns `RETENTION` except `set`, for these scores, by key.

    Skips curves without a value at the short or the long length (`nmt.report.notes` says why).
    """
    for key, of_key in curves.items():
        systems = {name: curve for (kind, name), curve in of_key.items() if kind == "score"}
        ends = {
            name: (short, long)
            for name, curve in systems.items()
            if key in scores
            for short, long in [ends_of(curve, scale)]
            if long > short and np.isfinite([curve.at(short).score, curve.at(long).score]).all()
        }
        kept = {
            name: curve.relative.at(ends[name][1]).score
            for name, curve in systems.items()
            if name in ends
        }
        beside_median = len(ends) >= FEWEST_SYSTEMS and any(
            value > SHORT_END_FAILS for value in kept.values()
        )
        for name, (short, long) in ends.items():
            curve = systems[name]
            values: dict[str, tuple[float | None, ...]] = {
                f"at {length:.0f} {scale.unit}": (curve.at(length).score,)
                for length in (short, long)
            }
            if long >= SMALLEST_RATIO * short:
                values |= _compared(curve, of_key.get(("constant", name)), scores[key], long)
            for length in (short, long) if beside_median else ():
                median = np.nanmedian([systems[other].at(length).score for other in ends])
                worst = scores[key].worst
                assert worst is not None
                share = (curve.at(length).score - worst) / (median - worst)
                values[f"of the median at {length:.0f} {scale.unit}"] = (share,)
            head = {"key": key, "name": name, "domain": domain, "interval": curve.at(long).drawn}
            ends_of_row = {"from": round(short), "to": long, "longest": float(curve.lengths[-1])}
            for statistic, numbers in values.items():
                yield (
                    head
                    | ends_of_row
                    | {"statistic": statistic}
                    | dict(zip(VALUE, numbers, strict=False))
                )


def ends_of(curve: Curve, scale: LengthScale) -> tuple[float, int]:
    """Returns the two lengths that retention compares: the long one is at most the last length of the curve."""
    return curve.kernel.short, min(scale.long, int(curve.lengths[-1] + 1e-9))


def _compared(
    curve: Curve, constant: Curve | None, score: Score, long: float
) -> dict[str, tuple[float | None, ...]]:
    """Compares a curve at the long length with its value at the short length."""
    values: dict[str, tuple[float | None, ...]] = {}
    kept = curve.relative.at(long)
    has_retention = np.isfinite(kept.score)
    if has_retention:
        values[RETAINED] = (kept.score, *kept.interval())
    if has_retention and constant is not None and np.array_equal(curve.ids, constant.ids):
        excess = excess_retention(curve, constant).at(long)
        if np.isfinite(excess.score):
            values[CONSTANT] = (kept.score - excess.score,)
            values[EXCESS] = (excess.score, *excess.interval())
    if score.best == 0:
        errors = curve.relative_to(0).at(long)
        values[ERRORS] = (errors.score, *errors.interval())
    change = curve.change.at(long)
    values[CHANGE] = (change.score, *change.interval())
    if has_retention:
        values |= {f"{share:.0%} lost at": curve.lost(share) for share in LOST}
    return values
