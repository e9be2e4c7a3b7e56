import json
import logging
import subprocess
import sys

import pytest

from nmt.config.schema import to_containers
from nmt.config.validation import load
from nmt.report.runs import FinishedRun
from nmt.report.wandb import panels as wandb_panels
from nmt.report.wandb.panels import (
    define_metrics,
    log_alignments,
    log_test,
    log_translations,
    warn_on_error,
)


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    monkeypatch.setattr(wandb_panels, "_reported", set())


ROW = {"id": 3, "weights": [[0.25, 0.75]], "source": ["maison", "</s>"], "target": ["house"]}


class Recorder:
    """A run that keeps what is logged, or fails at everything."""

    def __init__(self, broken=False):
        self.broken, self.rows, self.summary = broken, [], {}

    def log(self, row):
        if self.broken:
            raise OSError("No space left on device")
        self.rows.append(row)

    def define_metric(self, *names, **options):
        self.log({names: options})


def test_errors_are_reported_once_and_stop_nothing(caplog):
    run = Recorder(broken=True)
    with caplog.at_level(logging.WARNING):
        for update in (1, 2, 3):
            log_alignments(run, update, [ROW])
        define_metrics(run)
        log_test(run, {"test": {"dev": {"by_length": [{"from": 1}]}}})
    assert [record.message.split(" failed")[0] for record in caplog.records] == [
        "W&B: logging alignments",
        "W&B: defining metrics",
        "W&B: logging the test",
    ]
    assert "OSError: No space left on device" in caplog.records[0].message


def test_stopping_a_run_is_not_an_error_of_wandb():
    with pytest.raises(KeyboardInterrupt), warn_on_error("waiting"):
        raise KeyboardInterrupt


def test_models_without_attention_log_no_alignments():
    run = Recorder()
    log_alignments(run, 7, [{"weights": None}])
    assert run.rows == []
    log_alignments(run, 7, [{"weights": None}, ROW])
    assert [set(row) for row in run.rows] == [{"trainer/global_step", "valid/alignment/2"}]


def inspect(folder):
    """Records of the one offline run under a folder."""
    [file] = folder.glob("wandb/offline-run-*/*.wandb")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()], file.parent / "files"


def test_the_table_of_translations_has_each_sentence_and_the_heatmaps_there_are(tmp_path):
    wandb = pytest.importorskip("wandb")
    from PIL import Image

    short, long = ({"id": 7, "length": 2}, {"id": 3, "length": 9})
    for row, score in ((short, -1.5), (long, -4.0)):
        row.update(
            source=["a", "</s>"], target=["un", "<unk>", "</s>"], reference=["le"], score=score
        )
    replaced = [{"id": row["id"], "hypothesis": ["un", "chat"]} for row in (short, long)]
    lines = {("alignments", "newstest"): [long, short], ("translations", "newstest"): replaced}
    finished = FinishedRun("mine", {"test": {"newstest": {}}}, lines=lines)
    heatmap = tmp_path / "newstest-heatmap-3.png"
    Image.new("L", (2, 2)).save(heatmap)
    run = Recorder()
    figures = [heatmap, tmp_path / "newstest-heatmap-7.pdf", tmp_path / "other-heatmap-7.png"]
    log_translations(run, finished, figures)
    [row] = run.rows
    table = row["test/translations"]
    assert isinstance(table, wandb.Table)
    first, second = (dict(zip(table.columns, data, strict=True)) for data in table.data)
    assert first.pop("attention") is None
    assert first == {
        **{"set": "newstest", "id": 7, "words": 2, "score": -1.5},
        **{"source": "a", "translation": "un chat", "reference": "le"},
    }
    assert (second["id"], second["words"], second["score"]) == (3, 9, -4.0)
    assert isinstance(second["attention"], wandb.Image)
    log_translations(run, FinishedRun("mine", {"test": {"newstest": {}}}), figures)
    assert len(run.rows) == 1


def test_an_offline_run_holds_its_group_tags_and_config(tmp_path, composer, monkeypatch):
    wandb = pytest.importorskip("wandb")
    from nmt.training import wandb_logger
    from nmt.training.loggers import make_logger

    typed = ["+experiment=rnnsearch30", "regime=tiny", "scoring=dot", "name=dotted", "seed=7"]
    typed += ["logger.wandb.group=lengths", "tags=[first,laptop]", "logger.wandb.project=curves"]
    config = load(composer(*typed, "logger.wandb.entity=team"))
    monkeypatch.setattr(wandb_logger, "command_name", lambda: "evaluate")
    try:
        logger = make_logger(config, tmp_path)
        assert logger is not None
        number = logger.experiment.id
    finally:
        wandb.finish()
    records, _ = inspect(tmp_path)
    [run] = [record["run"] for record in records if record["type"] == "run"]
    assert run["run_id"] == number == (tmp_path / "wandb" / "id").read_text()
    assert (run["entity"], run["project"], run["run_group"]) == ("team", "curves", "lengths")
    assert run["display_name"] == "dotted, seed 7"
    assert run["job_type"] == "evaluate"
    assert sorted(run["tags"]) == ["first", "laptop", "rnnsearch30", "tiny"]
    kept = run["config"]["update"]
    kept.pop("_wandb")
    assert kept == to_containers(config)
    assert (kept["seed"], kept["data"]["max_length"]) == (7, 30)
    assert kept["model"]["scoring"] == {"_target_": "nmt.layers.scoring.Dot"}


def test_a_run_folder_keeps_the_id_of_wandbs_sweep_agent(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    from nmt.training.wandb_logger import run_id

    monkeypatch.setenv("WANDB_RUN_ID", "agents")
    drawn = run_id(tmp_path / "alone")  # each job of a sweep of Hydra's own is a run
    assert drawn != "agents"
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep")
    assert run_id(tmp_path / "agent") == "agents"
    monkeypatch.delenv("WANDB_RUN_ID")
    assert run_id(tmp_path / "agent") == "agents"
    assert run_id(tmp_path / "alone") == drawn
