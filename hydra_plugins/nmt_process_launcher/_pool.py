"""Runs jobs as processes, some at a time, and stops them when the sweep is stopped."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import BinaryIO

from hydra_plugins.nmt_process_launcher._devices import Gpus
from hydra_plugins.nmt_process_launcher._job import Job, State
from nmt.utils.processes import on_stopping_signals

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
LEFTOVER_SECONDS = 5.0


def duration(seconds: float) -> str:
    """Hours, minutes and seconds."""
    return str(timedelta(seconds=round(seconds)))


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    started: float
    output: BinaryIO | None  # console.log, read along to be shown on the terminal


@dataclass
class Pool:
    """Runs jobs in their order, at most `n_jobs` at a time, as GPUs become free.

    A job is the leader of a session of its own: a Ctrl-C of the terminal reaches the sweep alone,
    which passes it on to the job's first process, and whatever the job has started can be ended
    with it. Its output goes straight into `console.log`, whose lock it inherits: a sweep started
    again while a job of the former is alive leaves that job alone.

    Attributes:
        n_jobs: jobs at a time.
        gpus: the GPUs to share out; None: every job sees what the sweep sees.
        grace: seconds between the signal that stops a job and the one that kills it.
        command: the command of a job.
        environment: the environment of a job's process.
        cwd: the folder that jobs are started in.
        running: the jobs at work.
        signals: that the sweep has received, the one that stops it first.
    """

    n_jobs: int
    gpus: Gpus | None
    grace: float
    command: Callable[[Job], list[str]]
    environment: Callable[[Job], dict[str, str]]
    cwd: str
    running: list[_Running] = field(default_factory=list, init=False)
    signals: list[int] = field(default_factory=list, init=False)

    def run(self, jobs: Sequence[Job]) -> int | None:
        """Runs the jobs; their `state`, `code` and `seconds` tell what became of them.

        Returns:
            the signal that stopped the sweep, if one did.
        """
        waiting = list(jobs)
        with on_stopping_signals(self.signals.append):
            try:
                while (waiting and not self.signals) or self.running:
                    while waiting and not self.signals and self._start(waiting[0]):
                        waiting.pop(0)
                    self._look()
                    if self.signals:
                        self._stop()
                    elif self.running:
                        time.sleep(POLL_SECONDS)
            finally:
                for running in self.running:
                    _end_group(running.process.pid, signal.SIGKILL)
        return self.signals[0] if self.signals else None

    def _start(self, job: Job) -> bool:
        """Starts a job, unless it has to wait for its turn."""
        if len(self.running) >= self.n_jobs:
            return False
        if self.gpus is not None:
            given = self.gpus.take(job.gpus)
            if given is None:
                return False
            job.given = given
        job.folder.mkdir(parents=True, exist_ok=True)
        with job.console.open("ab") as console:
            try:
                fcntl.flock(console, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.error("#%d is already running, started by another sweep: skipped", job.number)
                job.state = State.BUSY
                self._give_back(job)
                return True
            command = self.command(job)
            stamp = datetime.now().isoformat(" ", "seconds")
            console.write(f"[{stamp}] {shlex.join(command)}\n".encode())
            console.flush()
            shown = job.console.open("rb") if self.n_jobs == 1 else None
            if shown is not None:
                shown.seek(0, os.SEEK_END)
            log.info(
                "#%d %s: %s",
                job.number,
                "resumes" if job.resumed else "starts",
                " ".join(job.overrides) or "(no overrides)",
            )
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=self.environment(job),
                cwd=self.cwd,
                start_new_session=True,
            )
        job.state = State.RUNNING
        self.running.append(_Running(job, process, time.monotonic(), shown))
        return True

    def _look(self) -> None:
        """Shows what the jobs have printed, and puts down those that have ended."""
        for running in list(self.running):
            code = running.process.poll()
            _show(running.output)
            if code is None:
                continue
            self.running.remove(running)
            if running.output is not None:
                running.output.close()
            if code:
                _clear(running.process.pid)
            self._give_back(running.job)
            _put_down(running.job, code, time.monotonic() - running.started)

    def _give_back(self, job: Job) -> None:
        if self.gpus is not None:
            self.gpus.give_back(job.given)
            job.given = []

    def _stop(self) -> None:
        """Passes the signal on, waits for the jobs to save and end, and kills those that do not."""
        number = self.signals[0]
        passed_on = signal.SIGTERM if number == signal.SIGHUP else signal.Signals(number)
        log.warning(
            "%s: stopping %d running job(s), waiting at most %g s; a second Ctrl-C kills them",
            signal.Signals(number).name,
            len(self.running),
            self.grace,
        )
        for running in self.running:
            with contextlib.suppress(ProcessLookupError):
                running.process.send_signal(passed_on)
        end = time.monotonic() + self.grace
        while self.running:
            if time.monotonic() > end or len(self.signals) > 1:
                for running in self.running:
                    log.warning("#%d did not stop in time: killed", running.job.number)
                    _end_group(running.process.pid, signal.SIGKILL)
                end = float("inf")
                del self.signals[1:]
            time.sleep(POLL_SECONDS)
            self._look()


def _show(output: BinaryIO | None) -> None:
    if output is not None and (text := output.read()):
        sys.stderr.buffer.write(text)
        sys.stderr.buffer.flush()


def _put_down(job: Job, code: int, seconds: float) -> None:
    job.code, job.seconds = code, seconds
    job.state = State.FAILED if code else State.FINISHED
    if code:
        log.error("#%d %s after %s: %s", job.number, job.outcome, duration(seconds), job.console)
    else:
        log.info("#%d finished in %s", job.number, duration(seconds))


def _end_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _clear(group: int) -> None:
    """Ends what a failed job has left running: a rank that waits for a dead one holds its GPU."""
    _end_group(group, signal.SIGTERM)
    end = time.monotonic() + LEFTOVER_SECONDS
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(POLL_SECONDS)
    _end_group(group, signal.SIGKILL)
