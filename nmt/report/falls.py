"""How the scores of several runs fall with length, on the sentences that all of them have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from nmt.evaluation.degradation import (
    RANGES,
    Curve,
    Group,
    compare_degradation,
    degradation_of,
    estimate,
)
from nmt.evaluation.degradation.wording import slope_sentence
from nmt.evaluation.results import score_of
from nmt.evaluation.summary import Measured, curves_of
from nmt.report.groups import bleu_of, grouped, paired
from nmt.report.runs import FinishedRun


@dataclass(frozen=True)
class Falls:
    """The statistics of `nmt.evaluation.degradation`, by key of the score.

    Attributes:
        groups: labels of the runs that differ by their seed alone, by the group's name.
        caps: longest training sentence of each group; None where it is not known.
        of_runs: by label what `degradation_of` says.
        of_groups: by group the same.
        scores: by group `score`, `low` and `high` of all sentences: of one run as its results say,
            of several the `Estimate.report` of their mean; None where it is not known.
        points: by group [mean length, score, sentences] of each bucket, means over the runs.
        differences: a row a pair of groups (`nmt.report.groups.paired`) and a range: `a`, `b`,
            `range`, `slope` and `score`, each an `Estimate.report` or None.
    """

    groups: dict[str, list[str]]
    caps: dict[str, int | None]
    of_runs: dict[str, dict[str, dict[str, Any]]]
    of_groups: dict[str, dict[str, dict[str, Any]]]
    scores: dict[str, dict[str, dict[str, Any] | None]]
    points: dict[str, dict[str, list[list[float]]]]
    differences: dict[str, list[dict[str, Any]]]


def measure_falls(
    runs: Sequence[FinishedRun],
    measured: Mapping[str, Measured],
    results: Mapping[str, Mapping[str, Any]],
    confidence: float,
) -> Falls:
    """Measures runs on one test set, every one, every group of seeds, and groups in pairs (`paired`).

    Args:
        measured: of each run by its label.
        results: `test.<set>` of results.json by label.
        confidence: of the intervals.
    """
    groups = {name: [run.label for run in alike] for name, alike in grouped(runs).items()}
    of_label = {run.label: run.results.get("max_length") for run in runs}
    caps = {name: of_label[labels[0]] for name, labels in groups.items()}
    models = {run.label: run.model for run in runs}
    bleu = bleu_of(results)
    means = {
        name: float(np.mean([bleu[label] for label in labels])) for name, labels in groups.items()
    }
    outside = {run.label for run in runs if run.external}
    pairs = paired(means, [name for name, labels in groups.items() if labels[0] in outside])
    found = Falls(groups, caps, {}, {}, {}, {}, {})
    known = {label: each for label, each in measured.items() if len(each.ids)}
    for key, curves in curves_of(known) if known else ():
        if not next(iter(curves.values())).score.by_length:
            continue
        alone = {
            label: _stored(results.get(label), key, curve)
            or degradation_of(Group([curve], of_label[label]), confidence)
            for label, curve in curves.items()
        }
        together = {}
        for name, labels in groups.items():
            having = [label for label in labels if label in curves]
            if having:
                members = [curves[label] for label in having]
                together[name] = Group(members, caps[name], [models[label] for label in having])
        found.of_runs[key] = alone
        found.of_groups[key], found.scores[key] = {}, {}
        for name, group in together.items():
            label = next(label for label in groups[name] if label in alone)
            one = len(group.curves) == 1
            found.of_groups[key][name] = alone[label] if one else degradation_of(group, confidence)
            score = score_of(results[label], key) if one else _score(group, confidence)
            found.scores[key][name] = score
        found.points[key] = {name: _points(group) for name, group in together.items()}
        rows = []
        for a, b in combinations([name for name in pairs if name in together], 2):
            compared = compare_degradation(together[a], together[b], confidence)
            rows += [{"a": a, "b": b, "range": part, **compared[part]} for part in RANGES]
        found.differences[key] = [row for row in rows if row["slope"] or row["score"]]
    return found


def _stored(result: Mapping[str, Any] | None, key: str, curve: Curve) -> dict[str, Any] | None:
    """What results.json says of a run, where that is of the sentences that are compared."""
    found: dict[str, Any] | None = ((result or {}).get("degradation") or {}).get(key)
    score = score_of(result, key) if result else None
    whole = curve.corpus("all", None)
    complete = found is not None and {"line", "losses", "breakpoint"} <= found.keys()
    if not complete or score is None or whole is None:
        return None
    alike = math.isclose(whole[0], score["score"], rel_tol=1e-6, abs_tol=1e-9)
    return found if alike else None


def _score(group: Group, confidence: float) -> dict[str, Any] | None:
    measured = estimate(group, "score")
    return None if measured is None else measured.report(confidence)


def _points(group: Group) -> list[list[float]]:
    axis = group.curves[0].text.axis
    scores = np.mean([curve.buckets[0] for curve in group.curves], axis=0)
    rows = np.stack([axis.lengths[0], scores, axis.weights[0]], axis=1)
    return [row.tolist() for row in rows if np.isfinite(row).all()]


def verdicts(found: Mapping[str, Any], about: Mapping[str, Any], cap: int | None) -> list[str]:
    """The slopes up to the cap and beyond it as sentences, or over all lengths where there is one.

    Args:
        about: how to show the score; its `name`, or else its `title`, is what falls.
    """
    name = about.get("name", about["title"])
    parts = [part for part in RANGES[1:] if found[part]["slope"]] or ["all"]
    return [
        slope_sentence(name, found[part]["slope"], part, cap, about["digits"])
        for part in parts
        if found[part]["slope"]
    ]
