"""W&B, TensorBoard and CSV files get the final scores of the run."""

from __future__ import annotations

import csv
import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger, WandbLogger

from nmt.report.comparison import Comparison, compare_finished
from nmt.report.logged_values import LENGTH, length_curves, summary_of
from nmt.report.retention import RETAINED
from nmt.report.runs import FinishedRun, read_run
from nmt.training.result_logging import log_heatmaps, log_run
from tests.helpers.run_folders import make_run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Comparison, list[Path]]:
    folder = make_run(tmp_path_factory.mktemp("finished") / "run", pairs=40, kept=2)
    figures = [folder / "newstest-bleu-by-length.png", folder / "newstest-four.png"]
    for file, size in zip(figures, [(60, 40), (50, 70)], strict=True):
        Image.new("RGB", size).save(file)
    return compare_finished([read_run(folder)], resamples=0), figures


def curve_of(run: FinishedRun) -> list[float]:
    rows = run.scores.query("score == 'bleu' and subset == 'all'").dropna(subset="from")
    return rows.sort_values("from")["value"].tolist()


def whole_bleu(run: FinishedRun) -> float:
    rows = run.scores.query("score == 'bleu' and subset == 'all'")
    return float(rows[rows["from"].isna()]["value"].item())


def test_curves_and_summary_equal_the_scores(finished: Any) -> None:
    comparison, _ = finished
    (run,) = comparison.runs
    rows = length_curves(comparison)
    assert [row["length/newstest/bleu"] for row in rows] == curve_of(run)
    assert [row[LENGTH] for row in rows] == [10, 20, 30, 40, 50, 60, 70][: len(rows)]
    retained = [("bleu", RETAINED, 0.8), ("bleu", "other", 0.1), ("nll_per_word", RETAINED, 0.2)]
    frame = pd.DataFrame(retained, columns=["key", "statistic", "value"])
    frame = frame.assign(set="newstest", low=frame["value"] - 0.1, high=None)
    summary = summary_of(dataclasses.replace(comparison, retention=frame))
    name = "test/newstest/bleu_retention"
    kept = {key: value for key, value in summary.items() if key.startswith(name)}
    assert kept == pytest.approx({name: 0.8, f"{name}_low": 0.7})
    assert summary["test/newstest/bleu"] == whole_bleu(run)
    # If a bucket has no score, the row omits the score instead of logging NaN.
    scores = comparison.scores.query("not (key == 'bleu' and `from` == 11)")
    rows = length_curves(dataclasses.replace(comparison, scores=scores))
    assert ["length/newstest/bleu" in row for row in rows[:3]] == [True, False, True]
    assert all(value == value for row in rows for value in row.values())
    assert summary["best/bleu"] == 27.2


def test_csv_logger_gets_scores_and_curves(finished: Any, tmp_path: Path) -> None:
    comparison, figures = finished
    (run,) = comparison.runs
    logger = CSVLogger(tmp_path, name="", version="")
    log_run([logger], comparison, figures, None)
    with (tmp_path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["length/newstest/bleu"]) for row in rows if row[LENGTH]] == curve_of(run)
    assert {float(row["test/newstest/bleu"]) for row in rows if row["test/newstest/bleu"]} == {
        whole_bleu(run)
    }


def test_tensorboard_gets_scores_curves_and_figures(finished: Any, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    comparison, figures = finished
    (run,) = comparison.runs
    logger = TensorBoardLogger(tmp_path, name="", version="t")
    log_heatmaps([CSVLogger(tmp_path), logger], run.alignments("newstest"), 7)
    log_run([logger], comparison, figures, None)
    events = EventAccumulator(str(tmp_path / "t")).Reload()
    [score] = events.Scalars("test/newstest/bleu")
    assert (score.value, score.step) == (pytest.approx(whole_bleu(run)), 4000)
    points = events.Scalars("length/newstest/bleu")
    assert [point.value for point in points] == pytest.approx(curve_of(run))
    assert [point.step for point in points][:2] == [10, 20]
    assert "length/words" not in events.Tags()["scalars"]
    images = events.Tags()["images"]
    assert {f"figures/{figures[0].stem}", "valid/alignment/1", "valid/alignment/2"} <= {*images}


@pytest.mark.slow
def test_wandb_gets_curves_tables_figures_and_page(
    finished: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    comparison, figures = finished
    (run,) = comparison.runs
    page = tmp_path / "report.html"
    page.write_text("<!doctype html><title>é</title>", encoding="utf-8")
    logger = WandbLogger(save_dir=tmp_path, offline=True, project="p")
    try:
        logger.log_metrics({"valid/bleu": 10.0}, step=5)
        log_run([logger], comparison, figures, page)
    finally:
        wandb.finish()
    [file] = tmp_path.glob("wandb/offline-run-*/*.wandb")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    records = [json.loads(line) for line in said.splitlines()]
    metrics = [record["metric"] for record in records if record["type"] == "metric"]
    axes = {each["name"]: each.get("step_metric") for each in metrics if "name" in each}
    assert axes["length/newstest/bleu"] == LENGTH
    rows = [record["history"]["item"] for record in records if record["type"] == "history"]
    curve = [row["length/newstest/bleu"] for row in rows if "length/newstest/bleu" in row]
    assert [float(value) for value in curve] == pytest.approx(curve_of(run))
    logged = {name.partition(".")[0] for row in rows for name in row}
    assert {"scores", "figures", "page", LENGTH} <= logged
    [table] = (file.parent / "files/media/table").glob("scores_*.table.json")
    assert len(json.loads(table.read_text())["data"]) == len(run.scores)
    sizes = {Image.open(each).size for each in file.parent.glob("files/media/images/figures*.png")}
    assert sizes == {(60, 70)}
    [kept] = file.parent.glob("files/media/html/page_*.html")
    assert kept.read_bytes() == page.read_bytes()


def test_failing_logger_does_not_stop_the_run(
    finished: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(CSVLogger):
        def log_metrics(self, *given: Any, **named: Any) -> None:
            raise ConnectionError("no route")

    comparison, figures = finished
    log_run([Broken("unused")], comparison, figures, None)
    assert "no route" in caplog.text
