"""Overrides for tests of commands, and functions that read the files of a run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RNNSEARCH = (
    "+experiment=rnnsearch50",
    "regime=tiny",
    "report.figures=[svg]",
    "seed=3",
    "search.max_ratio=1",
    "evaluation.resamples=20",
)  # overrides of the fixture `rnnsearch`
BEST = "checkpoint=rnnsearch/checkpoints/best.ckpt"
SETS = ("by_length", "test")


def results(folder: Path) -> dict:
    return json.loads((folder / "results.json").read_text())


def score(folder: Path, name: str, key: str, subset: str = "all", first: int | None = None) -> Any:
    """Returns a row of `scores.csv`: of a whole test set, or of the bucket that starts at length `first`."""
    from nmt.evaluation.scores_csv import read_scores  # imports pandas, which is slow

    rows = read_scores(folder)
    rows = rows[(rows["set"] == name) & (rows["score"] == key) & (rows["subset"] == subset)]
    [row] = rows[rows["from"].isna() if first is None else rows["from"] == first].to_dict("records")
    return row


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def last_line(text: str) -> str:
    return text.rstrip("\n").rpartition("\n")[2]
