"""Runs jobs as processes, some at a time, and stops them when the sweep is stopped."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hydra_plugins.nmt_process_launcher._jobs import Job, environment
from nmt.utils.threads import shared_cores

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


def visible_gpus() -> list[str]:
    """The GPUs this process may use, by the names CUDA_VISIBLE_DEVICES knows them by."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return [str(index) for index, _ in enumerate(Path("/dev").glob("nvidia[0-9]*"))]
    return [name.strip() for name in listed.split(",") if name.strip() not in ("", "-1")]


@dataclass
class Running:
    job: Job
    process: subprocess.Popen[bytes]
    started: float
    output: BinaryIO | None  # console.log, shown on the terminal as it grows


class Pool:
    """Runs jobs in their order, at most `n_jobs` at a time, as GPUs become free.

    A job leads a session of its own: Ctrl-C of the terminal reaches the sweep alone, which passes it
    on to the job's first process, and all that the job has started can be killed with it.

    Args:
        n_jobs: jobs at a time.
        gpus: each for one job at a time; empty: every job sees what the sweep sees.
        grace: seconds between the signal that stops a job and the one that kills it.
        command: gives the command of a job.
        cwd: the folder that jobs are started in.
    """

    def __init__(
        self,
        n_jobs: int,
        gpus: Sequence[str],
        grace: float,
        command: Callable[[Job], list[str]],
        cwd: str,
    ) -> None:
        self.n_jobs, self.gpus, self.free = n_jobs, gpus, list(gpus)
        self.grace, self.command, self.cwd = grace, command, cwd
        self.running: list[Running] = []
        self.signals: list[int] = []  # received by the sweep

    def run(self, jobs: Sequence[Job]) -> int | None:
        """Runs the jobs and sets their `state` and `code`; returns the signal that stopped them."""
        waiting = list(jobs)
        handlers = {
            number: signal.signal(number, lambda number, frame: self.signals.append(number))
            for number in STOPPING
            if signal.getsignal(number) is not signal.SIG_IGN  # nohup
        }
        try:
            while (waiting and not self.signals) or self.running:
                while waiting and not self.signals and self._may_start(waiting[0]):
                    self._start(waiting.pop(0))
                self._collect()
                if self.signals:
                    self._stop()
                elif self.running:
                    time.sleep(POLL_SECONDS)
        finally:
            for running in self.running:
                _kill_group(running.process.pid)
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return self.signals[0] if self.signals else None

    def _may_start(self, job: Job) -> bool:
        """Whether there is room for a job, which is then given its GPUs."""
        wanted = len(self.gpus) if job.gpus < 0 else min(job.gpus, len(self.gpus))
        if len(self.running) >= self.n_jobs or len(self.free) < wanted:
            return False
        job.given, self.free = self.free[:wanted], self.free[wanted:]
        return True

    def _start(self, job: Job) -> None:
        job.folder.mkdir(parents=True, exist_ok=True)
        job.return_file.unlink(missing_ok=True)
        threads = shared_cores(self.n_jobs * job.processes) if self.n_jobs > 1 else 0
        log.info("#%d starts: %s", job.number, " ".join(job.overrides) or "(no overrides)")
        with job.console.open("ab") as console:
            shown = job.console.open("rb") if self.n_jobs == 1 else None
            if shown is not None:
                shown.seek(0, os.SEEK_END)
            process = subprocess.Popen(
                self.command(job),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=environment(job, threads),
                cwd=self.cwd,
                start_new_session=True,
            )
        job.state = "running"
        self.running.append(Running(job, process, time.monotonic(), shown))

    def _collect(self) -> None:
        """Shows what the jobs have printed, and removes those that have ended."""
        for running in list(self.running):
            job, code = running.job, running.process.poll()
            if running.output is not None and (text := running.output.read()):
                sys.stderr.buffer.write(text)
                sys.stderr.buffer.flush()
            if code is None:
                continue
            self.running.remove(running)
            if running.output is not None:
                running.output.close()
            if code:
                _kill_group(running.process.pid)  # a rank that waits for a dead one
            self.free += job.given
            job.code, job.state = code, "failed" if code else "finished"
            level = logging.ERROR if code else logging.INFO
            log.log(
                level,
                "#%d %s after %.0f s",
                job.number,
                job.outcome,
                time.monotonic() - running.started,
            )

    def _stop(self) -> None:
        """Passes the signal on, waits for the jobs to save and end, and kills those that do not."""
        number = signal.Signals(self.signals[0])
        log.warning(
            "%s: stopping %d running job(s), waiting at most %g s; a second Ctrl-C kills them",
            number.name, len(self.running), self.grace,
        )  # fmt: skip
        for running in self.running:
            with contextlib.suppress(ProcessLookupError):
                running.process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)
        end = time.monotonic() + self.grace
        while self.running:
            if time.monotonic() > end or len(self.signals) > 1:
                for running in self.running:
                    log.warning("#%d did not stop in time: killed", running.job.number)
                    _kill_group(running.process.pid)
                end = float("inf")
                del self.signals[1:]
            time.sleep(POLL_SECONDS)
            self._collect()


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
