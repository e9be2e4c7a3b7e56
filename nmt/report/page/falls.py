"""Data of the page on how scores fall with length: points, fitted lines, slopes, swept keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nmt.evaluation.degradation import RANGES
from nmt.evaluation.results import SCORE_KEYS
from nmt.report.comparison import SetComparison
from nmt.report.fall_tables import RANGE_TITLES
from nmt.report.falls import verdicts
from nmt.report.page.overview import filters
from nmt.report.runs import FinishedRun

NOT_SWEPT = "seed"  # what the runs of a group differ in


def falls_payload(
    runs: Sequence[FinishedRun], comparisons: Sequence[SetComparison]
) -> dict[str, Any]:
    """The payload of the panel: by test set and score each group, and the keys that were swept."""
    return {
        "sets": {one.name: _scores(one) for one in comparisons},
        "swept": swept(runs),
        "figures": {
            **{part: f"slope, {title}" for part, title in RANGE_TITLES.items()},
            "score": "score",
        },
    }


def swept(runs: Sequence[FinishedRun]) -> list[dict[str, Any]]:
    """Keys that groups of runs differ in: {key, title, values: by label of the run, as text}."""
    return [
        {
            "key": entry["key"],
            "title": entry["title"],
            "values": {
                run.label: value
                for run, value in zip(runs, entry["values"], strict=True)
                if not run.external
            },
        }
        for entry in filters(runs)
        if entry["key"] != NOT_SWEPT
    ]


def _scores(comparison: SetComparison) -> dict[str, Any]:
    falls = comparison.falls
    return {
        key: {
            "title": about["title"],
            "digits": about["digits"],
            "zero": about["unit"] != "ratio",
            "groups": {
                name: _group(comparison, key, name, found, about)
                for name, found in falls.of_groups[key].items()
                if found["line"]
            },
        }
        for key, about in comparison.shown_scores().items()
        if about["by_length"] and any(f["line"] for f in falls.of_groups.get(key, {}).values())
    }


def _group(
    comparison: SetComparison,
    key: str,
    name: str,
    found: Mapping[str, Any],
    about: Mapping[str, Any],
) -> dict[str, Any]:
    falls = comparison.falls
    cap = falls.caps[name]
    figures = {part: found[part]["slope"] for part in RANGES} | {"score": falls.scores[key][name]}
    return {
        "runs": falls.groups[name],
        "cap": cap,
        "points": [[_rounded(value) for value in point] for point in falls.points[key][name]],
        "line": [[_rounded(value) for value in point] for point in found["line"]],
        "verdicts": verdicts(found, about, cap),
        "figures": {
            what: figure and [figure[end] for end in SCORE_KEYS] for what, figure in figures.items()
        },
    }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
