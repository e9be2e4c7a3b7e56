"""The summary of a comparison printed to the terminal, one line per run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.evaluation.buckets import bucket_name
from nmt.evaluation.results import score_of
from nmt.report.comparison import SetComparison
from nmt.report.runs import FinishedRun
from nmt.report.table import Column, Table
from nmt.report.tables import bucket_names

WIDEST = 70  # columns of a terminal that the figures may take; names of runs stand behind them


def terminal_table(
    runs: Sequence[FinishedRun],
    comparisons: Sequence[SetComparison],
    unfinished: Sequence[Path] = (),
) -> Table:
    """BLEU of every run on every test set and, where there is room, by length on one of them.

    That one has the most buckets. The title says what the columns are.

    Args:
        runs: those compared.
        comparisons: of them, a test set each.
        unfinished: folders of runs that have not finished, a row each without figures.
    """
    title = "BLEU on each test set"
    columns = [Column(f"on_{each.name}", each.name) for each in comparisons]
    lengths = max(comparisons, key=lambda each: len(bucket_names(each)), default=None)
    if lengths is not None:
        by_length = [Column(name, name) for name in bucket_names(lengths)]
        if sum(2 + max(5, len(each.title)) for each in [*columns, *by_length]) <= WIDEST:
            title += f" and, by number of words, on {lengths.name}"
            columns += by_length
    rows: list[dict[str, Any]] = []
    for run in runs:
        hours = (run.results.get("train") or {}).get("hours")
        row = {
            "folder": run.folder and run.folder.absolute().name,
            "minutes": None if hours is None else 60 * hours,
            "run": run.label,
        }
        for each in comparisons:
            if run.label in each.results:
                score = score_of(each.results[run.label], "bleu") or {}
                row[f"on_{each.name}"] = score.get("score")
        if lengths is not None and run.label in lengths.results:
            row |= {bucket_name(part): part["score"] for part in lengths.rows(run.label)}
        rows.append(row)
    rows += [{"folder": folder.absolute().name, "run": "not finished"} for folder in unfinished]
    first, last = Column("folder", "folder", text=True), Column("run", "run", text=True)
    title += "; minutes of training"
    return Table("terminal", title, [first, *columns, Column("minutes", "minutes", 1), last], rows)
