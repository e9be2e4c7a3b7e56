"""A signal or a failed rank ends all ranks within seconds, with a message of one line."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.processes import TINY, Process, start
from tests.helpers.server import ENVIRONMENT

TYPED = (
    "+experiment=rnnsearch50",
    *TINY,
    "trainer=ddp",
    "trainer.devices=2",
    "trainer.max_steps=100000",
    "trainer.log_every_n_steps=2",
    "hydra.run.dir=run",
)
# Runs a shell command as rank 1. It never joins the process group, so rank 0 waits for it.
NEVER_JOINS = """
from pytorch_lightning.strategies.launchers import subprocess_script
Popen = subprocess.Popen
def launch(command, **options):
    return Popen(["sh", "-c", "echo $$ > rank1; exec {program}"])
subprocess_script.subprocess = types.SimpleNamespace(Popen=launch)
"""


def launch(folder: Path, program: str) -> Process:
    """Starts a training with a shell command as rank 1, and waits until this command runs."""
    hook = NEVER_JOINS.format(program=program)
    cache = f"data.cache={folder.parent}/cache"
    process = start("nmt.train", *TYPED, cache, cwd=folder, hook=hook)
    wait_for(folder / "rank1")
    return process


def wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists() or not path.read_text():
        assert time.monotonic() < end, f"{path} does not appear"
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """Tells whether a process runs and is not a zombie, which has no command line."""
    path = Path(f"/proc/{pid}/cmdline")
    return path.exists() and bool(path.read_bytes())


def messages(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("nmt: ")]


def test_a_signal_ends_a_rank_that_waits_for_others(tmp_path):
    process = launch(tmp_path / "runs", "sleep 100")
    time.sleep(0.5)  # until rank 0 waits in C++ code
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    ended = process.wait()
    assert time.monotonic() - began < 30  # not the timeout of half an hour
    assert ended.code == 128 + signal.SIGTERM
    [message] = messages(ended.err)
    assert message.endswith("stopped by SIGTERM before the first checkpoint")
    other = int((tmp_path / "runs/rank1").read_text())
    end = time.monotonic() + 10
    while runs(other):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("sh -c 'exit 3'", "failed (exit code 3)"),
        pytest.param("sh -c 'kill -9 $$'", "stopped by SIGKILL", marks=pytest.mark.slow),
    ],
)
def test_a_rank_that_fails_ends_the_others(tmp_path, program, problem):
    ended = launch(tmp_path / "runs", program).wait()
    assert ended.code == 1
    assert messages(ended.err) == [f"nmt: rank 1: {problem}"]


def test_a_signal_between_the_join_and_the_first_update(tmp_path):
    """Only rank 0 gets the signal, during the validation before the first update."""
    place = "nmt.models.base:Translator.validation_step"
    hook = f"os.environ['LOCAL_RANK'] == '0' and send({signal.SIGTERM:d}, {place!r}, 1)"
    ended = start("nmt.train", *TYPED, cwd=tmp_path, hook=hook, ranks=2).wait()
    assert ended.codes == [128 + signal.SIGTERM, 0], ended.err
    [message] = messages(ended.err)
    assert message.startswith("nmt: stopped by SIGTERM; resume with:")


@pytest.fixture
def launched(tmp_path):
    """Starts a training on two ranks in its own process group; Lightning launches rank 1."""
    with (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "nmt.train", *TYPED],
            cwd=tmp_path,
            env={**os.environ, **ENVIRONMENT},
            stdout=err,
            stderr=err,
            start_new_session=True,
        )
    try:
        end = time.monotonic() + 120
        while " on 2 x " not in (text := (tmp_path / "err").read_text()):
            assert process.poll() is None
            assert time.monotonic() < end, text
            time.sleep(0.1)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def others(process: subprocess.Popen[bytes]) -> list[int]:
    """Returns the ids of the running processes in the process group of `process`."""
    found = subprocess.run(["pgrep", "-g", str(process.pid)], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split() if runs(int(pid))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delay_s", "number"),
    [(0, signal.SIGTERM), (4, signal.SIGTERM), (4, signal.SIGINT), (8, signal.SIGTERM)],
)
def test_a_signal_to_the_process_group(launched, tmp_path, delay_s, number):
    """Terminals and the program `timeout` send a signal to all processes of a group."""
    time.sleep(delay_s)
    os.killpg(launched.pid, number)
    assert launched.wait(60) == 128 + number
    assert not others(launched)
    [message] = messages((tmp_path / "err").read_text())
    assert f"stopped by {number.name}" in message


@pytest.mark.slow
def test_no_rank_outlives_the_first(launched):
    time.sleep(12)
    launched.kill()
    launched.wait()
    end = time.monotonic() + 10
    while others(launched):
        assert time.monotonic() < end
        time.sleep(0.1)
