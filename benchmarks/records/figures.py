"""Figures of the documentation, drawn from docs/results/*.json where a page asks for it.

    ![what is seen](figures/europarl-by-length.png)
    <!-- figure: europarl by_length en-fr rnnencdec50 rnnsearch50 -->

The words are those of a table's mark: a record, a test set, a direction, groups of the study.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.records.tables import Record, chosen_rows
from nmt.report.figures import TEXT_WIDTH
from nmt.report.lengths import lengths_figure
from nmt.report.runs import FinishedRun
from nmt.report.style import PAPER, save_figure, style

MARKED = re.compile(r"\]\(([^)\s]+)\.png\)\s*<!-- figure: ([^\n]*) -->")


def draw_figures(page: Path, records: Mapping[str, Record]) -> list[Path]:
    """Draws BLEU by length where a page asks for it, one line a group: the mean over its seeds.

    Returns:
        The files, beside the page.

    Raises:
        ValueError: for a figure without rows.
    """
    drawn: list[Path] = []
    for stem, asked in MARKED.findall(page.read_text(encoding="utf-8")):
        text, name, direction, *groups = asked.split()
        rows = chosen_rows(records, text, name, direction, groups)
        if not rows:
            raise ValueError(f"<!-- figure: {asked} -->: no such figure")
        lines = {row["name"]: [as_run(row["name"], run) for run in row["runs"]] for row in rows}
        with style(PAPER):
            figure = lengths_figure(lines, name, width=TEXT_WIDTH, captioned=False)
            drawn += save_figure(figure, page.parent / stem, ["png"])
    return drawn


def as_run(label: str, entry: Record) -> FinishedRun:
    """A run of a record with the scores that a curve needs, as results.json has them."""
    tests = {
        name: {"by_length": [as_bucket(row) for row in found["by_length"]]}
        for name, found in entry["test"].items()
    }
    return FinishedRun(label, {"test": tests})


def as_bucket(row: Record) -> dict[str, Any]:
    """A bucket of a record as results.json has it.

    >>> as_bucket({"from": 1, "to": 10, "sentences": 9, "bleu": {"score": 20.0}})
    {'from': 1, 'to': 10, 'sentences': 9, 'score': 20.0, 'no_unk': None}
    """
    place = {key: row[key] for key in ("from", "to", "sentences")}
    return place | row.get("bleu", {}) | {"no_unk": row.get("bleu_no_unk")}
