"""Figures of the documentation, drawn from docs/results/*.json where a page asks for it.

    ![what is seen](figures/europarl-by-length.png)
    <!-- figure: europarl by_length en-fr rnnencdec50 rnnsearch50 -->

The words are those of a table's mark: a record, a test set, a direction, groups of the study. Of
joined sentences `by_length-joined*` stands for the sets of all lengths, a point each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.records.tables import Record, chosen_rows
from nmt.report.figures import TEXT_WIDTH
from nmt.report.lengths import lengths_figure
from nmt.report.runs import FinishedRun
from nmt.report.style import PAPER, save_figure, style

MARK = re.compile(r"<!-- figure: ([^\n]*) -->")
JOINED = "-joined*"
PICTURE = re.compile(r"\]\(([^)\s]+)\.png\)\s*$")  # right before its mark


def draw_figures(page: Path, records: Mapping[str, Record]) -> list[Path]:
    """Draws BLEU by length where a page asks for it, one line a group: the mean over its seeds.

    Returns:
        The files, beside the page.

    Raises:
        ValueError: for a figure without rows, and a mark without a picture before it.
    """
    text = page.read_text(encoding="utf-8")
    drawn: list[Path] = []
    for mark in MARK.finditer(text):
        picture = PICTURE.search(text[: mark.start()])
        if picture is None:
            raise ValueError(f"{mark[0]}: no picture (.png) stands before it")
        with style(PAPER):
            drawn += save_figure(figure_of(mark[1], records), page.parent / picture[1], ["png"])
    return drawn


def figure_of(asked: str, records: Mapping[str, Record]) -> Figure:
    """The figure of a mark.

    Raises:
        ValueError: where there is no such record, set or group, and for two groups of one name.
    """
    words = asked.split()
    if len(words) < 3:
        raise ValueError(
            f"<!-- figure: {asked} -->: a record, a test set and a direction are needed"
        )
    text, name, direction, *groups = words
    known = with_joined(records.get(text, {"rows": []}), name) if name.endswith(JOINED) else None
    rows = chosen_rows({text: known} if known else records, text, name, direction, groups)
    lines = {row["name"]: [as_run(row["name"], run) for run in row["runs"]] for row in rows}
    if len(lines) < len(rows):
        raise ValueError(f"<!-- figure: {asked} -->: two groups have one name")
    return lengths_figure(lines, name, width=TEXT_WIDTH, captioned=False)


def with_joined(record: Record, name: str) -> Record:
    """The rows of a record that have sets of joined sentences, put together as one by length."""
    rows = []
    for row in record["rows"]:
        runs = [
            {**run, "test": {name: found}}
            for run in row["runs"]
            if (found := joined_sets(run["test"], name.removesuffix("*")))["by_length"]
        ]
        if runs:
            rows.append({**row, "runs": runs})
    return {"rows": rows}


def joined_sets(tests: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The sets that `prefix` and a number of words name, each as a bucket of one test set."""
    lengths = sorted(
        int(name.removeprefix(prefix))
        for name in tests
        if name.startswith(prefix) and name.removeprefix(prefix).isdecimal()
    )
    buckets = []
    for length in lengths:
        found = tests[f"{prefix}{length}"]
        scores = {key: found["scores"].get(key) for key in ("bleu", "bleu_no_unk")}
        place = {"from": length, "to": length, "sentences": found["pairs"]}
        buckets.append(place | {key: score for key, score in scores.items() if score})
    return {"bucket_by": "source", "by_length": buckets, "fits": {}}


def as_run(label: str, entry: Record) -> FinishedRun:
    """A run of a record with what a curve needs, as results.json has it."""
    tests = {
        name: {
            "bucket_by": found["bucket_by"],
            "by_length": [as_bucket(row) for row in found["by_length"]],
            "degradation": {key: {"line": line} for key, line in found["fits"].items()},
        }
        for name, found in entry["test"].items()
    }
    return FinishedRun(label, {"test": tests})


def as_bucket(row: Record) -> dict[str, Any]:
    """A bucket of a record as results.json has it.

    >>> as_bucket({"from": 1, "to": 10, "sentences": 9, "bleu": {"score": 20.0}})
    {'from': 1, 'to': 10, 'sentences': 9, 'score': 20.0, 'no_unk': None}
    """
    place = {key: row[key] for key in ("from", "to", "sentences", "mean_length") if key in row}
    return place | row.get("bleu", {}) | {"no_unk": row.get("bleu_no_unk")}
