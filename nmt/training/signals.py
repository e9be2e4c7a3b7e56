"""Signals that stop a run: it is saved between two updates and can be resumed.

SIGTERM (batch systems, `kill`), SIGUSR1 (SLURM's warning before a time limit) and Ctrl-C are handled.
During training a signal is only noted, and takes effect after the update; at any other time the run
ends at once, since everything worth keeping is on disk. A second Ctrl-C ends it at once, too.

A SLURM job is requeued after SIGUSR1, and after the SIGTERM of a preemption. SLURM itself requeues a
preempted job only where the partition has no GraceTime: it takes a job that ends within its grace
time for failed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from nmt.utils.commands import command_line, override
from nmt.utils.environment import job_id, rank
from nmt.utils.errors import Interrupted

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class Stop:
    """Whether a signal has asked this process to stop.

    Attributes:
        number: of the signal, or 0.
        deferred: whether a signal is only noted, in `number`, for the training loop to check.
        ended: whether the run is ending already, so that further signals are ignored.
        trust: modules outside nmt that a resumed run must be allowed.
    """

    def __init__(self, folder: Path) -> None:
        self.number = 0
        self.deferred = False
        self.ended = False
        self.trust: list[str] = []
        self._folder = folder
        self._process = os.getpid()

    @contextlib.contextmanager
    def deferring(self) -> Iterator[None]:
        """Notes signals inside, and raises for one on exit if nothing else has."""
        self.deferred = True
        try:
            yield
        finally:
            self.deferred = False
        if self.number:
            raise self.interrupted(self.number)

    def interrupted(self, number: int) -> Interrupted:
        """The exception that ends the run, with the command that resumes it."""
        name = signal.Signals(number).name
        if any((self._folder / "checkpoints").glob("*.ckpt")):
            overrides = [override("resume", str(self._folder))]
            if self.trust:
                overrides.append(f"trust=[{','.join(dict.fromkeys(self.trust))}]")
            command = command_line("train", overrides)
            return Interrupted(f"stopped by {name}; resume with: {command}", number)
        return Interrupted(f"stopped by {name} before the first checkpoint", number)

    def install(self) -> dict[signal.Signals, Any]:
        """Installs the handlers; returns those of before.

        A Ctrl-C reaches every rank that this program has started. The first one alone answers it: it
        tells the others in their next exchange.
        """
        handlers: dict[signal.Signals, Any] = dict.fromkeys(SIGNALS, self.handle)
        if rank() and job_id("train") is None:
            handlers[signal.SIGINT] = signal.SIG_IGN
        return {number: signal.signal(number, handler) for number, handler in handlers.items()}

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler of every signal in `SIGNALS`."""
        if os.getpid() != self._process:
            return  # a forked worker: the terminal sends Ctrl-C to all, the main process answers it
        if self.ended:
            return
        is_second = self.number and number == signal.SIGINT  # a second Ctrl-C
        self.number = number
        if is_second or not self.deferred:
            raise self.interrupted(number)
        log.warning("%s: stopping after this update", signal.Signals(number).name)


@contextlib.contextmanager
def stoppable(folder: Path, *, requeue: bool) -> Iterator[Stop]:
    """Handles signals inside.

    Args:
        folder: of the run, where its checkpoints are.
        requeue: a SLURM job is also queued again, after SIGUSR1 and after a preemption.
    """
    stop = Stop(folder)
    before = stop.install()
    try:
        yield stop
    except Interrupted as stopped:
        stop.ended = True  # SLURM sends a SIGTERM to a job that asks to be queued again
        if "SLURM_JOB_ID" in os.environ and rank() == 0:
            warned = stopped.signal == signal.SIGUSR1
            if warned or (stopped.signal == signal.SIGTERM and preempted()):
                if requeue:
                    requeue_job()
                else:
                    log.warning("not requeued: only with resume=auto")
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def preempted() -> bool:
    """Whether another job preempts this one, which may run on until its grace time has passed.

    SLURM sends SIGTERM then, as it does for `scancel` and at the time limit, which must end the job:
    a job that was cancelled no longer counts as running.
    """
    output = scontrol("show", "job", "--oneliner", os.environ["SLURM_JOB_ID"])
    if output is None:
        return False
    fields = dict(re.findall(r"\b(JobState|PreemptTime)=(\S+)", output))
    time = fields.get("PreemptTime", "None")
    return fields.get("JobState") == "RUNNING" and time not in ("None", "Unknown")


def requeue_job() -> None:
    """Requeues this SLURM job."""
    job = os.environ["SLURM_JOB_ID"]
    if "SLURM_ARRAY_JOB_ID" in os.environ:
        job = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    if scontrol("requeue", job) is not None:
        log.info("requeued SLURM job %s", job)


def scontrol(*arguments: str) -> str | None:
    """What `scontrol` prints, or None with a warning where it fails."""
    try:
        done = subprocess.run(
            ["scontrol", *arguments], check=True, timeout=60, capture_output=True, text=True
        )
        return done.stdout
    except subprocess.CalledProcessError as error:
        log.warning("scontrol %s: %s", shlex.join(arguments), error.stderr.strip() or error)
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("scontrol %s: %s", shlex.join(arguments), error)
    return None
