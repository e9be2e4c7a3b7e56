"""Compares what several scores say of long sentences, on the same sentences and systems.

If a metric falls with length and people's scores do not, the metric may be what falls, and not the systems. Array
shapes: S systems, R resamples.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

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
WORSE = "worse"
FEWEST_RANKED = 4  # minimum number of systems for an interval of Spearman's correlation
AGAINST = (
    *("set", "domain", "score", "against", "statistic", *VALUE),
    *("systems", "from", "to", "sentences", "interval"),
)
"""Columns of against.csv. `statistic` is one of: `retention`, `error ratio` and `change` (means over the systems);
`systems that fall` (the number of systems whose interval is on the worse side of no change), `smallest fall` and
`largest fall` of these; `difference of retention` (minus that of the score `against`); and `spearman` (correlation
with the score `against` over the systems)."""


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
    groups = _on_same_sentences(
        {
            name: runs
            for (_, name), runs in part.members.items()
            if all(run.has(key).any() for run in runs for key in scores)
        },
        list(scores),
    )
    weights: dict[str, Callable[[CommonSentences], Kernel]] = {"": part.scale.weights}
    if part.domains:
        weights[ADJUSTED] = partial(adjusted_kernel, part.scale)
    return [
        {"domain": domain, **row}
        for domain, of_domain in weights.items()
        for row in _rows(length_curves(groups, scores, of_domain), scores, against, part.scale)
    ]


def _on_same_sentences(
    groups: Mapping[str, Sequence[Measured]], keys: Sequence[str]
) -> dict[str, list[Measured]]:
    """Returns the runs with only those sentences for which all of them have all scores."""
    having = [run.ids[run.has(key)] for runs in groups.values() for run in runs for key in keys]
    kept = reduce(np.intersect1d, having) if having else np.empty(0)

    def restricted(run: Measured) -> Measured:
        own = copy.copy(run)
        inside = np.isin(run.ids, kept)[:, None]
        own.tables = {key: np.where(inside, run.tables[key], np.nan) for key in keys}
        return own

    return {name: [*map(restricted, runs)] for name, runs in groups.items() if len(kept)}


def _rows(
    curves: Mapping[str, Mapping[str, Curve]],
    scores: Mapping[str, Score],
    against: str,
    scale: LengthScale,
) -> list[dict[str, Any]]:
    if len(curves) < len(scores):
        return []
    first = next(iter(curves[against].values()))
    short, long = ends_of(first, scale)
    names = [
        name
        for name in curves[against]
        if all(np.isfinite(of_key[name].change.at(long).score) for of_key in curves.values())
    ]
    if long < SMALLEST_RATIO * short or not names:
        return []

    def interval(values: np.ndarray) -> tuple[float | None, ...]:
        return float(values[0]), *interval_of(values[1:], documents=first.documents)

    measures = {
        key: _measures([of_key[name] for name in names], scores[key], long)
        for key, of_key in curves.items()
    }
    head = {"against": against, "systems": len(names), "from": round(short), "to": long}
    head |= {"sentences": len(first.ids), "interval": first.at(long).drawn}
    rows = []
    for key, own in measures.items():
        means = {name: values.mean(axis=0) for name, values in own.items() if name != WORSE}
        found = {name: interval(values) for name, values in means.items()}
        falls = [each[0] for each in own[WORSE] if (interval(each)[1] or 0) > 0]
        found[FALLING] = (len(falls),)
        if falls:
            found |= {LEAST: (float(min(falls)),), MOST: (float(max(falls)),)}
        if key != against and RETAINED in means and RETAINED in measures[against]:
            found[DIFFERENCE] = interval(means[RETAINED] - measures[against][RETAINED].mean(axis=0))
        if key != against and len(names) >= FEWEST_RANKED:
            found[SPEARMAN] = spearman(own[WORSE][:, 0], measures[against][WORSE][:, 0])
        rows += [
            {"score": key, **head, "statistic": statistic} | dict(zip(VALUE, values, strict=False))
            for statistic, values in found.items()
        ]
    return rows


def _measures(curves: Sequence[Curve], score: Score, long: float) -> dict[str, np.ndarray]:
    """Returns (S, 1 + R) arrays of how a score of S systems changes with length, by name of the measure.

    `WORSE` is how much worse long sentences are by the first measure; 0 is no change.
    """
    parts: dict[str, list[Curve]] = {}
    if score.worst is not None:
        parts[RETAINED] = [curve.relative for curve in curves]
    if score.best == 0:
        parts[ERRORS] = [curve.relative_to(0) for curve in curves]
    parts[CHANGE] = [curve.change for curve in curves]
    found = {}
    for name, of_name in parts.items():
        estimates = [part.at(long) for part in of_name]
        found[name] = np.array([[each.score, *each.resampled] for each in estimates])
    first = next(iter(found))
    rises = first == ERRORS or (first == CHANGE and not score.higher_is_better)
    worse = found[first] - (first != CHANGE)
    return found | {WORSE: worse if rises else -worse}


def spearman(first: np.ndarray, second: np.ndarray) -> tuple[float, float, float]:
    """Returns Spearman's correlation over S systems, and its interval (Bonett and Wright, 2000).

    The interval is over systems like these; it contains the noise of few sentences, too.

    >>> [round(each, 2) for each in spearman(np.arange(6), np.arange(6) ** 2)]
    [1.0, 0.62, 1.0]
    """
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return math.nan, math.nan, math.nan
    value = float(pd.Series(first).corr(pd.Series(second), method="spearman"))
    size = len(first)
    largest = 1 - 6 / (size * (size**2 - 1))  # half a swap of neighbours from a perfect correlation
    margin = math.sqrt((1 + value**2 / 2) / (size - 3)) * float(ndtri((1 + CONFIDENCE) / 2))
    centre = np.arctanh(np.clip(value, -largest, largest))
    low, high = np.tanh([centre - margin, centre + margin]).tolist()
    return value, min(low, value), max(high, value)


def plain_sentences(frame: pd.DataFrame, titles: Mapping[str, str]) -> list[str]:
    """Says in words which scores fall, and what cannot be told from it.

    Args:
        frame: rows of one test set and domain, with the columns `AGAINST`.
        titles: title of each score, by key.
    """
    numbers = frame.pivot(index="score", columns="statistic", values="value")
    numbers = 100 * numbers.reindex(columns=[FALLING, LEAST, MOST])

    def fallen(key: str) -> str:
        count, least, most = numbers.loc[key].tolist()
        by = dict.fromkeys([f"{least:.0f}", f"{most:.0f}"])
        return f"for {count / 100:.0f} of {every} by {' to '.join(by)} %" if count else "for none"

    sentences = []
    for row in frame[frame["statistic"] == DIFFERENCE].itertuples():
        own, other = titles[row.score], titles[row.against]
        every = counted(row.systems, "system")
        points = "{} points {}".format(*number(100 * row.value, 0, 100 * row.low, 100 * row.high))
        if row.low > 0 or row.high < 0:
            less, more = (own, other) if row.high < 0 else (other, own)
            sentences.append(
                f"{own} falls {fallen(row.score)}; {other} {fallen(row.against)} (difference of retention: "
                f"{points}). Either {less} gives long segments less than they deserve, or {more} misses what "
                "they lose: these numbers cannot tell which, and both may be right about different errors."
            )
        else:
            sentences.append(
                f"{own} keeps as much as {other}, as far as these sentences can tell ({points})."
            )
    return sentences
