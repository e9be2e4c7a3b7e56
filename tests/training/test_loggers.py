"""Loggers of a run that is gone on with."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

from nmt.training.loggers import ResumableCSVLogger
from tests.helpers.faults import counted, killed_at


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


def test_a_last_row_that_was_cut_short_is_dropped(tmp_path: Path) -> None:
    first = ResumableCSVLogger(tmp_path)
    for step in (10, 20):
        first.log_metrics({"loss": step / 10}, step)
    file = tmp_path / "metrics.csv"
    file.write_bytes(file.read_bytes()[:-1])
    second = ResumableCSVLogger(tmp_path)
    second.log_metrics({"loss": 3.0}, 30)
    assert rows(tmp_path) == [(10, "1.0", ""), (30, "3.0", "")]


def log_twice(folder: Path) -> None:
    """Logs, and logs on as a resumed run does, with a column more."""
    for start in (10, 20):
        logger = ResumableCSVLogger(folder)
        for step in range(start, start + 30, 10):
            more = {"bleu": 1.0} if step % 20 == 0 else {}
            logger.log_metrics({"loss": step / 10, **more}, step)


def test_a_kill_at_any_file_operation_loses_no_earlier_row(tmp_path: Path) -> None:
    """What was logged before the one that was killed is there, and the file can be read."""
    operations = counted(lambda: log_twice(tmp_path / "whole"), tmp_path)
    assert len(operations) >= 24
    least = 0
    for number in range(1, len(operations) + 1):
        folder = tmp_path / str(number)
        killed_at(number, partial(log_twice, folder), tmp_path)
        left = [step for step, *_ in rows(folder)] if (folder / "metrics.csv").is_file() else []
        assert left == list(range(10, 10 * len(left) + 1, 10)), number
        assert len(left) >= min(least, 2), number  # from update 20 on it is logged again
        least = len(left)
        ResumableCSVLogger(folder).log_metrics({"loss": 9.0}, 90)
        assert [step for step, *_ in rows(folder)] == [*left, 90], number
