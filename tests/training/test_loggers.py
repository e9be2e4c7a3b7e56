"""Loggers of a run that is gone on with."""

from __future__ import annotations

import csv
from pathlib import Path

from nmt.training.loggers import ResumableCSVLogger


def rows(folder: Path) -> list[tuple[int, str, str]]:
    with (folder / "metrics.csv").open(newline="") as file:
        return [(int(r["step"]), r["loss"], r.get("bleu", "")) for r in csv.DictReader(file)]


def test_a_resumed_run_goes_on_with_its_metrics(tmp_path: Path) -> None:
    first = ResumableCSVLogger(tmp_path)
    for step in (10, 20, 30):
        first.log_metrics({"loss": step / 10}, step)
        assert rows(tmp_path)[-1][0] == step  # what is not written a kill would lose
    first.finalize("")
    assert rows(tmp_path) == [(10, "1.0", ""), (20, "2.0", ""), (30, "3.0", "")]

    second = ResumableCSVLogger(tmp_path)  # from a checkpoint of update 20
    assert rows(tmp_path) == [(10, "1.0", ""), (20, "2.0", ""), (30, "3.0", "")]
    second.log_metrics({"loss": 7.0, "bleu": 5.0}, 30)
    second.log_metrics({"loss": 8.0}, 40)
    second.finalize("")
    assert rows(tmp_path) == [(10, "1.0", ""), (20, "2.0", ""), (30, "7.0", "5.0"), (40, "8.0", "")]


def test_metrics_of_a_run_that_logs_nothing_more_stay(tmp_path: Path) -> None:
    first = ResumableCSVLogger(tmp_path)
    first.log_metrics({"loss": 1.0}, 10)
    first.finalize("")
    ResumableCSVLogger(tmp_path).finalize("")
    assert rows(tmp_path) == [(10, "1.0", "")]
