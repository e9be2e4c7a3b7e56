"""The data of a page: runs, scores by length, differences, translations, alignments.

The frames of a comparison become lists of rows, which the page's scripts select and draw.
"""

from __future__ import annotations

import json
import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nmt.evaluation.records import Record
from nmt.evaluation.scores.bleu import WIDTH, bleu
from nmt.report.comparison import LEVEL, Comparison
from nmt.report.figures import caption
from nmt.report.heatmap import Item, spread
from nmt.report.page.embed import packed
from nmt.report.result_tables import heading, set_title
from nmt.report.runs import FinishedRun

# Limits per page. If translations or alignments need more, an evenly spaced selection is kept.
MAX_TRANSLATION_BYTES = 800_000
MAX_ALIGNMENT_BYTES = 1_900_000


def overview(comparison: Comparison) -> dict[str, Any]:
    """Returns the data of the charts and of the significance matrices."""
    groups = list(comparison.groups)
    of = {run.label: n for n, name in enumerate(groups) for run in comparison.groups[name]}
    scores = comparison.scores
    scores = scores[(scores["bucket"] != "all") & scores["subset"].isin(["all", "no_unk"])]
    compared = comparison.curves.query("kind == 'difference'")
    return {
        "runs": [
            {
                "label": run.label,
                "group": of[run.label],
                "cap": run.results.get("max_length"),
                "history": run.results.get("history") or [],
            }
            for run in comparison.runs
        ],
        "groups": groups,
        "scores": {
            key: {
                "title": heading(about),
                "digits": about["digits"],
                "higher_is_better": about["higher_is_better"],
                "ratio": about["unit"] == "ratio",  # the axis of a ratio need not start at 0
            }
            for key, about in comparison.about.items()
        },
        "sets": {
            name: {
                "title": set_title(name),
                "caption": caption(comparison, name, "a score"),
                "unit": comparison.unit(name),
                "controls": sorted(
                    set(compared.loc[compared["set"] == name, ["name", "other"]].stack()),
                    key=groups.index,
                ),
                "domains": comparison.curves.query("set == @name and kind == 'domain'")["other"]
                .unique()
                .tolist(),
            }
            for name in comparison.sets
        },
        "level": LEVEL,
        "buckets": _rows(
            scores.sort_values("from", kind="stable"), without=["subset", "score", "interval"]
        ),
        "curves": _rows(
            comparison.curves.round({"words": 2, "value": 4, "low": 4, "high": 4}),
            without=["sentences", "interval"],
        ),
        "differences": _rows(
            comparison.differences, without=["from", "to", "score_a", "score_b", "interval", "p"]
        ),
    }


def _rows(frame: pd.DataFrame, without: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the rows of a frame, except the columns `without`, with six decimals and None for NaN."""
    text = frame.drop(columns=[*without]).to_json(orient="records", double_precision=6)
    rows: list[dict[str, Any]] = json.loads(text)
    return rows


def fitted_sentences(
    comparison: Comparison, limit: int
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, dict[str, Any]]]:
    """Selects translations and at most `limit` alignments of each test set, evenly spaced by length.

    Returns:
        Two dictionaries by test set. The first has selected results of `_aligned`. The second has `systems`
        (the labels of the systems), `rows` (selected results of `_translations`), and `total` (the number of all rows).
    """
    runs = {
        name: [
            run
            for run in comparison.paired(name)
            if any("hypothesis" in row for row in run.translations(name))
        ]
        for name in comparison.sets
    }
    aligned = {name: spread(_aligned(runs[name], name), limit) for name in runs}
    aligned = _thinned(aligned, MAX_ALIGNMENT_BYTES)
    written = {name: _translations(runs[name], name) for name in runs}
    chosen = _thinned(written, MAX_TRANSLATION_BYTES)
    translations = {}
    for name, rows in written.items():
        kept = {row["id"] for row in (*chosen[name], *aligned[name])}
        translations[name] = {
            "systems": [run.label for run in runs[name]],
            "rows": [row for row in rows if row["id"] in kept],
            "total": len(rows),
        }
    return aligned, translations


def _thinned(sets: dict[str, list[Item]], room: int) -> dict[str, list[Item]]:
    """Keeps evenly spaced rows of each set, as many as fit into `room` bytes."""
    share = min(1.0, 0.95 * room / len(packed(sets, 6)))
    return {name: spread(rows, math.ceil(share * len(rows))) for name, rows in sets.items()}


def _translations(runs: Sequence[FinishedRun], test_set: str) -> list[dict[str, Any]]:
    """Returns every sentence of a test set with each run's translation, from short to long.

    Returns:
        Rows with `id`, `length`, `s` (source), `r` (reference), `h` (a hypothesis per run; None if the run has
        none), and `b` (the sentence BLEU of each hypothesis).
    """
    tables = [{row["id"]: row for row in run.translations(test_set)} for run in runs]
    scores = [sentence_bleu(run.translations(test_set)) for run in runs]
    rows = []
    for identity, sentence in ChainMap(*tables).items():
        written = [table.get(identity) for table in tables]
        rows.append(
            {
                "id": identity,
                "length": sentence["length"],
                "s": " ".join(sentence["source"]),
                "r": " ".join(sentence["reference"]),
                "h": [row and " ".join(row["hypothesis"]) for row in written],
                "b": [of_run.get(identity) for of_run in scores],
            }
        )
    return sorted(rows, key=lambda row: (row["length"], row["id"]))


def _aligned(runs: Sequence[FinishedRun], test_set: str) -> list[dict[str, Any]]:
    """Returns the sentences for which any run has an alignment, from short to long.

    Returns:
        Rows with `id`, `length`, `source` and `reference` (tokens), and `by`. `by` maps the label of a run to
        its record of alignments/<set>.jsonl, with `bleu` added and numbers rounded to four decimals.
    """
    sentences: dict[int, dict[str, Any]] = {}
    for run in runs:
        scores = sentence_bleu(run.translations(test_set))
        for row in run.alignments(test_set):
            common = {key: row[key] for key in ("id", "length", "source", "reference")} | {"by": {}}
            own = _short({**row, "bleu": scores.get(row["id"])})
            sentences.setdefault(row["id"], common)["by"][run.label] = own
    return sorted(sentences.values(), key=lambda sentence: (sentence["length"], sentence["id"]))


def _short(row: Mapping[str, Any]) -> Any:
    """Rounds all numbers to four decimals; NaN becomes None."""
    text = json.dumps(row)
    return json.loads(text, parse_float=lambda x: round(float(x), 4), parse_constant=lambda _: None)


def sentence_bleu(records: Sequence[Record]) -> dict[int, float]:
    """Computes the smoothed BLEU of each sentence (with `effective_order`), rounded to 0.1 points, by id."""
    known = {row["id"]: row["bleu_stats"] for row in records if row.get("bleu_stats") is not None}
    scores = bleu(np.array([*known.values()]).reshape(-1, WIDTH), effective_order=True)
    return {identity: round(x, 1) for identity, x in zip(known, scores.tolist(), strict=True)}
