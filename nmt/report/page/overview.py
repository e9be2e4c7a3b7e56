"""What the page knows of runs as wholes: names, swept keys, curves over length and over updates, differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nmt.config.keys import below
from nmt.config.schema import RUNTIME_KEYS
from nmt.evaluation.published import SOURCE, published_rows
from nmt.report.comparison import SetComparison, bucket_name
from nmt.report.groups import grouped
from nmt.report.runs import Run
from nmt.report.table import levels

FIRST = {"model": "Model", "scoring": "Scoring", "max_length": "Length cap", "seed": "Seed"}
"""Keys of results.json that runs are filtered by, before any other key that was swept."""

_UNFILTERED = ("name", "experiment", "model", "scoring", "seed", "data.max_length")


def overview(runs: Sequence[Run], comparisons: Sequence[SetComparison]) -> dict[str, Any]:
    """All that is small: the payload that charts, filters and matrices are drawn from."""
    groups = grouped(runs)
    of = {run.label: n for n, alike in enumerate(groups.values()) for run in alike}
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
        "sets": {comparison.name: _set(comparison) for comparison in comparisons},
        "published": {"source": SOURCE, "rows": published_rows()},
    }


def filters(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """What the runs can be filtered by: {key, title, values: value of each run as text}.

    These are the keys of FIRST, then what was typed on the command line, where runs differ in it;
    a typed key that cuts the runs up as another does adds nothing.
    """
    found = []
    for key, title in FIRST.items():
        values = [None if run.external else run.results.get(key) for run in runs]
        found.append({"key": key, "title": title, "values": [_text(value) for value in values]})
    typed = [_typed(run) for run in runs]
    for key in dict.fromkeys(key for overrides in typed for key in overrides):
        if key not in _UNFILTERED and not below(key, ("hydra", *RUNTIME_KEYS)):
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


def _typed(run: Run) -> dict[str, str]:
    """The keys and groups set by a run's overrides: `+optimizer.lr=0.1` is {"optimizer.lr": "0.1"}."""
    pairs = (override.lstrip("+").split("=", 1) for override in run.overrides)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].startswith("~")}


def _text(value: Any) -> str:
    return "–" if value is None else str(value)


def _set(comparison: SetComparison) -> dict[str, Any]:
    return {
        "rows": [
            {"run": label, "bucket": bucket_name(row), **_bucket(row)}
            for label, rows in comparison.lengths.items()
            for row in rows
        ],
        "decay": {
            label: {
                "best": bucket_name(decay.best),
                "last": bucket_name(decay.last),
                "drop": decay.drop,
                "slope": decay.slope,
            }
            for label, decay in comparison.decay.items()
        },
        "significance": [
            [
                row["a"],
                row["b"],
                "all" if row["bucket"] == "all" else bucket_name(row),
                round(row["delta"], 3),
                round(row["low"], 3),
                round(row["high"], 3),
                None if row["p"] is None else round(row["p"], 5),
                None if row["p_corrected"] is None else round(row["p_corrected"], 5),
                row["sentences"],
            ]
            for row in comparison.significance
        ],
        "confidence": {label: levels([share]) for label, share in comparison.confidence.items()},
        "tested": levels([max(comparison.confidence.values())]),
        "bucket_by": next(
            (
                score.get("bucket_by")
                for score in comparison.scores.values()
                if score.get("bucket_by")
            ),
            "source",
        ),
    }


def _bucket(row: dict[str, Any]) -> dict[str, Any]:
    """A bucket's figures as [value, low, high, sentences] by the name of the y axis."""
    no_unk, aer = row.get("no_unk") or {}, row.get("error_rate") or {}
    count = row["sentences"]
    figures = {
        "all": [row.get("score"), row.get("low"), row.get("high"), count],
        "no_unk": [no_unk.get(key) for key in ("score", "low", "high", "sentences")],
        "sacrebleu": [row.get("sacrebleu"), None, None, count],
        "nll": [row.get("nll_per_word"), None, None, count],
        "aer": [aer.get(key) for key in ("error_rate", "low", "high", "sentences")],
        "brevity": [row.get("brevity_penalty"), None, None, count],
        "ratio": [row.get("length_ratio"), None, None, count],
        "spread": [row.get("spread"), None, None, count],
    }
    return {
        "from": row["from"],
        **{name: values for name, values in figures.items() if values[0] is not None},
    }
