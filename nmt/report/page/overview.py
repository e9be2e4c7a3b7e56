"""Data of the page on whole runs: names, swept keys, curves over length and updates, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nmt.config.keys import is_within
from nmt.config.schema import RUNTIME_KEYS
from nmt.evaluation.buckets import bucket_name
from nmt.evaluation.results import SCORE_KEYS, bucket_score
from nmt.report.comparison import SetComparison
from nmt.report.groups import grouped
from nmt.report.runs import FinishedRun, typed_keys
from nmt.report.table import heading, levels
from nmt.utils.printable import printable

FIRST = {"model": "Model", "scoring": "Scoring", "max_length": "Length cap", "seed": "Seed"}
"""Keys of results.json that runs are filtered by, before any other key that was swept."""

MOST_TESTS = 20_000  # rows of differences between pairs of runs on a page, a megabyte or so
_UNFILTERED = ("name", "experiment", "model", "scoring", "seed", "data.max_length")


def overview(runs: Sequence[FinishedRun], comparisons: Sequence[SetComparison]) -> dict[str, Any]:
    """The payload that charts, filters and matrices are drawn from."""
    groups = grouped(runs)
    of = {run.label: n for n, alike in enumerate(groups.values()) for run in alike}
    numbers = {run.label: n for n, run in enumerate(runs)}
    return {
        "runs": [
            {
                "label": run.label,
                "group": of[run.label],
                "seed": run.seed,
                "external": run.external,
                "history": run.results.get("history") or [],
            }
            for run in runs
        ],
        "groups": list(groups),
        "filters": filters(runs),
        "scores": {
            key: {
                "title": heading(about),
                "digits": about["digits"],
                "higher_is_better": about["higher_is_better"],
                "ratio": about["unit"] == "ratio",  # read against 1: its axis need not begin at 0
            }
            for one in comparisons
            for key, about in one.shown_scores().items()
        },
        "sets": {comparison.name: _set(comparison, numbers) for comparison in comparisons},
    }


def filters(runs: Sequence[FinishedRun]) -> list[dict[str, Any]]:
    """What the runs can be filtered by: {key, title, values: value of each run as text}.

    These are the keys of FIRST, then what was typed on the command line, where runs differ in it;
    a typed key that cuts the runs up as another does adds nothing.
    """
    found = []
    for key, title in FIRST.items():
        values = [None if run.external else run.results.get(key) for run in runs]
        found.append({"key": key, "title": title, "values": [_text(value) for value in values]})
    typed = [typed_keys(run.overrides) for run in runs]
    for key in dict.fromkeys(key for overrides in typed for key in overrides):
        if key not in _UNFILTERED and not is_within(key, ("hydra", *RUNTIME_KEYS)):
            values = [
                overrides.get(key, run.flat.get(key))
                for overrides, run in zip(typed, runs, strict=True)
            ]
            found.append({"key": key, "title": key, "values": [_text(value) for value in values]})
    cuts: set[tuple[int, ...]] = set()
    kept = []
    for entry in found:
        cut = tuple(entry["values"].index(value) for value in entry["values"])
        if any(cut) and (entry["key"] in FIRST or cut not in cuts):
            kept.append(entry)
        cuts.add(cut)
    return kept


def _text(value: Any) -> str:
    return "–" if value is None else printable(str(value))


def _set(comparison: SetComparison, numbers: Mapping[str, int]) -> dict[str, Any]:
    """What the page has of a test set; `numbers` of the runs stand for their labels in `significance`."""
    sides = (result.get("bucket_by") for result in comparison.results.values())
    return {
        "rows": [
            {
                **_bucket(row, comparison),
                "run": run.label,
                "bucket": bucket_name(row),
                "from": row["from"],
            }
            for run in comparison.runs
            for row in comparison.rows(run.label)
        ],
        "scores": [key for key, about in comparison.shown_scores().items() if about["by_length"]],
        "significance": {
            key: _significance(rows, numbers, comparison.known[key]["digits"] + 1)
            for key, rows in _fitting(comparison.significance).items()
        },
        "confidence": {label: levels([share]) for label, share in comparison.confidence.items()},
        "tested": comparison.level_of_differences,
        "bucket_by": next(filter(None, sides), "source"),
    }


def _bucket(row: dict[str, Any], comparison: SetComparison) -> dict[str, list[float | None]]:
    """A bucket's scores as [score, low, high, sentences] by key."""
    found = {key: bucket_score(row, key) for key in comparison.shown_scores()}
    return {
        key: [score[part] for part in (*SCORE_KEYS, "sentences")]
        for key, score in found.items()
        if score is not None
    }


def _fitting(tested: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """At most `MOST_TESTS` rows: those of whole sets come first, score by score, then those of buckets."""
    found: dict[str, list[dict[str, Any]]] = {key: [] for key in tested}
    room = MOST_TESTS
    for whole in (True, False):
        for key, rows in tested.items():
            part = [row for row in rows if (row["bucket"] == "all") is whole]
            if len(part) <= room:
                found[key] += part
                room -= len(part)
    return found


def _significance(
    rows: Sequence[dict[str, Any]], numbers: Mapping[str, int], digits: int
) -> list[list[Any]]:
    """[a, b, bucket, delta, low, high, p, p corrected, sentences], runs by their numbers."""
    return [
        [
            numbers[row["a"]],
            numbers[row["b"]],
            row["bucket"],
            *(_rounded(row[part], digits) for part in ("delta", "low", "high")),
            *(_rounded(row[part], 7) for part in ("p", "p_corrected")),
            row["sentences"],
        ]
        for row in rows
    ]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
