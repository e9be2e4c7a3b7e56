"""The SLURM job script of docs/devices.md, with programs that play the roles of `srun` and `scontrol`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers import ROOT, documentation

STATES = {
    "preempted": "JobState=RUNNING Reason=None PreemptEligibleTime=2026-11-22T02:30:00 "
    "PreemptTime=2026-11-22T02:30:06",
    "cancelled": "JobState=CANCELLED Reason=None PreemptTime=2026-11-22T02:30:06",
    "running": "JobState=RUNNING Reason=None PreemptEligibleTime=2026-11-22T02:30:00 "
    "PreemptTime=None",
}
# SLURM changes the state of a job that is requeued, and sends SIGTERM to its processes.
SCONTROL = """#!/bin/sh
if [ "$1" = show ]; then echo "JobId=71 $(cat {folder}/state) Restarts=0"; exit; fi
echo "$@" >> {folder}/calls
echo "JobState=PENDING Reason=BeginTime PreemptTime=None" > {folder}/state
kill -TERM $PPID
"""
SRUN = """#!/bin/sh
echo "$@" > {folder}/started
sleep {seconds}
exit {code}
"""


def sleeping(pid: int) -> bool:
    """Tells whether a process sleeps, as bash does in `wait`. Before it, bash would note a signal and still wait."""
    state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True)
    return state.stdout.startswith("S")


class Job:
    """Runs the script in a folder."""

    def __init__(self, folder: Path, state: str, seconds: float = 30, code: int = 0) -> None:
        self.folder = folder
        (folder / "state").write_text(STATES[state])
        for name, text in {"scontrol": SCONTROL, "srun": SRUN}.items():
            (folder / name).write_text(text.format(folder=folder, seconds=seconds, code=code))
            (folder / name).chmod(0o755)
        page = (ROOT / "docs/devices.md").read_text(encoding="utf-8")
        (folder / "job.sh").write_text(documentation.files(page)["job.sh"])

    def run(self, number: int = 0, **variables: str) -> int:
        """Runs the script, sends it a signal if `number` is not 0, and returns its exit code."""
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "SLURM_JOB_ID": "71", **variables}
        process = subprocess.Popen(
            ["bash", "job.sh"], cwd=self.folder, env=environment, start_new_session=True
        )
        if number:
            while not (self.folder / "started").exists() or not sleeping(process.pid):
                time.sleep(0.02)
            process.send_signal(number)
        try:
            return process.wait(20)
        finally:
            if number:
                os.killpg(process.pid, signal.SIGKILL)  # srun

    @property
    def calls(self) -> str:
        """What the script asked `scontrol` to do."""
        path = self.folder / "calls"
        return path.read_text().strip() if path.exists() else ""


@pytest.mark.parametrize(
    ("number", "state", "expected"),
    [
        (signal.SIGUSR1, "running", "requeue 71"),
        (signal.SIGTERM, "preempted", "requeue 71"),
        (signal.SIGTERM, "cancelled", ""),
        (signal.SIGTERM, "running", ""),
    ],
)
def test_script_requeues_a_preempted_job(tmp_path, number, state, expected):
    job = Job(tmp_path, state)
    assert job.run(number) == 128 + number
    assert job.calls == expected


def test_script_requeues_a_job_of_an_array_by_its_index(tmp_path):
    job = Job(tmp_path, "running")
    job.run(signal.SIGUSR1, SLURM_ARRAY_JOB_ID="70", SLURM_ARRAY_TASK_ID="3")
    assert job.calls == "requeue 70_3"


@pytest.mark.parametrize(
    ("code", "state", "expected"),
    [(143, "preempted", "requeue 71"), (0, "preempted", ""), (1, "running", "")],
)
def test_script_requeues_if_the_training_was_preempted(tmp_path, code, state, expected):
    """SLURM sends the SIGTERM of a preemption to the tasks alone, unless told otherwise."""
    job = Job(tmp_path, state, seconds=0, code=code)
    assert job.run() == code
    assert job.calls == expected
    assert "-m nmt.train" in (tmp_path / "started").read_text()
