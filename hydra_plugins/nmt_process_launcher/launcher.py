"""The launcher: makes jobs of the sweeper's overrides, runs them, and reports.

Lightning starts the other ranks of a DDP job by running the job's command line again. Under Hydra's
own launcher that line is the whole sweep's, which every rank would replay; here a job's command
line is the job's alone. A process a job also returns all memory, and a crash stays within it.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobRuntime, JobStatus, configure_log, setup_globals
from hydra.errors import CompactHydraException
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from hydra_plugins.nmt_process_launcher import _config
from hydra_plugins.nmt_process_launcher._callbacks import ExitCode
from hydra_plugins.nmt_process_launcher._devices import Gpus, visible_gpus
from hydra_plugins.nmt_process_launcher._earlier import RESUME, Earlier, find_earlier, signature
from hydra_plugins.nmt_process_launcher._job import Job, State, again, command, environment
from hydra_plugins.nmt_process_launcher._pool import Pool
from hydra_plugins.nmt_process_launcher._summary import summary
from nmt.utils.threads import shared_cores

log = logging.getLogger(__name__)
_config.register()


class UnfinishedJob(JobReturn):
    """A job without a value. Asking for it does not raise, so that the jobs after it are run.

    Hydra's own sweeper asks each job of a batch for its value and would end the sweep there,
    without its callbacks. A sweeper that needs a number finds None and counts the job as failed.
    """

    @property
    def return_value(self) -> Any:
        return None

    @return_value.setter
    def return_value(self, value: Any) -> None:
        raise AttributeError("an unfinished job has no return value")


class ProcessLauncher(Launcher):
    """Runs every job of a sweep as a process in single-run mode; see `ProcessLauncherConf`."""

    def __init__(
        self,
        n_jobs: int,
        gpus: list[str] | None,
        grace_seconds: float,
        devices_key: str,
        accelerator_key: str,
        results: str,
    ) -> None:
        if n_jobs < 1:
            raise CompactHydraException(f"hydra.launcher.n_jobs={n_jobs}: must be at least 1")
        if not grace_seconds >= 0:
            raise CompactHydraException(
                f"hydra.launcher.grace_seconds={grace_seconds}: must be at least 0"
            )
        self.n_jobs = n_jobs
        self.gpu_names = None if gpus is None else [str(gpu) for gpu in gpus]
        self.grace = grace_seconds
        self.devices_key = devices_key
        self.accelerator_key = accelerator_key
        self.results = results
        self.exit_code = ExitCode()
        self.used: set[Path] = set()  # folders of the jobs of this sweep's earlier batches

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        ranks = int(os.environ.get("WORLD_SIZE", "1"))
        if ranks > 1:
            raise CompactHydraException(
                f"a sweep was started {ranks} times (WORLD_SIZE={ranks}), once a rank: start it"
                " without torchrun, each of its jobs starts its own ranks"
            )
        self.config = config
        self.hydra_context = hydra_context
        # First in the list is last at the end: the page is made before the exit.
        hydra_context.callbacks.callbacks.insert(0, self.exit_code)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Runs one batch of jobs, the whole sweep under Hydra's own sweeper.

        Raises:
            SystemExit: with 128 + signal, after a signal has stopped the sweep.
        """
        setup_globals()
        current = HydraConfig.instance().cfg
        try:
            return self._launch(job_overrides, initial_job_idx)
        finally:
            HydraConfig.instance().cfg = current

    def _launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        hydra = self.config.hydra
        configure_log(hydra.hydra_logging, hydra.verbose)
        sweep = str(hydra.sweep.dir)
        Path(sweep).mkdir(parents=True, exist_ok=True)

        jobs = self._jobs(job_overrides, initial_job_idx, Path(sweep))
        todo = [job for job in jobs if not job.done]
        log.info(
            "%d job(s), %d at a time, in %s%s",
            len(jobs),
            self.n_jobs,
            sweep,
            f"; {len(jobs) - len(todo)} finished before" if len(todo) < len(jobs) else "",
        )
        stopped = self._pool(sweep, len(todo)).run(todo)
        done = all(job.done for job in jobs)
        log.log(logging.INFO if done else logging.ERROR, "\n%s", summary(jobs, sweep, again(sweep)))
        if stopped is not None:
            raise SystemExit(128 + stopped)
        self.exit_code.failed |= not done
        return [self._return(job) for job in jobs]

    def _jobs(self, job_overrides: Sequence[Sequence[str]], first: int, sweep: Path) -> list[Job]:
        """The batch's jobs, each in the folder it had before, new ones in folders not yet used."""
        earlier = [
            job
            for job in find_earlier(sweep, self.config.hydra.output_subdir, self.results)
            if job.folder not in self.used
        ]
        by_signature: dict[tuple[str, ...], deque[Earlier]] = {}
        for found in earlier:
            by_signature.setdefault(found.signature, deque()).append(found)
        taken = self.used | {found.folder for found in earlier}

        jobs = []
        for number, overrides in enumerate(job_overrides, first):
            same = by_signature.get(signature(overrides))
            before = same.popleft() if same else None
            jobs.append(self._job(number, list(overrides), sweep, before, taken))
        for job in jobs:
            if Path(os.path.abspath(sweep)) not in Path(os.path.abspath(job.folder)).parents:
                raise CompactHydraException(
                    f"hydra.sweep.subdir: {job.folder} is not a folder inside that of the sweep, {sweep}"
                )
            if job.folder in self.used:
                raise CompactHydraException(
                    f"hydra.sweep.subdir: two jobs would write to {job.folder}; name folders by"
                    " what differs, such as ${hydra.job.num}"
                )
            self.used.add(job.folder)
        return jobs

    def _job(
        self,
        number: int,
        overrides: list[str],
        sweep: Path,
        before: Earlier | None,
        taken: set[Path],
    ) -> Job:
        config = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
        if before is None:
            folder = _folder(config, number, sweep)
            while folder in taken and _folder(config, number + 1, sweep) != folder:
                number += 1
                folder = _folder(config, number, sweep)
            taken.add(folder)
        else:
            folder = before.folder
            number = int(folder.name) if folder.name.isdecimal() else number
            _folder(config, number, sweep)
        job = Job(number, folder, overrides, config)
        if before is not None and before.finished:
            job.state = State.SKIPPED
        elif before is not None:
            job.resumed = True
            if RESUME in config and not any(o.lstrip("+").startswith("resume=") for o in overrides):
                job.overrides = [*overrides, f"{RESUME}=auto"]
        devices = OmegaConf.select(config, self.devices_key, default=1)
        on_cpu = OmegaConf.select(config, self.accelerator_key, default=None) == "cpu"
        job.processes = devices if isinstance(devices, int) and devices > 0 else 1
        job.gpus = 0 if on_cpu else devices if isinstance(devices, int) else -1
        return job

    def _pool(self, sweep: str, jobs: int) -> Pool:
        at_a_time = max(1, min(self.n_jobs, jobs))
        gpus = None
        if at_a_time > 1 or self.gpu_names is not None:
            names = visible_gpus(os.environ) if self.gpu_names is None else self.gpu_names
            gpus = Gpus(names, at_a_time)
        hydra_overrides = OmegaConf.to_container(self.config.hydra.overrides.hydra)
        assert isinstance(hydra_overrides, list)

        def job_environment(job: Job) -> dict[str, str]:
            threads = (
                max(1, shared_cores() // (at_a_time * job.processes)) if at_a_time > 1 else None
            )
            file = self._return_file(job)
            file.unlink(missing_ok=True)
            return environment(job, os.environ, file, threads)

        return Pool(
            n_jobs=self.n_jobs,
            gpus=gpus,
            grace=self.grace,
            command=lambda job: command(job, sweep, hydra_overrides),
            environment=job_environment,
            cwd=str(self.config.hydra.runtime.cwd),
        )

    def _return_file(self, job: Job) -> Path:
        return job.folder / (self.config.hydra.output_subdir or "") / "return.json"

    def _return(self, job: Job) -> JobReturn:
        """What Hydra tells sweepers about a job: the value its task function returned, as JSON."""
        hydra_config = OmegaConf.masked_copy(job.config, "hydra")
        task_config = OmegaConf.masked_copy(
            job.config, [str(key) for key in job.config if key != "hydra"]
        )
        ret = JobReturn() if job.done else UnfinishedJob()
        ret.overrides = job.overrides
        ret.cfg = task_config
        ret.hydra_cfg = hydra_config
        ret.working_dir = str(job.folder)
        ret.task_name = JobRuntime.instance().get("name")
        ret.status = JobStatus.COMPLETED if job.done else JobStatus.FAILED
        file = self._return_file(job)
        if job.done:
            ret.return_value = json.loads(file.read_text("utf-8")) if file.is_file() else None
        return ret


def _folder(config: DictConfig, number: int, sweep: Path) -> Path:
    """The folder of the job of this number, which is put into its configuration."""
    with read_write(config.hydra), open_dict(config.hydra):
        config.hydra.job.num = number
        config.hydra.job.id = str(number)
    HydraConfig.instance().set_config(config)  # for `${hydra:...}` in hydra.sweep.subdir
    return sweep / str(OmegaConf.select(config, "hydra.sweep.subdir"))
