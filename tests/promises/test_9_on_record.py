"""Promise 9: what is on record names its command and commit, and every interval says what it is of."""

from __future__ import annotations

import shlex
import subprocess

import torch

import nmt
from tests.helpers import ROOT
from tests.helpers.produced import RNNSEARCH, results


def test_a_run_names_the_command_and_the_commit_that_made_it(rnnsearch):
    found = results(rnnsearch)
    assert shlex.split(found["command"]) == ["python", "-m", "nmt.train", *RNNSEARCH]
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if head.returncode == 0:  # else the tests run on a copy without its history
        assert found["commit"].startswith(head.stdout.strip())
    stored = torch.load(rnnsearch / "checkpoints/best.ckpt", weights_only=True)["nmt"]
    assert stored["version"] == found["versions"].get("rnnsearch", nmt.__version__)


def test_every_interval_says_what_was_drawn_again(rnnsearch):
    table = nmt.scores([rnnsearch])
    with_interval = table.low.notna()
    assert with_interval.any()
    assert (with_interval == table.high.notna()).all()
    assert set(table.interval[with_interval]) == {"sentences"}
    assert set(table.interval[~with_interval].fillna("")) <= {""}
    known = table[with_interval]
    assert ((known.low <= known.value) & (known.value <= known.high)).all()
