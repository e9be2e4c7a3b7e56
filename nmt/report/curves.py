"""Curves over sentence length, and what long sentences keep of a score, as frames.

Every group of seeds has a curve (`nmt.evaluation.curves`). Two groups have the curves of their
difference and of their ratio: what makes long sentences hard for both cancels in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from nmt.evaluation.curves import LONG, LOST, SHORT, Curve, difference, ratio
from nmt.evaluation.summary import Measured, length_curves

MAX_COMPARED = 6  # groups whose differences are curves: 15 pairs
CURVES = [
    *("set", "key", "kind", "name", "other", "words", "value", "low", "high"),
    *("sentences", "interval"),
]
"""Columns of the curves. `kind` is `score`, `constant` (a system of a constant error rate), `seed`
(one run of a group, without a band), `difference` or `ratio`; `name` a group or run, `other` the group
that it is compared with; `sentences` the effective number."""
RETENTION = [
    *("set", "key", "name", "short", "long", "score_short", "score_long", "value", "low", "high"),
    *("interval", "longest", "constant", "above", "above_low", "above_high"),
    *(
        f"lost_{share:.2f}{end}".replace(".", "_")
        for share in LOST
        for end in ("", "_low", "_high")
    ),
]
"""Columns of what is kept: the score at `short` and at `long` words, `value` their ratio, `constant`
that of a system of a constant error rate, `above` the first less the second, `longest` the last length of
the curve, and the first lengths at which shares of the score at `short` are lost."""
_TEXTS = ("set", "key", "kind", "name", "other", "interval")


def curve_frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> pd.DataFrame:
    """A frame of the columns `CURVES` or `RETENTION`."""
    numbers = {name: "float64" for name in columns if name not in _TEXTS}
    return pd.DataFrame(list(rows), columns=list(columns)).astype(numbers)


def resampled_words(frame: pd.DataFrame) -> str:
    """What the intervals of a frame are over, from its column `interval`."""
    kinds = sorted(set(frame["interval"]) - {""})
    return (
        "sentences, and seeds where there are three or more" if len(kinds) > 1 else "".join(kinds)
    )


class SetCurves:
    """The curves of one test set.

    Args:
        test_set: its name.
        groups: runs that differ in their seed alone, by the name of the group.
        constant: for a group a system of a constant error rate with the score of its first run.
        keys: of scores.
    """

    def __init__(
        self,
        test_set: str,
        groups: Mapping[str, Mapping[str, Measured]],
        constant: Mapping[str, Measured],
        keys: Sequence[str],
    ) -> None:
        self.test_set, self.groups = test_set, groups
        members = {("score", name): list(runs.values()) for name, runs in groups.items()}
        members |= {("constant", name): [measured] for name, measured in constant.items()}
        self.curves = length_curves(members, keys)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows of the columns `CURVES`."""
        for key, curves in self.curves.items():
            for (kind, name), curve in curves.items():
                yield from self._rows(curve, key, kind, name)
                runs = self.groups[name] if kind == "score" else {}
                for n, run in enumerate(runs if len(runs) > 1 else ()):
                    alone = {"key": key, "kind": "seed", "name": run}
                    for words, value in zip(curve.lengths, curve.samples[0][n, 0], strict=True):
                        if np.isfinite(value):
                            yield {"set": self.test_set, **alone, "words": words, "value": value}
            names = [name for kind, name in curves if kind == "score"][:MAX_COMPARED]
            for a, b in combinations(names, 2):
                pair = curves["score", a], curves["score", b]
                yield from self._rows(difference(*pair), key, "difference", a, b)
                yield from self._rows(ratio(*pair), key, "ratio", a, b)

    def _rows(
        self, curve: Curve, key: str, kind: str, name: str, other: str = ""
    ) -> Iterator[dict[str, Any]]:
        columns = curve.lengths, curve.estimates, *curve.band()
        for words, estimate, low, high in zip(*columns, strict=True):
            if np.isfinite(estimate.score):
                yield {
                    **{"set": self.test_set, "key": key, "kind": kind, "name": name},
                    **{"other": other, "words": words, "value": estimate.score},
                    **{"low": low, "high": high, "sentences": estimate.sentences},
                    "interval": estimate.drawn if np.isfinite(low) else "",
                }

    def retention(self, keys: Collection[str]) -> Iterator[dict[str, Any]]:
        """Rows of the columns `RETENTION` of some scores, which are better when higher.

        There are none if sentences of `SHORT` words are too few.
        """
        for key in filter(keys.__contains__, self.curves):
            for (kind, name), curve in self.curves[key].items():
                longest = float(curve.lengths[-1])
                long = LONG if longest >= LONG else int(longest)
                first, last = curve.at(SHORT), curve.at(long)
                kept = curve.retention(SHORT, long) if long > SHORT else None
                if kind != "score" or first is None or last is None or kept is None:
                    continue
                if not np.isfinite([first.score, last.score, kept.score]).all():
                    continue
                low, high = kept.interval()
                row = {"set": self.test_set, "key": key, "name": name, "short": SHORT, "long": long}
                row |= {"score_short": first.score, "score_long": last.score, "longest": longest}
                row |= {"value": kept.score, "low": low, "high": high, "interval": kept.drawn}
                constant = self.curves[key].get(("constant", name))
                own, flat = curve.relative(SHORT), constant and constant.relative(SHORT)
                if own and flat and (above := difference(own, flat).at(long)) is not None:
                    row |= {"constant": kept.score - above.score, "above": above.score}
                    row |= zip(("above_low", "above_high"), above.interval(), strict=True)
                for share in LOST:
                    name = f"lost_{share:.2f}".replace(".", "_")
                    names = (name + end for end in ("", "_low", "_high"))
                    row |= zip(names, curve.lost(share, SHORT), strict=True)
                yield row
