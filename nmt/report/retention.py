"""Tables of the curves over sentence length, and of retention (score at the long length / score at the short one).

Every group of seeds has a curve (`nmt.evaluation.length_curve`). A pair of groups also has curves of the
difference and of the ratio of their scores. In these curves, the difficulty of the sentences cancels, since both
groups translate the same sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from nmt.evaluation.length_curve import (
    LOST,
    Curve,
    LengthScale,
    difference,
    excess_retention,
    ratio,
)
from nmt.evaluation.scores_csv import VALUE
from nmt.report.runs import FinishedRun

MAX_COMPARED = 6  # maximum number of groups that are compared in pairs; 6 groups make 15 pairs
CURVES = ("set", "key", "kind", "name", "other", "words", *VALUE, "sentences", "interval")
"""Columns of the curves. `kind` is `score`, `constant` (a system with a constant error rate), `seed`
(one run of a group, without a band), `difference`, `ratio` or `domain`. `name` is a group or a run. `other`
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
difference), `retention` (their ratio), `retention at a constant error rate`, `excess retention` (the first
retention minus the second), and `10% lost at` (the length at which this share of the score is lost; NaN if it
is not reached)."""
ADJUSTED = "adjusted"  # value of `domain` for curves with the same mix of domains at all lengths
RETAINED, CONSTANT = "retention", "retention at a constant error rate"
EXCESS, CHANGE = "excess retention", "change"

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
            if pair is None:
                continue
            for kind, compared in (("difference", difference(*pair)), ("ratio", ratio(*pair))):
                yield from _points(compared, key=key, kind=kind, name=name, other=control)


def domain_rows(curves: Curves, domain: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a domain's curves, with the columns `CURVES` except `set`."""
    for key, of_key in curves.items():
        for (_, name), curve in of_key.items():
            yield from _points(curve, key=key, kind="domain", name=name, other=domain)


def _points(curve: Curve, **head: str) -> Iterator[dict[str, Any]]:
    columns = curve.lengths, curve.estimates, *curve.band()
    for words, estimate, low, high in zip(*columns, strict=True):
        if np.isfinite(estimate.score):
            ends = {"words": words, "value": estimate.score, "low": low, "high": high}
            drawn = estimate.drawn if np.isfinite(low) else ""
            yield head | ends | {"sentences": estimate.sentences, "interval": drawn}


def retention_rows(
    curves: Curves, keys: Collection[str], scale: LengthScale, domain: str = ""
) -> Iterator[dict[str, Any]]:
    """Yields rows with the columns `RETENTION` except `set`, for the scores `keys`.

    Skips curves that have no retention, for example because too few sentences are near the short length.
    """
    for key, of_key in curves.items():
        for (kind, name), curve in of_key.items():
            if key not in keys or kind != "score":
                continue
            short = curve.kernel.short
            longest = float(curve.lengths[-1])
            long = min(scale.long, int(longest + 1e-9))
            own = curve.relative
            first = curve.at(short)
            last = curve.at(long)
            kept = own.at(long)
            if long <= short or not np.isfinite(kept.score):
                continue
            values: dict[str, tuple[float | None, ...]] = {
                f"at {short:.0f} {scale.unit}": (first.score,),
                f"at {long} {scale.unit}": (last.score,),
                RETAINED: (kept.score, *kept.interval()),
            }
            constant = of_key.get(("constant", name))
            if constant is not None and np.array_equal(curve.ids, constant.ids):
                excess = excess_retention(curve, constant).at(long)
                if np.isfinite(excess.score):
                    values[CONSTANT] = (kept.score - excess.score,)
                    values[EXCESS] = (excess.score, *excess.interval())
            values[CHANGE] = (last.score - first.score,)
            values |= {f"{share:.0%} lost at": curve.lost(share) for share in LOST}
            head = {"key": key, "name": name, "domain": domain, "interval": kept.drawn}
            lengths = {"from": short, "to": long, "longest": longest}
            for statistic, numbers in values.items():
                yield (
                    head
                    | lengths
                    | {"statistic": statistic}
                    | dict(zip(VALUE, numbers, strict=False))
                )
