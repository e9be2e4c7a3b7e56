"""The launcher `process`: runs the jobs of a sweep one after another, each in a process in single-run mode.

Lightning starts the other ranks of a DDP job by running the job's command line again. With Hydra's own
launcher, every rank would therefore repeat the whole sweep. With this launcher, each job has its own command
line, so its ranks repeat only that job. The process of a job also frees all memory when it ends, and a crash
affects only one job.
"""

import copy
import json
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn, JobStatus, configure_log, setup_globals
from hydra.experimental.callback import Callback
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from nmt.cli.composition import with_plus
from nmt.config.changes import effect_of, flatten
from nmt.config.commands import TrainConfig
from nmt.config.keys import INCIDENTAL
from nmt.utils.errors import InputError, RunError, describe_exit
from nmt.utils.files import locked
from nmt.utils.quoting import as_typed, override_key, quoted
from nmt.utils.startup import PARENT

log = logging.getLogger(__name__)

RESULTS = "results.json"  # only the folder of a finished job has this file
NOT_STARTED = "not started"
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


ConfigStore.instance().store(
    group="hydra/launcher", name="process", node=ProcessLauncherConf, provider="nmt"
)


@dataclass(eq=False)
class Job:
    """A job of a sweep.

    Attributes:
        number: the value of `hydra.job.num`.
        folder: the folder that the job writes to.
        overrides: the overrides that distinguish the job from the other jobs.
        command: the command that runs the job.
        outcome: text that says how the job ended; starts with `finished` on success.
    """

    number: int
    folder: Path
    overrides: list[str]
    command: list[str]
    outcome: str = NOT_STARTED

    @property
    def finished(self) -> bool:
        return self.outcome.startswith("finished")

    def run(self) -> None:
        """Runs the job to its end. A signal from the terminal reaches it too, and it ends with this process."""
        log.info("#%d starts: %s", self.number, " ".join(self.overrides) or "(no overrides)")
        variables = {k: v for k, v in os.environ.items() if k not in RANK_VARIABLES}
        variables[PARENT] = str(os.getpid())
        code = subprocess.call(self.command, stdin=subprocess.DEVNULL, env=variables)
        self.outcome = describe_exit(code)
        log.log(logging.ERROR if code else logging.INFO, "#%d %s", self.number, self.outcome)


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

    def __init__(self) -> None:
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
            InputError: if another sweep uses the folder `hydra.sweep.dir`, or if the configuration or the
                text of a job has changed since it ran in this folder.
        """
        setup_globals()
        configure_log(self.config.hydra.hydra_logging, self.config.hydra.verbose)
        current = HydraConfig.instance().cfg
        sweep = Path(self.config.hydra.sweep.dir)
        with locked(sweep, "hydra.sweep.dir"):
            jobs = self._plan(sweep, job_overrides, initial_job_idx)
            HydraConfig.instance().cfg = current
            todo = [job for job in jobs if not job.finished]
            done = len(jobs) - len(todo)
            log.info("%d job(s) in %s; %d had finished before", len(jobs), sweep, done)
            # A sweeper that chooses values from earlier results would start its search again.
            repeatable = "basic_sweeper" in self.config.hydra.sweeper.get("_target_", "")
            if repeatable and todo:
                log.info("to go on after an interruption, type:\n  %s", sweep_command(sweep))
            for job in todo:
                job.run()
        failed = not all(job.finished for job in jobs)
        log.log(logging.ERROR if failed else logging.INFO, "\n%s", summary(jobs, sweep))
        if failed and repeatable:
            log.info("to run the other jobs again, type:\n  %s", sweep_command(sweep))
        self.exit_code.failed |= failed
        return list(map(job_return, jobs))

    def _plan(self, sweep: Path, job_overrides: Iterable[Iterable[str]], first: int) -> list[Job]:
        """Plans the jobs: jobs of an earlier command keep their folders, new jobs get the first free folders.

        An earlier job is skipped if it has finished. Otherwise it is resumed.
        """
        files = sorted(sweep.glob("**/.hydra/overrides.yaml"), reverse=True)
        earlier = {signature(OmegaConf.load(file)): file.parents[1] for file in files}
        used = set(earlier.values())
        jobs = []
        # Words from a file of `hparams_search` have not yet been completed, as a job completes its words.
        completed = (with_plus(list(words)) for words in job_overrides)
        for number, overrides in enumerate(completed, first):
            config = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
            folder = earlier.pop(signature(overrides), None)
            outcome = NOT_STARTED
            if folder is None:
                number, folder = free_folder(config, sweep, number, used)
            else:
                number = int(folder.name) if folder.name.isdecimal() else number
                refuse_changed(config, folder)
                if (folder / RESULTS).is_file():
                    outcome = "finished before"
                elif "resume" in config and "resume" not in map(override_key, overrides):
                    overrides = [*overrides, "resume=auto"]
            used.add(folder)
            jobs.append(
                Job(number, folder, overrides, self._command(number, folder, overrides), outcome)
            )
        return jobs

    def _command(self, number: int, folder: Path, overrides: Iterable[str]) -> list[str]:
        """Returns the command that runs one job in single-run mode."""
        hydra = self.config.hydra
        options = [f"--config-name={hydra.job.config_name}"]
        for source in hydra.runtime.config_sources:
            if source.schema == "file" and source.provider in ("main", "command-line"):
                option = "path" if source.provider == "main" else "dir"
                options.append(f"--config-{option}={source.path}")
        return [
            *program(),
            *options,
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


def refuse_changed(config: DictConfig, folder: Path) -> None:
    """Refuses a job whose configuration or text has changed since it wrote a checkpoint or results.

    Keys for devices, folders and output may differ. The job itself compares the text of an unfinished job.

    Raises:
        InputError: if there is such a change. The message names the key and the folder.
    """
    results = folder / RESULTS
    if not results.is_file() and not any(folder.glob("checkpoints/*.ckpt")):
        return
    advice = "name another hydra.sweep.dir, or delete the folder to run the job again"
    files = sorted(folder.glob(".hydra/**/config.yaml"), key=os.path.getmtime)
    texts = (files[-1].read_text(encoding="utf-8"), OmegaConf.to_yaml(config))
    before, now = (flatten(yaml.safe_load(text)) for text in texts)
    for key in before | now:
        own = key.partition(".")[0] != "hydra" and effect_of(TrainConfig, key) not in INCIDENTAL
        if own and before.get(key) != now.get(key):
            raise InputError(
                f"{key}={now.get(key)}: the job in {folder} ran with {key}={before.get(key)}; {advice}"
            )
    if results.is_file() and text_has_changed(config, results):
        raise InputError(f"data: the text has changed since the job in {folder} ran; {advice}")


def text_has_changed(config: DictConfig, results: Path) -> bool:
    """Tells whether the text of a finished job has changed since the job ran."""
    text = json.loads(results.read_text(encoding="utf-8")).get("text")
    if not text or config.get("ckpt_path"):
        return False
    from nmt.config.loading import load
    from nmt.data.preparation import prepare

    own = copy.deepcopy(config)
    with open_dict(own):
        del own["hydra"]
    try:
        training = load(own)
        vocabularies = None
        if config.get("initial_checkpoint"):
            from nmt.inference.load import initial_vocabularies

            vocabularies = initial_vocabularies(training)
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
    """Returns a text with the outcome of each job."""
    width = max(len(job.outcome) for job in jobs)
    lines = [f"{job.number:3}  {job.outcome:{width}}  {' '.join(job.overrides)}" for job in jobs]
    finished = sum(job.finished for job in jobs)
    return "\n".join([*lines, f"{finished} of {len(jobs)} jobs finished, in {sweep}"])


def sweep_command(sweep: Path) -> str:
    """Returns the command that skips the finished jobs of this sweep and resumes the others."""
    arguments = [word for word in sys.argv[1:] if override_key(word) != "hydra.sweep.dir"]
    command = ["python", *program()[1:], *arguments, f"hydra.sweep.dir={quoted(str(sweep))}"]
    return as_typed(shlex.join(command))
