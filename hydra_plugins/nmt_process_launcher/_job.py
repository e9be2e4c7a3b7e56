"""One job of a sweep: which it is, the command that runs it, and what has become of it."""

from __future__ import annotations

import enum
import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra._internal.utils import get_args_parser
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig

from nmt.utils.commands import override

CONSOLE = "console.log"
RETURN = "NMT_RETURN"
RETURN_CALLBACK = "hydra_plugins.nmt_process_launcher._callbacks.SaveReturnValue"

# Told anew for each job, so that the sweep's own must not reach it.
_OWN_KEYS = {
    "hydra.mode",
    "hydra.run.dir",
    "hydra.sweep.dir",
    "hydra.sweep.subdir",
    "hydra.job.num",
    "hydra.job.id",
}

# What makes Lightning (or torch.distributed) take a process for one rank of a group that others
# have started. A job is no rank: it starts its own.
_RANK_VARIABLES = {
    "LOCAL_RANK",
    "RANK",
    "NODE_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PL_GLOBAL_SEED",
    "PL_SEED_WORKERS",
    "SLURM_NTASKS",
    "SLURM_PROCID",
    "SLURM_LOCALID",
}
_RANK_PREFIXES = ("TORCHELASTIC_", "ROLE_")


class State(enum.Enum):
    """What has become of a job."""

    WAITING = "not started"
    RUNNING = "running"
    FINISHED = "finished"
    SKIPPED = "finished before"
    FAILED = "failed"
    BUSY = "is already running"


@dataclass
class Job:
    """A job of a sweep.

    Attributes:
        number: `hydra.job.num`, by which it is named in the log.
        folder: where it writes, as typed (relative to the folder the sweep was started in).
        overrides: what distinguishes it from the other jobs, as the sweeper hands it over.
        config: its composed configuration, `hydra` included.
        processes: how many processes it starts (1, or one a device under DDP).
        gpus: how many GPUs it uses; below 0: all.
        resumed: it goes on where an earlier start of the sweep left it.
        state, code, seconds: what became of it, its exit status, how long it ran.
        given: the GPUs that it runs on, as `Gpus` names them; empty: those that the sweep sees.
    """

    number: int
    folder: Path
    overrides: list[str]
    config: DictConfig
    processes: int = 1
    gpus: int = 0
    resumed: bool = False
    state: State = State.WAITING
    code: int | None = None
    seconds: float = 0.0
    given: list[str] = field(default_factory=list)

    @property
    def console(self) -> Path:
        """Everything the job has printed."""
        return self.folder / CONSOLE

    @property
    def done(self) -> bool:
        """There is nothing left to do."""
        return self.state in (State.FINISHED, State.SKIPPED)

    @property
    def outcome(self) -> str:
        """The state in a few words, with the exit status where it tells something."""
        if self.state is not State.FAILED or self.code is None:
            return self.state.value
        if self.code == 2:
            return "refused (exit code 2)"
        number = -self.code if self.code < 0 else self.code - 128
        try:
            return f"stopped by {signal.Signals(number).name}"
        except ValueError:
            return f"failed (exit code {self.code})"


def program() -> list[str]:
    """The running program, as Python is told to run it again."""
    main = sys.modules["__main__"]
    if main.__spec__ is not None:
        return [sys.executable, "-m", main.__spec__.name]
    return [sys.executable, os.path.abspath(sys.argv[0])]


def options() -> list[str]:
    """Hydra's own options on the command line that say which configuration is meant."""
    arguments = get_args_parser().parse_args()
    return [
        part
        for option in ("config_path", "config_name", "config_dir")
        if (value := getattr(arguments, option)) is not None
        for part in (f"--{option.replace('_', '-')}", value)
    ]


def without(overrides: Sequence[str], keys: set[str]) -> list[str]:
    """The overrides that set none of these keys."""
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    return [
        line for line, each in zip(overrides, parsed, strict=True) if each.key_or_group not in keys
    ]


def command(job: Job, sweep: str, hydra_overrides: Sequence[str]) -> list[str]:
    """The command that runs one job as if it had been typed alone.

    The launcher of the sweep stays selected: a single run never uses it, and `hydra.launcher.*` set
    in a file would not compose with another one.

    Args:
        job: the job.
        sweep: the sweep's folder, with every interpolation resolved.
        hydra_overrides: `hydra.*` and `hydra/*` overrides that the sweep was started with.
    """
    return [
        *program(),
        *options(),
        *without(hydra_overrides, _OWN_KEYS),
        *job.overrides,
        "hydra.mode=RUN",
        override("hydra.run.dir", str(job.folder)),
        override("hydra.sweep.dir", sweep),
        f"hydra.job.num={job.number}",
        f"hydra.job.id={job.number}",
        f"++hydra.callbacks.return_value._target_={RETURN_CALLBACK}",
    ]


def again(sweep: str) -> str:
    """The shell command that starts the running sweep again in its folder."""
    typed = [part for part in sys.argv[1:] if not part.startswith("hydra.sweep.dir=")]
    words = ["python", *program()[1:], *typed, override("hydra.sweep.dir", sweep)]
    return shlex.join(words)


def environment(
    job: Job, environ: Mapping[str, str], return_file: Path, threads: int | None
) -> dict[str, str]:
    """The environment of a job's process.

    Args:
        job: the job, with the GPUs it was given.
        environ: the sweep's environment.
        return_file: where the job's return value is to be written.
        threads: OMP_NUM_THREADS of each of its processes, unless the user has set one; None: as is.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in _RANK_VARIABLES and not name.startswith(_RANK_PREFIXES)
    }
    kept["PYTHONUNBUFFERED"] = "1"
    kept[RETURN] = str(return_file.absolute())
    if job.given:
        kept["CUDA_VISIBLE_DEVICES"] = ",".join(job.given)
    if threads is not None and not kept.get("OMP_NUM_THREADS"):
        kept["OMP_NUM_THREADS"] = str(threads)
    return kept
