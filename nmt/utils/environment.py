"""Reads the environment of this process: ranks, job, command, commit, extras, W&B's key."""

from __future__ import annotations

import ctypes
import functools
import importlib
import netrc
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from nmt.utils.errors import InputError

PACKAGE = Path(__file__).resolve().parents[1]
# Servers under which `wandb login` stores the key, depending on its version
WANDB_SERVERS = ("api.wandb.ai", "api.forge.coreweave.com")
WITHOUT_KEY = "W&B has no key here; run `wandb login` or set WANDB_API_KEY"


@functools.cache
def git_commit(package: Path = PACKAGE) -> str | None:
    """Returns the commit of the package, with `-dirty` if a tracked file differs; None outside git."""

    def git(*arguments: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(package), *arguments]
        return subprocess.check_output(command, text=True, timeout=20, stderr=subprocess.DEVNULL)

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # fails for a copy in another repository
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").strip()
    except (OSError, subprocess.SubprocessError):
        return None


def rank() -> int:
    """Returns this process's rank from environment variables, not a process group; default 0."""
    names = ("RANK", *(["SLURM_PROCID"] if is_srun_task() else []), "LOCAL_RANK")
    for name in names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def is_srun_task() -> bool:
    """Whether this process is a task of `srun`, not a job's script or a shell in an allocation."""
    step = os.environ.get("SLURM_STEP_ID", "")
    is_shell = os.environ.get("SLURM_JOB_NAME") in ("bash", "interactive")  # as in Lightning
    numbered = step.isdigit() and int(step) < 0xFFFFFFF0  # higher steps are shells and scripts
    return numbered and "SLURM_NTASKS" in os.environ and not is_shell


def job_id(command: str, resume: str | None = None) -> str | None:
    """Returns a name shared by all ranks of a torchrun or SLURM job; None elsewhere.

    A training run that continues after SLURM requeued it (`resume=auto`) is identified by its job number
    alone. Other commands may run several times in a job. Their name includes the step of `srun`; outside
    a step, they have no name.
    """
    own = "" if command == "train" else f"-{command}"
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return f"torchrun-{os.environ['TORCHELASTIC_RUN_ID']}{own}"
    if "SLURM_JOB_ID" not in os.environ or "SLURM_NTASKS" not in os.environ:
        return None
    job = f"slurm-{os.environ['SLURM_JOB_ID']}"
    if resume == "auto":
        return job
    return f"{job}.{os.environ['SLURM_STEP_ID']}{own}" if is_srun_task() else None


def command_name() -> str | None:
    """The running command, such as `train`; None if a Python program uses nmt."""
    return HydraConfig.get().job.name if HydraConfig.initialized() else None


def output_folder() -> Path:
    """The folder that Hydra has created for the running command."""
    return Path(HydraConfig.get().runtime.output_dir)


def sweep_folder() -> str | None:
    """The folder of the sweep that the running job belongs to; None for a single run."""
    if not HydraConfig.initialized():
        return None
    hydra = HydraConfig.get()
    return None if OmegaConf.is_missing(hydra.job, "num") else str(hydra.sweep.dir)


def rank_and_world() -> tuple[int, int]:
    """Rank and number of processes of the process group; (0, 1) if there is none."""
    import torch

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def gather(mine: Any) -> list[Any]:
    """Returns the values of all ranks, in rank order."""
    _, world = rank_and_world()
    if world == 1:
        return [mine]
    import torch

    parts: list[Any] = [None] * world
    torch.distributed.all_gather_object(parts, mine)
    return parts


def follow_parent(worker: int = 0) -> None:
    """Makes this worker process ignore Ctrl-C and, on Linux, end when its parent ends.

    A worker that outlived its parent would wait for work forever, and keep the parent's locks.

    Args:
        worker: number of the worker, which torch's loaders pass; not used.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends Ctrl-C to all processes
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a handler in Python could wait for a lock
    end_with_parent()


def end_with_parent() -> None:
    """On Linux, makes the system kill this process when its parent ends."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def need(module: str, extra: str, wanted_by: str) -> ModuleType:
    """Imports a module; raises InputError with the command that installs its extra.

    `wanted_by` names what needs the module, such as a key and its value.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{wanted_by}: {error}\n"
            f"type pip install 'rnnsearch[{extra}]', or in a clone uv sync --extra {extra}"
        ) from error


def has_wandb_key() -> bool:
    """Whether W&B finds a key without asking: in the environment or in `~/.netrc`.

    `wandb.login(prompt=False)` would also verify the key over the network.
    """
    if os.environ.get("WANDB_API_KEY"):
        return True
    server = os.environ.get("WANDB_BASE_URL")
    servers = [str(urlsplit(server).hostname)] if server else WANDB_SERVERS
    try:
        known = netrc.netrc(os.environ.get("NETRC", Path.home() / ".netrc"))
    except (OSError, netrc.NetrcParseError):
        return False
    return any(known.authenticators(server) for server in servers)
