"""The jobs of a sweep: their overrides, folders, commands and outcomes."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from nmt.config.keys import flatten, is_within
from nmt.config.schema import RUNTIME_KEYS
from nmt.utils.commands import override, override_key

RETURN = "NMT_RETURN"  # environment variable: the file for a job's return value
CALLBACK = "hydra_plugins.nmt_process_launcher.launcher.SaveReturnValue"

# Overrides of the sweep that each job gets its own value of
OWN_KEYS = (
    *("hydra.mode", "hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir"),
    *("hydra.job.num", "hydra.job.id"),
)
# With these set, Lightning would take a job for a rank that another process has started.
RANK_VARIABLES = re.compile(
    r"(LOCAL_|NODE_|GROUP_)?RANK|(LOCAL_)?WORLD_SIZE|MASTER_(ADDR|PORT)|PL_GLOBAL_SEED"
    r"|PL_SEED_WORKERS|SLURM_(NTASKS|PROCID|LOCALID)|TORCHELASTIC_.*|ROLE_.*"
)


@dataclass
class ProcessLauncherConf:
    """The keys of `hydra.launcher` under `hydra/launcher=process`."""

    _target_: str = "hydra_plugins.nmt_process_launcher.launcher.ProcessLauncher"
    n_jobs: int = 1
    """jobs at a time"""
    gpus: list[str] | None = None
    """GPUs, each for one job at a time: null: all that are visible; [0,0]: two jobs share GPU 0"""
    grace_seconds: float = 60.0
    """seconds a job has to save and end, once the sweep is stopped, before it is killed"""


@dataclass
class Job:
    """A job of a sweep.

    Attributes:
        number: `hydra.job.num`.
        folder: where it writes.
        overrides: what distinguishes it from the other jobs.
        config: its composed configuration, `hydra` included.
        state: `not started`, `running`, `finished`, `finished before` or `failed`.
        code: its exit status.
        given: the GPUs that it runs on; empty: those that the sweep sees.
    """

    number: int
    folder: Path
    overrides: list[str]
    config: DictConfig
    state: str = "not started"
    code: int = 0
    given: list[str] = field(default_factory=list)

    @property
    def console(self) -> Path:
        """The file of everything that the job prints."""
        return self.folder / "console.log"

    @property
    def return_file(self) -> Path:
        """The file of the value that the task function returned, as JSON."""
        return self.folder / "return.json"

    @property
    def done(self) -> bool:
        return self.state.startswith("finished")

    @property
    def processes(self) -> int:
        """Number of processes that the job starts: one a device under DDP."""
        devices = OmegaConf.select(self.config, "trainer.devices", default=1)
        return devices if isinstance(devices, int) and devices > 0 else 1

    @property
    def gpus(self) -> int:
        """Number of GPUs that the job uses; -1: all."""
        if OmegaConf.select(self.config, "trainer.accelerator", default=None) == "cpu":
            return 0
        devices = OmegaConf.select(self.config, "trainer.devices", default=1)
        return devices if isinstance(devices, int) else -1

    @property
    def outcome(self) -> str:
        """The state, with the exit status of a failed job."""
        if self.state != "failed":
            return self.state
        if self.code == 2:
            return "refused (exit code 2)"
        number = -self.code if self.code < 0 else self.code - 128
        if number in {each.value for each in signal.Signals}:
            return f"stopped by {signal.Signals(number).name}"
        return f"failed (exit code {self.code})"


def signature(overrides: Sequence[str]) -> tuple[str, ...]:
    """What identifies a job: its overrides as Hydra reads them, in any order, without `resume`.

    >>> signature(["lr=1e-3", "resume=auto"]) == signature(["lr=0.001"])
    True
    """
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    kept = [each for each in parsed if each.key_or_group != "resume"]
    return tuple(sorted(f"{each.get_key_element()}={each.value()!r}" for each in kept))


def find_earlier(sweep: Path) -> dict[tuple[str, ...], Path]:
    """The folders of jobs that an earlier start of the sweep has left, by signature."""
    earlier: dict[tuple[str, ...], Path] = {}
    for file in sorted(sweep.glob("**/.hydra/overrides.yaml")):
        try:
            overrides = yaml.safe_load(file.read_text(encoding="utf-8")) or []
            earlier.setdefault(signature(overrides), file.parents[1])
        except Exception:  # a file cut short by a crash: the job counts as never started
            continue
    return earlier


def changed_key(job: Job) -> str | None:
    """A key whose value differs from that in the job's folder, other than devices and output."""
    file = job.folder / ".hydra/config.yaml"
    if not file.is_file():
        return None
    before = flatten(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    now = flatten(yaml.safe_load(OmegaConf.to_yaml(job.config)))
    differing = [key for key in before if before[key] != now.get(key)]
    return next((key for key in differing if not is_within(key, RUNTIME_KEYS)), None)


def program() -> list[str]:
    """The running program, as Python is told to run it again."""
    main = sys.modules["__main__"]
    if main.__spec__ is not None:
        return [sys.executable, "-m", main.__spec__.name]
    return [sys.executable, os.path.abspath(sys.argv[0])]


def command(job: Job, sweep: str, hydra_overrides: Sequence[str]) -> list[str]:
    """The command that runs one job as if it had been typed alone.

    Args:
        job: the job.
        sweep: the sweep's folder.
        hydra_overrides: `hydra.*` and `hydra/*` overrides that the sweep was started with.
    """
    typed = get_args_parser().parse_args()
    options: list[str] = []
    for option in ("config_path", "config_name", "config_dir"):
        if getattr(typed, option) is not None:
            options += [f"--{option.replace('_', '-')}", getattr(typed, option)]
    return [
        *program(),
        *options,
        *(word for word in hydra_overrides if override_key(word) not in OWN_KEYS),
        *job.overrides,
        "hydra.mode=RUN",
        override("hydra.run.dir", str(job.folder)),
        override("hydra.sweep.dir", sweep),
        f"hydra.job.num={job.number}",
        f"hydra.job.id={job.number}",
        f"++hydra.callbacks.return_value._target_={CALLBACK}",
    ]


def environment(job: Job, threads: int) -> dict[str, str]:
    """The environment of a job's process.

    Args:
        job: the job, with the GPUs it was given.
        threads: OMP_NUM_THREADS of each of its processes, unless the user has set one; 0: as is.
    """
    kept = {name: value for name, value in os.environ.items() if not RANK_VARIABLES.fullmatch(name)}
    kept |= {"PYTHONUNBUFFERED": "1", RETURN: str(job.return_file.absolute())}
    if job.given:
        kept["CUDA_VISIBLE_DEVICES"] = ",".join(job.given)
    if threads and not kept.get("OMP_NUM_THREADS"):
        kept["OMP_NUM_THREADS"] = str(threads)
    return kept
