"""Handles signals that stop a run. The run is saved between two updates and can be resumed.

SIGTERM (batch systems, `kill`), SIGUSR1 (SLURM's warning before a time limit) and Ctrl-C are handled.
During training, a signal stops the run between two updates. At any other time the run ends at once,
because there is nothing to save. Until all ranks have joined, `nmt.training.rank_launcher` handles the
signals. A Ctrl-C after an earlier signal always ends the run at once.

After SIGUSR1, and after the SIGTERM of a preemption, the run requeues its own SLURM job. SLURM itself
kills and requeues a preempted job only after the time `GraceTime`. If the job ends earlier, SLURM marks
it as failed and does not requeue it.
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
from typing import Any, NoReturn

from nmt.utils.environment import end_with_parent, job_id, rank
from nmt.utils.errors import Interrupted, exit_at_once
from nmt.utils.quoting import command_line, quoted

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


class Stop:
    """Handles the signals that ask this process to stop.

    Attributes:
        number: the number of the signal that was received, or 0.
        importing: whether modules are being imported. A signal then ends the process without an exception.
        deferred: whether a signal is only stored in `number`. The training loop then checks `number`.
        ended: whether the run is already ending. Further signals are then ignored.
        trusted: code outside nmt that the checkpoint needs. The resume command names this code in `trust`.
        folders: overrides that name folders outside the run's folder. The resume command repeats them.
    """

    def __init__(self, folder: Path, *, requeue: bool = False) -> None:
        self.number = 0
        self.importing = False
        self.deferred = False
        self.ended = False
        self.trusted: list[str] = []
        self.folders: list[str] = []
        self._folder = folder
        self._requeue = requeue
        self._process = os.getpid()

    @contextlib.contextmanager
    def deferring(self) -> Iterator[None]:
        """Defers signals until the end of this context, which raises `Interrupted` if there was a signal."""
        self.deferred = True
        try:
            yield
        finally:
            self.deferred = False
        if self.number:
            raise self.interrupted(self.number)

    def interrupted(self, number: int) -> Interrupted:
        """Returns the exception that ends the run, with the command that resumes the run in its message."""
        name = signal.Signals(number).name
        if any((self._folder / "checkpoints").glob("*.ckpt")):
            overrides = [f"resume={quoted(str(self._folder))}"]
            if self.trusted:
                overrides.append(f"trust=[{','.join(self.trusted)}]")
            command = command_line("train", overrides + self.folders)
            return Interrupted(f"stopped by {name}; resume with: {command}", number)
        return Interrupted(f"stopped by {name} before the first checkpoint", number)

    def install(self) -> dict[signal.Signals, Any]:
        """Installs the signal handlers, and returns the previous handlers.

        Ctrl-C reaches every rank that nmt launched. Only rank 0 handles it. The other ranks learn of
        it from rank 0 at their next check for signals.
        """
        handlers: dict[signal.Signals, Any] = dict.fromkeys(SIGNALS, self.handle)
        if rank() and job_id("train") is None:
            handlers[signal.SIGINT] = signal.SIG_IGN
        return {number: signal.signal(number, handler) for number, handler in handlers.items()}

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Stores a signal if signals are deferred.

        Raises `Interrupted` if signals are not deferred, or if a Ctrl-C follows an earlier signal.
        """
        if os.getpid() != self._process:
            return  # a forked worker ignores signals, because the main process handles them
        if self.ended:
            return
        repeated = self.number and number == signal.SIGINT  # a Ctrl-C after an earlier signal
        self.number = number
        if self.importing:
            self.exit(number)  # libraries may catch exceptions while they are imported
        if repeated or not self.deferred:
            raise self.interrupted(number)
        log.warning("%s received; the run will stop soon", signal.Signals(number).name)

    def exit(self, number: int, prefix: str = "") -> NoReturn:
        """Ends the process without an exception."""
        self.requeue(number)
        code = 128 + number
        if rank():
            os._exit(code)  # rank 0 prints the message
        exit_at_once(code, f"{prefix}{self.interrupted(number)}")

    def requeue(self, number: int) -> None:
        """Requeues this SLURM job after SIGUSR1 or a preemption, if `Stop` was created with `requeue=True`."""
        self.ended = True  # requeueing sends SIGTERM, which must be ignored
        if "SLURM_JOB_ID" in os.environ and rank() == 0:
            warned = number == signal.SIGUSR1
            if warned or (number == signal.SIGTERM and preempted()):
                if self._requeue:
                    requeue_job()
                else:
                    log.warning("the job was not requeued, because resume=auto is not set")


@contextlib.contextmanager
def stoppable(folder: Path, *, requeue: bool) -> Iterator[Stop]:
    """Handles signals in this context.

    Args:
        folder: the run's folder.
        requeue: whether to requeue a SLURM job after SIGUSR1 and after a preemption.
    """
    stop = Stop(folder, requeue=requeue)
    if rank() and job_id("train") is None:  # rank 0 launched this process
        end_with_parent()
    before = stop.install()
    try:
        yield stop
    except Interrupted as stopped:
        stop.requeue(stopped.signal)
        raise
    finally:
        stop.ended = True
        for number, handler in before.items():
            signal.signal(number, handler)


def preempted() -> bool:
    """Returns whether SLURM is preempting this job.

    SLURM also sends SIGTERM after `scancel` and at the time limit. In these two cases the job must not be
    requeued. Only a preempted job has a `PreemptTime` while its state is RUNNING.
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
    """Returns the output of `scontrol`; if it fails, logs a warning and returns None."""
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
