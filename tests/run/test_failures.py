"""What goes wrong on a machine ends in a clear line, with the earlier checkpoints intact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.utils import files
from tests.helpers.processes import TINY, Ended, run

OPTIONS = (*TINY, "trainer.log_every=1", "evaluation.train_sample=0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


def train(folder: Path, name: str, *options: str, **keywords: Any) -> Ended:
    options = (*OPTIONS, f"hydra.run.dir={name}", "data.cache=cache", *options)
    return run("train", *options, cwd=folder, **keywords)


def assert_said(ended: Ended, code: int, *parts: str) -> None:
    """Ended with this code, and one or two lines that hold these parts and no traceback."""
    assert ended.code == code, ended.err
    assert "Traceback" not in ended.err
    at = ended.err.index("nmt: ")
    assert ended.err[at:].count("\n") <= 2
    for part in parts:
        assert part in ended.err[at:]


def last_logged(folder: Path, name: str) -> str:
    return (folder / name / "train.log").read_text().splitlines()[-1]


def assert_intact(folder: Path, name: str, update: int) -> None:
    """A whole checkpoint of this update is there, all of it finite."""
    checkpoints = folder / name / "checkpoints"
    found = []
    for path in checkpoints.glob("*.ckpt"):
        files.verify(path)
        content = torch.load(path, weights_only=True)
        found.append(content["global_step"])
        assert all(bool(value.isfinite().all()) for value in content["state_dict"].values())
    assert max(found) == update
    assert not list(checkpoints.glob(".*.partial"))


DISK_FULL = """
import resource
before('torch:save', 2, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000)))
"""

POISON = """
import nmt.models.base as base
real = base.Translator.training_step
def poisoned(self, batch, index):
    found = real(self, batch, index)
    if self.trainer.global_step == 8:
        found["loss"] = found["loss"] * float("nan")
    return found
base.Translator.training_step = poisoned
"""


def test_a_full_disk(folder):
    ended = train(folder, "full", hook=DISK_FULL)
    assert_said(
        ended,
        1,
        "last.ckpt",
        "cannot write the checkpoint: File too large; ",
        "the earlier ones are intact",
    )
    assert_intact(folder, "full", 6)


def test_a_gradient_that_is_not_finite_ends_the_run_and_can_be_gone_on_from(folder):
    ended = train(folder, "poisoned", hook=POISON)
    assert_said(ended, 1, "not finite at or before update 9", "optimizer.lr")
    assert "not finite at or before update 9" in last_logged(folder, "poisoned")
    assert_intact(folder, "poisoned", 6)
    assert train(folder, "poisoned", "resume=auto").code == 0


@pytest.mark.slow
def test_a_learning_rate_far_too_large(folder):
    ended = train(folder, "wild", "optimizer.lr=1e30", "optimizer.clip_norm=0")
    assert_said(ended, 1, "not finite at or before update")
    assert not (folder / "wild/results.json").exists()


def test_out_of_memory_says_what_to_try(folder):
    place = "nmt.models.base:Translator.training_step"
    hook = f"import torch; fail({place!r}, 8, torch.OutOfMemoryError('CUDA out of memory.'))"
    ended = train(folder, "memory", hook=hook)
    assert_said(ended, 1, "data.batch_size=16", "trainer.accumulate=2")
    assert_intact(folder, "memory", 6)


def test_a_worker_that_dies(folder):
    hook = "kill('nmt.data.module:MicroBatches.__getitem__', 9)"
    ended = train(folder, "worker", "data.workers=1", hook=hook)
    assert_said(ended, 1, "data.workers=1", "a process that makes batches died")


def test_a_run_folder_that_cannot_be_written(folder):
    (folder / "file").touch()
    assert_said(train(folder, "file/run"), 2, "hydra.run.dir=file/run", "Not a directory")
    (folder / "blocked").mkdir()
    (folder / "blocked/checkpoints").touch()
    assert_said(train(folder, "blocked"), 2, "blocked/checkpoints: cannot write there")


def test_text_that_changed_between_start_and_resume_is_refused(folder):
    lines = [f"the small house number {n} sleeps ." for n in range(40)]
    for side in ("source", "target"):
        (folder / side).write_text("".join(f"{line}\n" for line in lines))
    text = [
        "data=text",
        "data.batch_size=4",
        *(f"data.{split}.{side}={side}" for split in ("train", "valid") for side in TWO),
    ]
    hook = "kill('nmt.models.base:Translator.training_step', 9)"
    assert train(folder, "changed", *text, hook=hook).code == -9
    (folder / "source").write_text("".join(f"{line} now\n" for line in lines))
    ended = run("train", "resume=changed", "trainer.progress=false", cwd=folder)
    assert_said(ended, 2, "is not the one the run was started with", "restore it")
    assert_intact(folder, "changed", 6)


TWO = ("source", "target")

WANDB_LOG = """
import wandb
def log(self, *arguments, **keywords):
    raise OSError(28, "No space left on device")
wandb.sdk.wandb_run.Run.log = log
"""
WANDB_INIT = """
import wandb
def init(*arguments, **keywords):
    raise wandb.errors.CommError("no network")
wandb.init = init
"""


@pytest.mark.parametrize(
    ("name", "hook"),
    [pytest.param("log", WANDB_LOG, marks=pytest.mark.slow), ("init", WANDB_INIT)],
)
def test_wandb_that_fails_never_stops_a_training(folder, name, hook):
    ended = train(folder, f"wandb-{name}", "logger=wandb", "trainer.max_steps=3", hook=hook)
    assert ended.code == 0, ended.err
    assert "W&B: " in ended.err
    assert "continuing" in ended.err
    results = json.loads((folder / f"wandb-{name}/results.json").read_text())
    assert results["train"]["updates"] == 3
    # no validation was due before the last update, and yet there is a best checkpoint
    assert results["valid"]["update"] == 3
    assert (folder / f"wandb-{name}/checkpoints/best.ckpt").is_file()


@pytest.mark.slow
def test_wandb_out_of_reach(folder):
    """A key that no one has checked, and a server that is not there."""
    environment = {
        "WANDB_API_KEY": "0" * 40,
        "WANDB_BASE_URL": "http://127.0.0.1:9",
        "WANDB_INIT_TIMEOUT": "5",
        "WANDB_MODE": "online",
    }
    options = ("logger=wandb", "logger.mode=online", "trainer.max_steps=3")
    ended = train(folder, "reach", *options, env=environment, timeout=500)
    assert ended.code == 0, ended.err
    assert (folder / "reach/results.json").is_file()
