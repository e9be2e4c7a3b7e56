"""Compares what several scores say of long sentences, on the same sentences and systems.

If a metric falls with length and people's scores do not, the metric may be what falls, and not the systems. Array
shapes: S systems, R resamples.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.domains import adjusted_kernel
from nmt.evaluation.length_curve import Curve, Kernel, LengthScale, length_curves
from nmt.evaluation.measured import CommonSentences, Measured
from nmt.evaluation.resampling import interval_of
from nmt.evaluation.scores import Score
from nmt.evaluation.scores_csv import VALUE
from nmt.report.declared_scores import PEOPLE, FromFile, known_name
from nmt.report.retention import ADJUSTED, CHANGE, ERRORS, RETAINED, SMALLEST_RATIO, ends_of
from nmt.report.set_comparison import BREVITY, SetComparison
from nmt.report.table import number
from nmt.utils.errors import InputError
from nmt.utils.text import counted

FALLING, LEAST, MOST = "systems that fall", "smallest fall", "largest fall"
DIFFERENCE, SPEARMAN = "difference of retention", "spearman"
FEWEST_RANKED = 4  # minimum number of systems for an interval of Spearman's correlation
AGAINST = (
    *("set", "domain", "score", "against", "statistic", *VALUE),
    *("systems", "from", "to", "sentences", "interval"),
)
"""Columns of against.csv. `statistic` is one of: `retention`, `error ratio` and `change` (means over the systems);
`systems that fall` (the number of systems whose interval is on the worse side of no change), `smallest fall` and
`largest fall` of these; `difference of retention` (minus that of the score `against`); and `spearman` (correlation
with the score `against` over the systems)."""


class _Falls(NamedTuple):
    """How a score changes with length in S systems."""

    measures: dict[str, np.ndarray]  # (S, 1 + R) of retention, error ratio and change
    worse: np.ndarray  # (S, 1 + R) how much worse long sentences are; 0 is no change
    documents: int | None

    def mean(self, name: str, less: np.ndarray | float = 0.0) -> tuple[float | None, ...]:
        """Returns the mean of a measure over the systems, minus another one (1 + R), and its interval."""
        values = self.measures[name].mean(axis=0) - less
        return float(values[0]), *interval_of(values[1:], documents=self.documents)

    def statistics(self) -> dict[str, tuple[float | None, ...]]:
        """Returns the statistics of this score alone."""
        low = [interval_of(each[1:], documents=self.documents)[0] for each in self.worse]
        falls = [
            float(each[0]) for each, end in zip(self.worse, low, strict=True) if (end or 0) > 0
        ]
        found = {name: self.mean(name) for name in self.measures} | {FALLING: (len(falls),)}
        return found | ({LEAST: (min(falls),), MOST: (max(falls),)} if falls else {})


def compare_scores(part: SetComparison, against: str | None) -> list[dict[str, Any]]:
    """Returns rows with the columns `AGAINST` except `set`; [] without a score from a file, or with a single score.

    Args:
        against: key of the score with which the others are compared; None: the first that people gave, else BLEU,
            else the first.

    Raises:
        InputError: if this score is not compared.
    """
    scores = {
        score.key: score
        for score in part.tested
        if score.by_length
        and score.higher_is_better is not None
        and score not in BREVITY
        and any(run.has(score.key).any() for run in part.measured.values())
    }
    files = [key for key, score in scores.items() if isinstance(score, FromFile)]
    if against is not None and against not in scores:
        raise InputError(f"scores.against={against}: must be one of {', '.join(scores)}")
    if not files or len(scores) < 2:
        return []
    against = against or next(
        (key for key in files if known_name(key) in PEOPLE), next(iter(scores))
    )
    groups = {
        name: runs
        for (_, name), runs in part.members.items()
        if all(run.has(key).any() for run in runs for key in scores)
    }
    groups = _on_same_sentences(groups, list(scores))
    weights: dict[str, Callable[[CommonSentences], Kernel]] = {"": part.scale.weights}
    if part.domains:
        weights[ADJUSTED] = partial(adjusted_kernel, part.scale)
    rows = []
    for domain, of_domain in weights.items():
        curves = length_curves(groups, scores, of_domain)
        if len(curves) == len(scores):
            rows += [
                {"domain": domain, **row} for row in _rows(curves, scores, against, part.scale)
            ]
    return rows


def _on_same_sentences(
    groups: Mapping[str, Sequence[Measured]], keys: Sequence[str]
) -> dict[str, list[Measured]]:
    """Returns the runs with only those sentences for which all of them have all scores."""
    having = [run.ids[run.has(key)] for runs in groups.values() for run in runs for key in keys]
    kept = reduce(np.intersect1d, having) if having else np.empty(0)
    restricted: dict[str, list[Measured]] = {}
    for name, runs in groups.items() if len(kept) else ():
        for run in runs:
            own = copy.copy(run)
            inside = np.isin(run.ids, kept)[:, None]
            own.tables = {key: np.where(inside, run.tables[key], np.nan) for key in keys}
            restricted.setdefault(name, []).append(own)
    return restricted


def _rows(
    curves: Mapping[str, Mapping[str, Curve]],
    scores: Mapping[str, Score],
    against: str,
    scale: LengthScale,
) -> list[dict[str, Any]]:
    names = list(curves[against])
    first = curves[against][names[0]]
    short, long = ends_of(first, scale)
    names = [
        name
        for name in names
        if all(np.isfinite(of_key[name].change.at(long).score) for of_key in curves.values())
    ]
    if long < SMALLEST_RATIO * short or not names:
        return []
    falls = {
        key: _falls([of_key[name] for name in names], scores[key], long)
        for key, of_key in curves.items()
    }
    base = falls[against]
    head = {"against": against, "systems": len(names), "from": round(short), "to": long}
    head |= {"sentences": len(first.ids), "interval": first.at(long).drawn}
    rows = []
    for key, own in falls.items():
        found = own.statistics()
        if key != against and RETAINED in own.measures and RETAINED in base.measures:
            found[DIFFERENCE] = own.mean(RETAINED, base.measures[RETAINED].mean(axis=0))
        if key != against and len(names) >= FEWEST_RANKED:
            found[SPEARMAN] = spearman(own.worse[:, 0], base.worse[:, 0])
        rows += [
            {"score": key, **head, "statistic": statistic} | dict(zip(VALUE, values, strict=False))
            for statistic, values in found.items()
        ]
    return rows


def _falls(curves: Sequence[Curve], score: Score, long: float) -> _Falls:
    parts = {CHANGE: [curve.change for curve in curves]}
    worse = {CHANGE: -1.0 if score.higher_is_better else 1.0}
    if score.best == 0:
        parts = {ERRORS: [curve.relative_to(0) for curve in curves], **parts}
        worse = {ERRORS: 1.0, **worse}
    if score.worst is not None:
        parts = {RETAINED: [curve.relative for curve in curves], **parts}
        worse = {RETAINED: -1.0, **worse}
    estimates = {name: [part.at(long) for part in of_name] for name, of_name in parts.items()}
    measures = {
        name: np.array([[each.score, *each.resampled] for each in of_name])
        for name, of_name in estimates.items()
    }
    main = next(iter(measures))  # decides whether the score falls
    no_change = 0.0 if main == CHANGE else 1.0
    return _Falls(measures, worse[main] * (measures[main] - no_change), curves[0].documents)


def spearman(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """Returns Spearman's correlation over S systems, and its interval (Bonett and Wright, 2000).

    The interval is over systems like these; it contains the noise of few sentences, too.

    >>> [round(each, 2) for each in spearman(np.arange(6), np.arange(6) ** 2)]
    [1.0, 0.62, 1.0]
    """
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan, math.nan, math.nan
    ranks = [pd.Series(each).rank() for each in (first, second)]
    value = float(np.corrcoef(ranks)[0, 1])
    size = len(first)
    error = math.sqrt((1 + value**2 / 2) / (size - 3))
    largest = 1 - 6 / (size * (size**2 - 1))  # half a swap of neighbours from a perfect correlation
    centre = np.arctanh(np.clip(value, -largest, largest))
    margin = error * float(ndtri((1 + CONFIDENCE) / 2))
    low, high = np.tanh([centre - margin, centre + margin]).tolist()
    return value, min(low, value), max(high, value)


def plain_sentences(frame: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Says in words which scores fall, and what cannot be told from it.

    Args:
        frame: rows of one test set and domain, with the columns `AGAINST`.
        titles: title of each score, by key.
    """
    numbers = frame.pivot(index="score", columns="statistic", values="value")
    sentences = []
    for row in frame[frame["statistic"] == DIFFERENCE].itertuples():
        own, other = titles[row.score], titles[row.against]
        cell = number(100 * row.value, 0, 100 * row.low, 100 * row.high)
        points = f"{cell.text} points {cell.beside}"
        if not row.low > 0 and not row.high < 0:
            sentences.append(
                f"{own} keeps as much as {other}, as far as these sentences can tell ({points})."
            )
            continue
        fallen = [_fallen(numbers.loc[key], row.systems) for key in (row.score, row.against)]
        less, more = (own, other) if row.high < 0 else (other, own)
        sentences.append(
            f"{own} falls {fallen[0]}; {other} {fallen[1]} (difference of retention: {points}). Either "
            f"{less} gives long segments less than they deserve, or {more} misses what they lose: these "
            "numbers cannot tell which, and both may be right about different errors."
        )
    return sentences


def _fallen(of_score: pd.Series, systems: int) -> str:
    if not of_score[FALLING]:
        return "for none"
    least, most = (round(100 * of_score[each]) for each in (LEAST, MOST))
    by = f"{least} %" if least == most else f"{least} to {most} %"
    return f"for {of_score[FALLING]:.0f} of {counted(systems, 'system')} by {by}"
