"""What W&B's offline files hold of a run, of its continuation, of an evaluation and a comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.report.finding import find_runs
from nmt.report.wandb.lineage import log_comparison
from nmt.utils.files import sha256
from tests.helpers.processes import TINY, run
from tests.run.test_resume import history, records

LOGGED = ("logger=wandb", "logger.mode=offline", "logger.entity=team", "data.cache=cache")
UPDATE = "trainer/global_step"


def config_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The configuration of a W&B run, its later changes included."""
    [begun] = [record["run"] for record in found if record["type"] == "run"]
    config: dict[str, Any] = dict(begun["config"]["update"])
    for record in found:
        if record["type"] == "config":
            config |= record["config"].get("update", {})
    return config


def summary_of_run(found: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for record in found:
        if record["type"] == "summary":
            summary |= record["summary"].get("update", {})
    return summary


def models(found: list[dict[str, Any]]) -> list[tuple[str, str, dict[str, Any], Path]]:
    """Name, alias, metadata and file of each checkpoint that was logged, in their order."""
    logged = [record["artifact"] for record in found if record["type"] == "artifact"]
    return [
        (
            each["name"],
            next(alias for alias in each["aliases"] if alias != "latest"),
            json.loads(each["metadata"]),
            Path(each["manifest"]["contents"][0]["local_path"]),
        )
        for each in logged
        if each["type"] == "model"
    ]


@pytest.mark.slow
def test_train_resume_evaluate_and_compare_can_be_followed(tmp_path, monkeypatch):
    def done(command: str, *typed: str) -> None:
        ended = run(command, *typed, cwd=tmp_path)
        assert ended.code == 0, ended.err

    steps = ("trainer.valid_every=2", "trainer.log_every=1", "trainer.valid_translate=2")
    training = (*TINY, *LOGGED, *steps, "hydra.run.dir=trained")
    done("train", *training, "trainer.max_steps=4")
    done("train", *training, "trainer.max_steps=6", "resume=auto")
    best = "checkpoint=trained/checkpoints/best.ckpt"
    quick = ("sets=[test]", "trainer.progress=false", "report.heatmaps=0", *LOGGED)
    done("evaluate", best, *quick, "hydra.run.dir=tested")

    identity = (tmp_path / "trained/wandb/id").read_text()
    results = json.loads((tmp_path / "trained/results.json").read_text())
    text = results["text"]["training"]
    files = sorted((tmp_path / "trained/wandb").glob("offline-run-*/run-*.wandb"))
    assert [file.name for file in files] == [f"run-{identity}.wandb"] * 2
    first, second = parts = [records(file) for file in files]

    # the rows: those of the updates of each part, and the test at its end
    for part, updates, valid in (
        (first, [1, 2, 3, 4], [2, 4]),
        (second, [5, 6], [6]),
    ):
        rows = history(part)
        for key, expected in {"train/nll_per_word": updates, "valid/nll_per_word": valid}.items():
            assert [row[UPDATE] for row in rows if key in row] == expected, key
        pictures = [row[UPDATE] for row in rows if "valid/alignment/1.caption" in row]
        assert pictures == valid
        for key in ("test/by_length._type", "test/translations._type"):
            assert len([row for row in rows if key in row]) == 1, key
        curve = [row.get("length/by_length/sentences", 0) for row in rows if "length/words" in row]
        assert sum(curve) == 7
    steps_of = [row["_step"] for part in parts for row in history(part)]
    assert steps_of == sorted(set(steps_of))

    # the checkpoints: their files are those of then, though the second part has replaced them
    for part, last in ((first, 4), (second, 6)):
        (name, alias, told, file), (_, other, ended, newest) = models(part)
        assert (name, alias, other) == (f"model-{identity}", "best", "last")
        assert ended["update"] == last
        assert told["update"] in range(2, last + 1, 2)
        assert (told["text"], ended["text"]) == (text, text)
        assert [sha256(file), sha256(newest)] == [told["sha256"], ended["sha256"]]
    assert told["sha256"] == sha256(tmp_path / "trained/checkpoints/best.ckpt")
    assert told["score"]["nll_per_word"] == pytest.approx(results["valid"]["nll_per_word"])
    best_score = summary_of_run(second)["best/nll_per_word"]
    assert best_score == pytest.approx(results["valid"]["nll_per_word"])

    # the evaluation: what it tested
    [file] = (tmp_path / "tested/wandb").glob("offline-run-*/run-*.wandb")
    evaluation = records(file)
    address = {"run": f"team/nmt/{identity}", "artifact": f"team/nmt/model-{identity}:best"}
    [source] = config_of(evaluation)["sources"]
    assert source == {
        **address,
        "checkpoint": str((tmp_path / "trained/checkpoints/best.ckpt").resolve()),
        "sha256": told["sha256"],
        "update": told["update"],
        "text": text,
    }
    assert models(evaluation) == []
    assert not [row for row in history(evaluation) if "train/nll_per_word" in row]
    tested = json.loads((tmp_path / "tested/results.json").read_text())
    assert tested["sources"]["wandb"] == address
    found = summary_of_run(evaluation)["test/test/bleu"]
    assert found == pytest.approx(tested["test"]["test"]["bleu"]["all"]["score"])

    # the comparison: which runs, and through them which checkpoints
    monkeypatch.setenv("WANDB_SILENT", "true")
    page = tmp_path / "comparison/comparison.html"
    page.parent.mkdir()
    page.write_text("<!doctype html>")
    runs = find_runs([tmp_path / "trained", tmp_path / "tested"]).runs
    log_comparison("team", "nmt", page, runs, mode="offline")
    [file] = page.parent.glob("wandb/offline-run-*/run-*.wandb")
    comparison = records(file)
    again = (tmp_path / "tested/wandb/id").read_text()
    sources = config_of(comparison)["sources"]
    assert [each["run"] for each in sources] == [f"team/nmt/{identity}", f"team/nmt/{again}"]
    assert [each["artifact"] for each in sources] == [address["artifact"]] * 2
    assert [each["sha256"] for each in sources] == [None, told["sha256"]]
    assert sources[0]["text"] == text
    [row] = history(comparison)
    assert row["comparison/page._type"] == "html-file"
