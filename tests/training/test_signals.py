"""A signal ends a command at once, or at the end of a block that defers signals."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from nmt.config.loading import load
from nmt.training.run import outside
from nmt.training.signals import Stop, stoppable
from nmt.utils.errors import Interrupted


def get(number: int, folder: Path, *, requeue: bool = False) -> None:
    """Sends this process a signal inside `stoppable`."""
    with stoppable(folder, requeue=requeue):
        os.kill(os.getpid(), number)
        time.sleep(10)


def test_a_signal_is_obeyed_at_once(tmp_path):
    with pytest.raises(Interrupted, match="before the first checkpoint") as stopped:
        get(signal.SIGTERM, tmp_path)
    assert stopped.value.signal == 15


def test_a_deferred_signal_is_obeyed_afterwards(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/last.ckpt").touch()
    reached = []

    def defer() -> None:
        with stoppable(tmp_path, requeue=False) as stop, stop.deferring():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append(stop.number)

    with pytest.raises(Interrupted, match=f"stopped by SIGINT; resume with: .* resume={tmp_path}"):
        defer()
    assert reached == [2]


def test_the_command_that_resumes_trusts_what_the_run_trusted(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/last.ckpt").touch()
    stop = Stop(tmp_path)
    stop.trusted = ["mine.scores", "other"]
    said = str(stop.interrupted(signal.SIGTERM))
    assert said.endswith(f"resume={tmp_path} 'trust=[mine.scores,other]'")


def test_the_command_that_resumes_names_folders_outside_the_run(tmp_path, composer):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints/last.ckpt").touch()
    config = load(composer())
    assert outside(config, tmp_path) == {}
    config.callbacks["mine"] = {"dirpath": "/elsewhere", "filename": "../../x"}
    assert outside(config, tmp_path) == {
        "callbacks.mine.dirpath": "/elsewhere",
        "callbacks.mine.filename": "../../x",
    }
    stop = Stop(tmp_path)
    stop.folders = ["callbacks.best.dirpath=/elsewhere"]
    said = str(stop.interrupted(signal.SIGTERM))
    assert said.endswith(f"resume={tmp_path} callbacks.best.dirpath=/elsewhere")


def test_a_forked_worker_leaves_signals_to_its_parent(tmp_path):
    stop = Stop(tmp_path)
    worker = os.fork()
    if worker == 0:
        try:
            stop.handle(signal.SIGINT, None)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(worker, 0)[1] == 0


def test_a_second_interrupt_does_not_wait(tmp_path):
    def interrupt_twice() -> None:
        with stoppable(tmp_path, requeue=False) as stop, stop.deferring():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError(f"still here after {stop.number}")

    with pytest.raises(Interrupted):
        interrupt_twice()


def test_handlers_are_put_back(tmp_path):
    before = [signal.getsignal(number) for number in (2, 10, 15)]
    with stoppable(tmp_path, requeue=False):
        assert signal.getsignal(signal.SIGTERM) != before[2]
    assert [signal.getsignal(number) for number in (2, 10, 15)] == before


STATES = {
    "preempted": "JobState=RUNNING PreemptTime=2026-11-22T02:30:06",
    "cancelled": "JobState=CANCELLED PreemptTime=2026-11-22T02:30:06",
    "running": "JobState=RUNNING PreemptTime=None",
}


@pytest.mark.parametrize(
    ("number", "requeue", "array", "state", "expected"),
    [
        (signal.SIGUSR1, True, False, "running", "requeue 71"),
        (signal.SIGUSR1, True, True, "running", "requeue 70_3"),
        (signal.SIGUSR1, False, False, "running", ""),
        (signal.SIGTERM, True, False, "preempted", "requeue 71"),
        (signal.SIGTERM, True, False, "running", ""),
        (signal.SIGTERM, True, False, "cancelled", ""),
        (signal.SIGINT, True, False, "preempted", ""),
    ],
)
def test_slurm_jobs_are_put_back_into_the_queue(
    tmp_path, monkeypatch, number, requeue, array, state, expected
):
    """Uses a fake `scontrol` that records its arguments, and sends SIGTERM as SLURM does."""
    program = tmp_path / "scontrol"
    program.write_text(
        f"""#!/bin/sh
if [ "$1" = show ]; then echo 'JobId=71 {STATES[state]} Restarts=0'; exit; fi
echo "$@" >> {tmp_path}/calls
kill -TERM $PPID
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_JOB_ID", "71")
    if array:
        monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "70")
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    with pytest.raises(Interrupted) as stopped:
        get(number, tmp_path, requeue=requeue)
    assert stopped.value.signal == number
    calls = tmp_path / "calls"
    assert (calls.read_text() if calls.exists() else "").strip() == expected
