"""The launcher `process`: runs every job of a sweep as its own process, in single-run mode.

Lightning starts the other ranks of a DDP job by running the job's command line again. With Hydra's own
launcher, every rank would therefore repeat the whole sweep. With this launcher, each job has its own command
line, so its ranks repeat only that job. The process of a job also frees all memory when it ends, and a crash
affects only one job.
"""

import contextlib
import copy
import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import yaml
from hydra._internal.utils import get_args_parser
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, configure_log, setup_globals
from hydra.experimental.callback import Callback
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from nmt.config.commands import TrainConfig
from nmt.config.keys import INCIDENTAL, effect_of, flatten
from nmt.utils.errors import InputError, RunError, describe_exit
from nmt.utils.files import locked
from nmt.utils.quoting import override_key, quoted
from nmt.utils.startup import shared_cores

log = logging.getLogger(__name__)

RESULTS = "results.json"  # only the folder of a finished job has this file
POLL_S = 0.1  # seconds between two checks of the running jobs
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
# If these variables are set, Lightning treats a job as a rank that SLURM has started.
RANK_VARIABLES = ("SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")
# Keys that jobs do not inherit from the sweep's command, because each job sets its own values
OWN_KEYS = (
    "hydra.mode",
    "hydra.run.dir",
    "hydra.sweep.dir",
    "hydra.sweep.subdir",
    "hydra.job.num",
    "hydra.job.id",
)


# Do not import `annotations` from `__future__`. Hydra executes this file before its module can be imported,
# so dataclasses cannot resolve annotations that are strings.
@dataclass
class ProcessLauncherConf:
    """The keys of `hydra.launcher` with `hydra/launcher=process`."""

    _target_: str = "hydra_plugins.nmt_process_launcher.launcher.ProcessLauncher"
    n_jobs: int = 1
    """number of jobs that run at a time"""
    gpus: list[str] | None = None
    """GPUs to use; each entry runs one job at a time, so [0,0] runs two jobs on GPU 0; null: all visible GPUs"""


ConfigStore.instance().store(
    group="hydra/launcher", name="process", node=ProcessLauncherConf, provider="nmt"
)


@dataclass(eq=False)
class Job:
    """A job of a sweep.

    The job's process starts a new session. Ctrl-C in the terminal therefore reaches only the sweep, which
    forwards the signal to the job. The session also lets the sweep kill the job with all its child processes.

    Attributes:
        number: the value of `hydra.job.num`.
        folder: the folder that the job writes to.
        overrides: the overrides that distinguish the job from the other jobs.
        config: the job's composed configuration, including `hydra`.
        command: the command that runs the job.
        outcome: text that says how the job ended; starts with `finished` on success.
        gpus: the GPUs assigned to the job; if empty, the job sees all GPUs of the sweep.
    """

    number: int
    folder: Path
    overrides: list[str]
    config: DictConfig
    command: list[str]
    outcome: str = "not started"
    gpus: list[str] = field(default_factory=list)
    process: Any = None  # subprocess.Popen
    output: BinaryIO | None = None  # console.log, copied to the terminal while the job runs

    @property
    def console(self) -> Path:
        """The file that collects the output of the job."""
        return self.folder / "console.log"

    @property
    def finished(self) -> bool:
        return self.outcome.startswith("finished")

    @property
    def devices(self) -> int:
        """Number of devices, or -1 for all; with DDP, each device has its own process."""
        devices = OmegaConf.select(self.config, "trainer.devices", default=1)
        return devices if isinstance(devices, int) else -1

    def wanted_gpus(self, available: int) -> int:
        """Returns how many of the sweep's `available` GPUs the job needs."""
        if OmegaConf.select(self.config, "trainer.accelerator", default=None) == "cpu":
            return 0
        return available if self.devices < 0 else min(self.devices, available)

    def start(self, gpus: list[str], n_jobs: int) -> None:
        """Starts the process on these GPUs, with 1/`n_jobs` of the cores."""
        log.info("#%d starts: %s", self.number, " ".join(self.overrides) or "(no overrides)")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.gpus = gpus
        variables = {k: v for k, v in os.environ.items() if k not in RANK_VARIABLES}
        variables["PYTHONUNBUFFERED"] = "1"
        if gpus:
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
        if n_jobs > 1 and not variables.get("OMP_NUM_THREADS"):
            variables["OMP_NUM_THREADS"] = str(shared_cores(n_jobs * max(1, self.devices)))
        with self.console.open("ab") as console:
            if n_jobs == 1:
                self.output = self.console.open("rb")
                self.output.seek(0, os.SEEK_END)
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env=variables,
                start_new_session=True,
            )

    def ended(self) -> bool:
        """Prints new output of the job; if the job has ended, records its outcome and returns True."""
        code = self.process.poll()
        if self.output is not None and (text := self.output.read()):
            sys.stderr.buffer.write(text)
            sys.stderr.buffer.flush()
        if code is None:
            return False
        if code:
            self.kill()  # other ranks may wait for the failed rank
        if self.output is not None:
            self.output.close()
        self.outcome = describe_exit(code)
        log.log(logging.ERROR if code else logging.INFO, "#%d %s", self.number, self.outcome)
        return True

    def kill(self) -> None:
        """Kills the process and its child processes."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


def run_jobs(jobs: Sequence[Job], n_jobs: int, gpus: Sequence[str]) -> int | None:
    """Runs jobs in the given order, `n_jobs` at a time, and sets their `outcome`.

    Args:
        n_jobs: number of jobs that run at a time.
        gpus: GPUs, each for one job at a time; if empty, every job sees all GPUs of the sweep.

    Returns:
        The signal that stopped the sweep, or None. The first signal is forwarded to the jobs, which save a
        checkpoint and end. A second signal kills them.
    """
    waiting = list(jobs)
    running = list[Job]()
    free = list(gpus)
    signals: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, frame: signals.append(number))
        for number in STOPPING
        if signal.getsignal(number) is not signal.SIG_IGN  # ignored under nohup
    }
    forwarded: signal.Signals | None = None
    try:
        while running or (waiting and not signals):
            while waiting and not signals and len(running) < n_jobs:
                wanted = waiting[0].wanted_gpus(len(gpus))
                if wanted > len(free):
                    break
                waiting[0].start(free[:wanted], n_jobs)
                running.append(waiting.pop(0))
                free = free[wanted:]
            if signals and not forwarded:
                forwarded = signal.Signals(signals[0])
                log.warning("%s: stopping; a second signal kills the jobs", forwarded.name)
                hangup = forwarded == signal.SIGHUP
                for job in running:
                    job.process.send_signal(signal.SIGTERM if hangup else forwarded)
            for job in running if len(signals) > 1 else ():
                job.kill()
            for job in [job for job in running if job.ended()]:
                running.remove(job)
                free += job.gpus
            time.sleep(POLL_S if running else 0)
    finally:
        for job in running:
            job.kill()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return signals[0] if signals else None


def visible_gpus() -> list[str]:
    """Returns the GPUs that this process may use, as named in CUDA_VISIBLE_DEVICES."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return [str(index) for index, _ in enumerate(Path("/dev").glob("nvidia[0-9]*"))]
    return [name.strip() for name in listed.split(",") if name.strip() not in ("", "-1")]


class ExitCode(Callback):
    """Exits with code 1 after all other callbacks, if a job failed.

    Hydra turns exceptions of callbacks into warnings, except `SystemExit`.
    """

    failed = False

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        if self.failed:
            raise SystemExit(1)


class ProcessLauncher(Launcher):
    """Plans and runs the jobs of a sweep, and logs a summary."""

    def __init__(self, n_jobs: int, gpus: list[str] | None) -> None:
        if n_jobs < 1:
            raise InputError(f"hydra.launcher.n_jobs={n_jobs}: must be at least 1")
        self.n_jobs = n_jobs
        self.gpus = gpus
        self.exit_code = ExitCode()

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.config = config
        self.hydra_context = hydra_context
        # At the end, callbacks run in reverse order, so the first callback of the list runs last.
        hydra_context.callbacks.callbacks.insert(0, self.exit_code)

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Runs one batch of jobs; with Hydra's own sweeper, the batch is the whole sweep.

        Raises:
            InputError: if another sweep uses the folder `hydra.sweep.dir`.
            SystemExit: if a signal stopped the sweep; the code is 128 plus the signal's number.
        """
        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        current = HydraConfig.instance().cfg
        sweep = Path(self.config.hydra.sweep.dir)
        with locked(sweep, "hydra.sweep.dir"):
            jobs = self._plan(sweep, job_overrides, initial_job_idx)
            HydraConfig.instance().cfg = current
            todo = [job for job in jobs if not job.finished]
            at_a_time = max(1, min(self.n_jobs, len(todo)))
            log.info(
                "%d job(s), %d at a time, in %s; %d had finished before",
                len(jobs), at_a_time, sweep, len(jobs) - len(todo),
            )  # fmt: skip
            gpus = (visible_gpus() if at_a_time > 1 else []) if self.gpus is None else self.gpus
            stopped = run_jobs(todo, at_a_time, list(map(str, gpus)))
        failed = not all(job.finished for job in jobs)
        log.log(logging.ERROR if failed else logging.INFO, "\n%s", summary(jobs, sweep))
        if stopped is not None:
            raise SystemExit(128 + stopped)
        self.exit_code.failed |= failed
        return list(map(job_return, jobs))

    def _plan(self, sweep: Path, job_overrides: Iterable[Iterable[str]], first: int) -> list[Job]:
        """Plans the jobs: jobs of an earlier command keep their folders, new jobs get the first free folders.

        An earlier job is skipped if it has finished. Otherwise it is resumed. If its configuration or text
        has changed, its folder is moved out of the sweep, and the job runs again.
        """
        files = sorted(sweep.glob("**/.hydra/overrides.yaml"), reverse=True)
        earlier = {signature(OmegaConf.load(file)): file.parents[1] for file in files}
        used = set(earlier.values())
        jobs = []
        for number, overrides in enumerate(map(list, job_overrides), first):
            config = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
            folder = earlier.pop(signature(overrides), None)
            outcome = "not started"
            if folder is None:
                number, folder = free_folder(config, sweep, number, used)
            else:
                number = int(folder.name) if folder.name.isdecimal() else number
                key = changed_key(config, folder / ".hydra/config.yaml")
                if not key and text_has_changed(config, folder / RESULTS):
                    key = "the text"
                if key:
                    moved = sweep.with_name(f"{sweep.name}.earlier") / folder.relative_to(sweep)
                    moved = moved.with_name(f"{moved.name}-{datetime.now():%Y%m%d-%H%M%S}")
                    moved.parent.mkdir(parents=True, exist_ok=True)
                    folder.rename(moved)
                    log.warning(
                        "#%d: %s has changed since the job ran; it runs again, its earlier folder "
                        "is now %s", number, key, moved,
                    )  # fmt: skip
                elif (folder / RESULTS).is_file():
                    outcome = "finished before"
                elif "resume" in config and "resume" not in map(override_key, overrides):
                    overrides = [*overrides, "resume=auto"]
            used.add(folder)
            command = self._command(number, folder, overrides)
            jobs.append(Job(number, folder, overrides, config, command, outcome))
        return jobs

    def _command(self, number: int, folder: Path, overrides: Iterable[str]) -> list[str]:
        """Returns the command that runs one job in single-run mode."""
        parsed = vars(get_args_parser().parse_args())
        hydra = self.config.hydra
        options = ("config_path", "config_name", "config_dir")
        return [
            *program(),
            *(f"--{name.replace('_', '-')}={parsed[name]}" for name in options if parsed[name]),
            *(word for word in hydra.overrides.hydra if override_key(word) not in OWN_KEYS),
            *overrides,
            "hydra.mode=RUN",
            f"hydra.run.dir={quoted(str(folder))}",
            f"hydra.sweep.dir={quoted(str(hydra.sweep.dir))}",
            f"hydra.job.num={number}",
            f"hydra.job.id={number}",
        ]


def signature(overrides: Iterable[str]) -> frozenset[str]:
    """Returns the overrides that identify a job: those from the sweeper, without `resume`."""
    return frozenset(word for word in overrides if override_key(word) != "resume")


def changed_key(config: DictConfig, file: Path) -> str | None:
    """Returns a key whose value differs between `config` and `file`; ignores keys for devices, folders and output."""
    before, now = (
        flatten(yaml.safe_load(text))
        for text in (file.read_text(encoding="utf-8"), OmegaConf.to_yaml(config))
    )
    for key in before | now:
        own = key.partition(".")[0] != "hydra" and effect_of(TrainConfig, key) not in INCIDENTAL
        if own and before.get(key) != now.get(key):
            return key
    return None


def text_has_changed(config: DictConfig, results: Path) -> bool:
    """Tells whether the text of a finished job has changed since the job ran."""
    text = (
        json.loads(results.read_text(encoding="utf-8")).get("text") if results.is_file() else None
    )
    if not text or config.get("ckpt_path"):
        return False
    from nmt.config.code import user_code
    from nmt.config.loading import load
    from nmt.data.preparation import prepare

    own = copy.deepcopy(config)
    with open_dict(own):
        del own["hydra"]
    try:
        training = load(own)
        vocabularies = None
        if initial := config.get("initial_checkpoint"):
            from nmt.inference.load import read_members

            trust = [*training.trust, *user_code(training)]
            vocabularies = read_members([initial], trust)[0].vocabularies
        return prepare(training.data, training.tokenizer, vocabularies).identified() != text
    except (InputError, RunError):  # the job itself reports missing text or weights
        return False


def free_folder(config: DictConfig, sweep: Path, first: int, used: set[Path]) -> tuple[int, Path]:
    """Returns the first job number, from `first` on, whose folder (`hydra.sweep.subdir`) is free, and the folder.

    If all numbers have the same folder, returns it even if it is not free. The job will refuse the folder.
    """
    for number in range(first, first + len(used) + 1):
        with read_write(config.hydra), open_dict(config.hydra):
            config.hydra.job.num = number
            config.hydra.job.id = str(number)
        HydraConfig.instance().set_config(config)  # resolves `${hydra:...}` in hydra.sweep.subdir
        folder = sweep / str(OmegaConf.select(config, "hydra.sweep.subdir"))
        if folder not in used:
            break
    return number, folder


def program() -> list[str]:
    """Returns the command that starts the running program again."""
    main = sys.modules["__main__"]
    module = main.__spec__ and ["-m", main.__spec__.name]
    return [sys.executable, *(module or [os.path.abspath(sys.argv[0])])]


def job_return(job: Job) -> JobReturn:
    """Returns a job's result for the sweeper: its objective, or None if it failed."""
    file = job.folder / RESULTS
    value = None
    if job.finished and file.is_file():
        value = json.loads(file.read_text(encoding="utf-8")).get("objective")
    # A failed job also counts as completed, because the result of a failed job would end Optuna's search.
    return JobReturn(job.overrides, status=JobStatus.COMPLETED, _return_value=value)


def summary(jobs: Sequence[Job], sweep: Path) -> str:
    """Returns a text with the outcome of each job and the command that resumes unfinished jobs."""
    width = max(len(job.outcome) for job in jobs)
    lines = [f"{job.number:3}  {job.outcome:{width}}  {' '.join(job.overrides)}" for job in jobs]
    finished = sum(job.finished for job in jobs)
    lines.append(f"{finished} of {len(jobs)} jobs finished, in {sweep}")
    failed = [job for job in jobs if job.process is not None and not job.finished]
    lines += [f"job {job.number} {job.outcome}, its output: {job.console}" for job in failed]
    if finished < len(jobs):
        arguments = [word for word in sys.argv[1:] if override_key(word) != "hydra.sweep.dir"]
        command = ["python", *program()[1:], *arguments, f"hydra.sweep.dir={quoted(str(sweep))}"]
        lines += ["to resume unfinished jobs:", f"  {shlex.join(command)}"]
    return "\n".join(lines)
