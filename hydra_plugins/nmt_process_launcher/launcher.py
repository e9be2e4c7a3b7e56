"""The launcher: turns the sweeper's overrides into jobs, runs them, and reports.

Lightning starts the other ranks of a DDP job by running the job's command line again. Under Hydra's
own launcher that line is the whole sweep's, which every rank would replay; here a job's command
line is the job's alone. A job in its own process also returns all memory, and a crash stays within it.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, configure_log, setup_globals
from hydra.experimental.callback import Callback
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from hydra_plugins.nmt_process_launcher._jobs import (
    RETURN,
    Job,
    ProcessLauncherConf,
    changed_key,
    command,
    find_earlier,
    program,
    signature,
)
from hydra_plugins.nmt_process_launcher._pool import Pool, visible_gpus
from nmt.utils.commands import override, override_key
from nmt.utils.errors import InputError
from nmt.utils.files import locked

log = logging.getLogger(__name__)
RESULTS = "results.json"  # a job whose folder holds it is finished

ConfigStore.instance().store(
    group="hydra/launcher", name="process", node=ProcessLauncherConf, provider="nmt"
)


class SaveReturnValue(Callback):
    """In a job: writes what the task function returned, as JSON, to the file NMT_RETURN names."""

    def on_job_end(self, config: DictConfig, job_return: JobReturn, **kwargs: Any) -> None:
        first = RETURN in os.environ and os.environ.get("LOCAL_RANK", "0") == "0"
        if first and job_return.status is JobStatus.COMPLETED:
            text = json.dumps(job_return.return_value, default=float)
            Path(os.environ[RETURN]).write_text(text, encoding="utf-8")


class ExitCode(Callback):
    """In the sweep: exit status 1 when jobs have failed, after all other callbacks have run.

    Hydra turns an exception in a callback into a warning, but lets `SystemExit` through.
    """

    failed = False

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        if self.failed:
            raise SystemExit(1)


class UnfinishedJob(JobReturn):
    """A job without a value. Reading it does not raise, so that a sweeper goes on."""

    @property
    def return_value(self) -> Any:
        return None

    @return_value.setter
    def return_value(self, value: Any) -> None:
        raise AttributeError("an unfinished job has no return value")


class ProcessLauncher(Launcher):
    """Runs every job of a sweep as a process in single-run mode; see `ProcessLauncherConf`."""

    def __init__(self, n_jobs: int, gpus: list[str] | None, grace_seconds: float) -> None:
        if n_jobs < 1:
            raise InputError(f"hydra.launcher.n_jobs={n_jobs}: must be at least 1")
        self.n_jobs = n_jobs
        self.gpu_names = None if gpus is None else [str(gpu) for gpu in gpus]
        self.grace = grace_seconds
        self.exit_code = ExitCode()

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.config = config
        self.hydra_context = hydra_context
        # First in the list is last at the end: the page is made before the exit.
        hydra_context.callbacks.callbacks.insert(0, self.exit_code)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Runs one batch of jobs; the whole sweep under Hydra's own sweeper.

        Raises:
            InputError: another sweep works in the folder.
            SystemExit: with 128 + signal, after a signal has stopped the sweep.
        """
        setup_globals()
        current = HydraConfig.instance().cfg
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        sweep = str(self.config.hydra.sweep.dir)
        try:
            with locked(Path(sweep), "hydra.sweep.dir"):
                jobs = self._make_jobs(Path(sweep), job_overrides, initial_job_idx)
                return self._run(sweep, jobs)
        finally:
            HydraConfig.instance().cfg = current

    def _run(self, sweep: str, jobs: Sequence[Job]) -> Sequence[JobReturn]:
        todo = [job for job in jobs if not job.done]
        log.info(
            "%d job(s), %d at a time, in %s; %d finished before",
            len(jobs), self.n_jobs, sweep, len(jobs) - len(todo),
        )  # fmt: skip
        at_a_time = max(1, min(self.n_jobs, len(todo)))
        gpus = self.gpu_names
        if gpus is None:
            gpus = visible_gpus() if at_a_time > 1 else []
        typed = list(self.config.hydra.overrides.hydra)
        cwd = str(self.config.hydra.runtime.cwd)
        pool = Pool(at_a_time, gpus, self.grace, lambda job: command(job, sweep, typed), cwd)
        stopped = pool.run(todo)
        done = all(job.done for job in jobs)
        log.log(logging.INFO if done else logging.ERROR, "\n%s", _summary(jobs, sweep))
        if stopped is not None:
            raise SystemExit(128 + stopped)
        self.exit_code.failed |= not done
        return [_job_return(job) for job in jobs]

    def _make_jobs(
        self, sweep: Path, job_overrides: Sequence[Sequence[str]], first: int
    ) -> list[Job]:
        """The batch's jobs: each in the folder it had before, new ones in the first free folders."""
        earlier = find_earlier(sweep)
        taken = set(earlier.values())
        jobs = []
        for number, overrides in enumerate(map(list, job_overrides), first):
            config = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
            job = Job(number, sweep, overrides, config)
            folder = earlier.pop(signature(overrides), None)
            if folder is None:
                _place(job, number, sweep)
                while job.folder in taken:
                    before = job.folder
                    _place(job, job.number + 1, sweep)
                    if job.folder == before:  # `subdir` without a number: the job refuses it
                        break
            else:
                _place(job, int(folder.name) if folder.name.isdecimal() else number, sweep)
                job.folder = folder
                _continue(job)
            taken.add(job.folder)
            jobs.append(job)
        return jobs


def _continue(job: Job) -> None:
    """Resumes a job, skips it if finished, or starts it anew if its configuration has changed."""
    key = changed_key(job)
    if key is not None:
        aside = job.folder.parent.with_name(f"{job.folder.parent.name}.earlier")
        aside.mkdir(exist_ok=True)
        job.folder.rename(aside / f"{job.folder.name}-{datetime.now():%Y%m%d-%H%M%S}")
        log.warning(
            "#%d: %s has changed since the job ran; it runs again, its earlier folder is now in %s",
            job.number, key, aside,
        )  # fmt: skip
    elif (job.folder / RESULTS).is_file():
        job.state = "finished before"
    elif "resume" in job.config and "resume" not in map(override_key, job.overrides):
        job.overrides = [*job.overrides, "resume=auto"]


def _job_return(job: Job) -> JobReturn:
    """What Hydra tells sweepers about a job."""
    returned = JobReturn() if job.done else UnfinishedJob()
    returned.overrides = job.overrides
    returned.working_dir = str(job.folder)
    returned.status = JobStatus.COMPLETED if job.done else JobStatus.FAILED
    if job.done:
        file = job.return_file
        returned.return_value = json.loads(file.read_text("utf-8")) if file.is_file() else None
    return returned


def _summary(jobs: Sequence[Job], sweep: str) -> str:
    """The state of each job, and the command that resumes what is not done."""
    width = max(len(job.outcome) for job in jobs)
    lines = [f"{job.number:3}  {job.outcome:{width}}  {' '.join(job.overrides)}" for job in jobs]
    lines.append(f"{sum(job.done for job in jobs)} of {len(jobs)} jobs finished, in {sweep}")
    failed = [job for job in jobs if job.state == "failed"]
    lines += [f"job {job.number} {job.outcome}, its output: {job.console}" for job in failed]
    if not all(job.done for job in jobs):
        typed = [word for word in sys.argv[1:] if override_key(word) != "hydra.sweep.dir"]
        again = ["python", *program()[1:], *typed, override("hydra.sweep.dir", sweep)]
        lines += ["to resume what is unfinished:", f"  {shlex.join(again)}"]
    return "\n".join(lines)


def _place(job: Job, number: int, sweep: Path) -> None:
    """Numbers a job and sets its folder, `hydra.sweep.subdir`."""
    with read_write(job.config.hydra), open_dict(job.config.hydra):
        job.config.hydra.job.num = job.number = number
        job.config.hydra.job.id = str(number)
    HydraConfig.instance().set_config(job.config)  # for `${hydra:...}` in hydra.sweep.subdir
    job.folder = sweep / str(OmegaConf.select(job.config, "hydra.sweep.subdir"))
