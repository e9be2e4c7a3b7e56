"""Promise 9: results name their command and commit, and intervals say which units were resampled."""

from __future__ import annotations

import json
import shlex
import subprocess

import pytest
import torch

import nmt
from tests.helpers import ROOT
from tests.helpers.produced import RNNSEARCH, results
from tests.helpers.run_folders import make_run


def test_results_name_the_command_and_the_commit(rnnsearch):
    found = results(rnnsearch)
    assert shlex.split(found["command"]) == ["python", "-m", "nmt.train", *RNNSEARCH]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if head.returncode == 0:  # fails in a copy without git history
        assert found["commit"].startswith(head.stdout.strip())
    stored = torch.load(rnnsearch / "checkpoints/best.ckpt", weights_only=True)["nmt"]
    assert stored["version"] == found["versions"].get("rnnsearch", nmt.__version__)


def test_intervals_of_a_run_name_the_resampled_units(rnnsearch):
    table = nmt.scores([rnnsearch])
    with_interval = table.low.notna()
    assert with_interval.any()
    assert (with_interval == table.high.notna()).all()
    assert set(table.interval[with_interval]) == {"sentences"}
    assert set(table.interval[~with_interval].fillna("")) <= {""}
    known = table[with_interval]
    assert ((known.low <= known.value) & (known.value <= known.high)).all()


@pytest.mark.parametrize("named", [pytest.param(False, marks=pytest.mark.slow), True])
def test_intervals_of_a_comparison_name_the_resampled_units(named, tmp_path):
    """Compares three seeds and an external system, with and without document names."""
    folders = [make_run(tmp_path / f"{seed}", seed=seed, pairs=400, kept=0) for seed in (1, 2, 3)]
    for file in map(file_of, folders if named else ()):
        rows = [json.loads(line) for line in file.open()]
        lines = [json.dumps(row | {"document": row["id"] // 4}) for row in rows]
        file.write_text("\n".join(lines) + "\n")
    text = [" ".join(row["hypothesis"]) for row in map(json.loads, file_of(folders[0]).open())]
    (tmp_path / "other.txt").write_text("\n".join(text) + "\n")
    found = nmt.compare(folders, systems={"other": str(tmp_path / "other.txt")}, resamples=20)
    drawn = "documents" if named else "sentences"
    for frame, kinds in (
        (found.scores[found.scores["run"] == "other"], {drawn}),
        (found.curves, {drawn, f"{drawn} and seeds"}),
        (found.retention, {drawn, f"{drawn} and seeds"}),
        (found.differences, {drawn}),
    ):
        known = frame["low"].notna()
        assert set(frame.loc[known, "interval"]) == kinds


def file_of(folder):
    return folder / "translations/newstest.jsonl"
