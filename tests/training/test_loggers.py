"""Loggers of a run that is gone on with, and of one that ends."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from pytorch_lightning.loggers.logger import DummyLogger

from nmt.config import ReportConfig
from nmt.config.validation import load
from nmt.report.figures import draw_run
from nmt.report.finding import read_run
from nmt.training.loggers import make_logger
from nmt.training.metrics_file import ResumableCSVLogger
from nmt.training.test_scores import log_test_scores
from tests.helpers.faults import counted, killed_at
from tests.helpers.run_folders import make_run


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


def test_a_callback_that_logs_the_update_of_the_checkpoint_leaves_its_other_rows(
    tmp_path: Path,
) -> None:
    """Lightning's monitors log the update before the first one that a resumed process makes."""

    def columns() -> list[tuple[str, set[str]]]:
        with (tmp_path / "metrics.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        return [
            (row["step"], {n for n in row if row[n] and n not in ("step", "epoch")}) for row in rows
        ]

    first = ResumableCSVLogger(tmp_path)
    for step in (5, 6):
        first.log_metrics({"lr": 0.1, "epoch": 0.0}, step - 1)
        first.log_metrics({"train/nll": 3.0, "epoch": 0.0}, step)
    first.log_metrics({"valid/nll": 2.0, "epoch": 0.0}, 6)
    first.log_metrics({"test/bleu": 1.0}, 6)
    ended = columns()
    again = ResumableCSVLogger(tmp_path)
    again.log_metrics({"lr": 0.1, "epoch": 0.0}, 6)
    assert columns() == [*ended, ("6", {"lr"})]
    once_more = ResumableCSVLogger(tmp_path)  # killed before the row of update 7
    once_more.log_metrics({"lr": 0.1, "epoch": 0.0}, 6)
    once_more.log_metrics({"train/nll": 4.0, "lr2": 1.0, "epoch": 0.0}, 6)  # and one of the same
    assert columns() == [
        *(each for each in ended if each != ("6", {"train/nll"})),
        ("6", {"lr"}), ("6", {"train/nll", "lr2"}),
    ]  # fmt: skip


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


def test_a_row_that_is_glued_to_a_stump_is_dropped(tmp_path: Path) -> None:
    """A disk that was full for a moment: the row after the one that was cut is longer than the header."""
    (tmp_path / "metrics.csv").write_text("loss,step\n1.0,10\n2.3.0,30,5\n4.0,40\n")
    ResumableCSVLogger(tmp_path).log_metrics({"loss": 5.0}, 50)
    assert rows(tmp_path) == [(10, "1.0", ""), (40, "4.0", ""), (50, "5.0", "")]


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


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[Path]]:
    """The results of a run and the figures that are drawn of it."""
    source = make_run(tmp_path_factory.mktemp("finished") / "run", pairs=60, kept=12)
    results = json.loads((source / "results.json").read_text())
    return results, draw_run(read_run(source), ReportConfig(heatmaps=0, figures=["png"]))


@pytest.mark.parametrize("earlier", [False, True])
def test_a_test_is_in_the_csv_file_once_beside_what_came_before(
    tmp_path: Path, earlier: bool, composer: Any, finished: Any
) -> None:
    results, figures = finished
    update, wanted = results["train"]["updates"], results["test"]["newstest"]
    logger = make_logger(load(composer("logger=csv", "seed=7")), tmp_path)
    assert logger is not None
    logger.log_metrics({"valid/bleu": 21.0}, update)
    if earlier:  # a process that was killed after it had logged the test
        log_test_scores(logger, results, figures)
        logger = make_logger(load(composer("logger=csv", "seed=7")), tmp_path)
        assert logger is not None
    log_test_scores(logger, results, figures)
    with (tmp_path / "metrics.csv").open(newline="") as file:
        made = list(csv.DictReader(file))
    assert [row["valid/bleu"] for row in made if row["valid/bleu"]] == ["21.0"]
    [whole] = [row for row in made if row["test/newstest/bleu"]]
    assert float(whole["test/newstest/bleu"]) == wanted["bleu"]["all"]["score"]
    assert int(whole["step"]) == update
    curve = [row for row in made if row["length/words"]]
    assert [float(row["length/newstest/bleu"]) for row in curve] == [
        bucket["score"] for bucket in wanted["by_length"]
    ]
    assert yaml.safe_load((tmp_path / "hparams.yaml").read_text())["seed"] == 7


def test_tensorboard_has_scores_curves_figures_and_hyperparameters(
    tmp_path: Path, composer: Any, finished: Any
) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    results, figures = finished
    wanted = results["test"]["newstest"]
    logger = make_logger(load(composer("logger=tensorboard", "seed=7")), tmp_path)
    assert logger is not None
    log_test_scores(logger, results, figures)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    [score] = events.Scalars("test/newstest/bleu")
    assert score.value == pytest.approx(wanted["bleu"]["all"]["score"])
    assert score.step == results["train"]["updates"]
    curve = events.Scalars("length/newstest/bleu")
    assert [point.value for point in curve] == pytest.approx(
        [bucket["score"] for bucket in wanted["by_length"]]
    )
    assert [point.step for point in curve][:2] == [10, 20]
    assert f"figures/{figures[0].stem}" in events.Tags()["images"]
    assert "_hparams_/session_start_info" in events.summary_metadata
    assert yaml.safe_load((tmp_path / "tensorboard" / "hparams.yaml").read_text())["seed"] == 7


def test_a_row_without_a_step_leaves_those_of_earlier_processes(tmp_path: Path) -> None:
    """A callback of one's own may log so, and be the first that logs after a resume."""
    first = ResumableCSVLogger(tmp_path)
    for step in (5, 10):
        first.log_metrics({"train/loss": 1.0 / step}, step=step)
    resumed = ResumableCSVLogger(tmp_path)
    resumed.log_metrics({"mine": 3.0})
    resumed.log_metrics({"train/loss": 0.05}, step=20)
    resumed.log_metrics({"mine": 4.0})
    with (tmp_path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["step"], row["mine"]) for row in rows] == [
        ("5", ""), ("10", ""), ("20", "3.0"), ("20", ""), ("20", "4.0"),
    ]  # fmt: skip


def test_tensorboards_rows_are_on_disk_at_a_checkpoint(tmp_path: Path, composer: Any) -> None:
    pytest.importorskip("tensorboard")
    logger = make_logger(load(composer("logger=tensorboard")), tmp_path)
    assert logger is not None
    logger.log_metrics({"valid/bleu": 21.0}, 10)
    logger.save()  # as `Checkpoints` does
    [file] = (tmp_path / "tensorboard").glob("events*")
    assert b"valid/bleu" in file.read_bytes()


def test_a_log_that_cannot_be_written_loses_no_results(caplog: pytest.LogCaptureFixture) -> None:
    log_test_scores(DummyLogger(), {"train": {}})
    assert "the test could not be logged (KeyError: 'updates'); continuing" in caplog.text
