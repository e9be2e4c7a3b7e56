"""A signal or a failed rank ends all ranks within seconds, and at most one line says why."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.helpers.processes import (
    TINY,
    Ended,
    Process,
    descendants,
    start,
    wait_until_gone,
)

TYPED = (
    "+experiment=rnnsearch50",
    *TINY,
    "trainer=ddp",
    "trainer.devices=2",
    "trainer.max_steps=100000",
    "trainer.log_every_n_steps=2",
    "hydra.run.dir=run",
)
AT_ONCE_S = 3  # time limit if all ranks get the signal, or rank 0
FOLLOWING_S = 10  # time limit if only rank 1 gets the signal
# Runs a shell command as rank 1. It never joins the process group, so rank 0 waits for it.
NEVER_JOINS = """
import subprocess
import types
from pytorch_lightning.strategies.launchers import subprocess_script
Popen = subprocess.Popen
def launch(command, **options):
    return Popen(["sh", "-c", "echo $$ > rank1; exec {program}"])
subprocess_script.subprocess = types.SimpleNamespace(Popen=launch)
"""
# Raises an error on rank 0 alone: rank 1 is a fork of this process.
FIRST_RANK_FAILS = """
import os
fork_ranks()
def work():
    if "LOCAL_RANK" not in os.environ or os.environ["LOCAL_RANK"] == "0":
        raise FileNotFoundError("no such file: x")
before("nmt.training.callbacks:Seeds.on_train_batch_start", 3, work)
"""


def launch(folder: Path, program: str) -> Process:
    """Starts a training with a shell command as rank 1, and waits until this command runs."""
    hook = NEVER_JOINS.format(program=program)
    cache = f"data.cache={folder.parent}/cache"
    process = start("nmt.train", *TYPED, cache, cwd=folder, hook=hook)
    wait_for(folder / "rank1")
    return process


def wait_for(path: Path) -> None:
    end = time.monotonic() + 120
    while not path.exists() or not path.stat().st_size:
        assert time.monotonic() < end, f"{path} does not appear"
        time.sleep(0.05)


def messages(ended: Ended) -> list[str]:
    assert "Traceback" not in ended.err
    return [line for line in ended.err.splitlines() if line.startswith("nmt: ")]


@pytest.mark.slow
def test_signal_ends_a_rank_that_waits_for_others(tmp_path):
    process = launch(tmp_path / "runs", "sleep 30")
    time.sleep(0.5)  # until rank 0 waits in C++ code
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    ended = process.wait()
    assert time.monotonic() - began < AT_ONCE_S
    assert ended.code == -signal.SIGTERM
    assert messages(ended) == []


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("sh -c 'exit 3'", "failed (exit code 3)"),
        ("sh -c 'kill -9 $$'", "stopped by SIGKILL"),
    ],
)
@pytest.mark.slow
def test_failed_rank_ends_the_others(tmp_path, program, problem):
    ended = launch(tmp_path / "runs", program).wait()
    assert ended.code == 1
    assert messages(ended) == [f"nmt: rank 1: {problem}"]


@pytest.mark.parametrize(
    ("number", "receivers", "code", "message"),
    [
        (signal.SIGINT, "all ranks", -signal.SIGINT, []),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (signal.SIGUSR1, "rank 0", -signal.SIGUSR1, []),
                (signal.SIGKILL, "rank 0", -signal.SIGKILL, []),
                (signal.SIGTERM, "rank 1", -signal.SIGTERM, ["nmt: rank 1: stopped by SIGTERM"]),
                (signal.SIGKILL, "rank 1", 1, ["nmt: rank 1: stopped by SIGKILL"]),
            )
        ),
    ],
)
def test_signal_ends_all_ranks_during_training(tmp_path, number, receivers, code, message):
    process = start("nmt.train", *TYPED, cwd=tmp_path, hook="fork_ranks()")
    wait_for(tmp_path / "run/checkpoints/last.ckpt")
    first, *others = process.pids[0], *descendants(process.pids[0])
    for pid in {"all ranks": [first, *others], "rank 0": [first], "rank 1": others}[receivers]:
        os.kill(pid, number)
    wait_until_gone([first, *others], FOLLOWING_S if receivers == "rank 1" else AT_ONCE_S)
    ended = process.wait()
    assert ended.code == code, ended.err
    assert messages(ended) == message


@pytest.mark.slow
def test_error_of_one_rank_is_reported_once(tmp_path):
    """Rank 0 raises the error, and rank 1 waits for it."""
    process = start("nmt.train", *TYPED, cwd=tmp_path, hook=FIRST_RANK_FAILS)
    ended = process.wait()
    assert ended.code == 1
    assert ended.err.count("Traceback") == 1
    assert ended.err.endswith("FileNotFoundError: no such file: x\n")
