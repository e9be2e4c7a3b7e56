"""Reads the environment of this process: rank, job, command, git commit, optional packages, W&B key."""

from __future__ import annotations

import functools
import importlib
import netrc
import os
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from nmt.utils.errors import InputError
from nmt.utils.quoting import override_key

PACKAGE = Path(__file__).resolve().parents[1]
# In `~/.netrc`, `wandb login` stores the key under one of these hosts, depending on the version of wandb.
WANDB_SERVERS = ("api.wandb.ai", "api.forge.coreweave.com")
WITHOUT_KEY = "W&B has no key here; run `wandb login` or set WANDB_API_KEY"


@functools.cache
def git_commit(package: Path = PACKAGE) -> str | None:
    """Returns the git commit of the package, with `-dirty` if a tracked file was changed; None outside git."""

    def git(*arguments: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(package), *arguments]
        return subprocess.check_output(command, text=True, timeout=20, stderr=subprocess.DEVNULL)

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # fails unless git tracks this package
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").strip()
    except (OSError, subprocess.SubprocessError):
        return None


def rank() -> int:
    """Returns the rank of this process from environment variables; it needs no process group."""
    names = ("RANK", *(["SLURM_PROCID"] if is_srun_task() else []), "LOCAL_RANK")
    for name in names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def is_srun_task() -> bool:
    """Whether this process is a task of `srun`, not a job script or an interactive shell."""
    step = os.environ.get("SLURM_STEP_ID", "")
    is_shell = os.environ.get("SLURM_JOB_NAME") in ("bash", "interactive")  # as in Lightning
    numbered = step.isdigit() and int(step) < 0xFFFFFFF0  # higher ids are shells and job scripts
    return numbered and "SLURM_NTASKS" in os.environ and not is_shell


def job_id(command: str, resume: str | None = None) -> str | None:
    """Returns a name shared by all ranks of a torchrun or SLURM job, or None outside of such jobs.

    In SLURM, the name of a training run with `resume=auto` has only the job id, so that it stays the same if
    SLURM requeues the job. Other commands may run several times in a job, so their name includes the id of
    the `srun` step. Without `srun`, they have no name.
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
    """The running command, such as `train`; None if nmt is used as a library."""
    return HydraConfig.get().job.name if HydraConfig.initialized() else None


def output_folder() -> Path:
    """The folder that Hydra has created for the running command."""
    return Path(HydraConfig.get().runtime.output_dir)


def sweep_folder() -> str | None:
    """The folder of the sweep of this job; None if it is not part of a sweep."""
    if not HydraConfig.initialized():
        return None
    hydra = HydraConfig.get()
    return None if OmegaConf.is_missing(hydra.job, "num") else str(hydra.sweep.dir)


def swept_overrides() -> list[str]:
    """Returns the overrides of this job that Hydra's sweeper chose, except seed and experiment.

    Hydra's own sweeper stores its overrides in the folder of the sweep. Other sweepers do not.
    """
    folder = sweep_folder()
    file = Path(folder or "", "multirun.yaml")
    if folder is None or not file.is_file():
        return []
    from hydra.core.override_parser.overrides_parser import OverridesParser

    typed = OmegaConf.select(OmegaConf.load(file), "hydra.overrides.task", default=[])
    parsed = OverridesParser.create().parse_overrides(list(typed))
    swept = {each.key_or_group for each in parsed if each.is_sweep_override()}
    swept -= {"seed", "experiment"}
    return [word for word in HydraConfig.get().overrides.task if override_key(word) in swept]


def rank_and_world() -> tuple[int, int]:
    """The rank and the world size of the process group; (0, 1) if there is no process group."""
    import torch

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def gather(mine: Any) -> list[Any]:
    """Gathers one value from each rank, and returns them in rank order."""
    _, world = rank_and_world()
    if world == 1:
        return [mine]
    import torch

    parts: list[Any] = [None] * world
    torch.distributed.all_gather_object(parts, mine)
    return parts


def need(module: str, extra: str, wanted_by: str) -> ModuleType:
    """Imports an optional module; if it is missing, the InputError says how to install it.

    `wanted_by` is the command, setting or file that needs the module, for the error message.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{wanted_by}: {error}\n"
            f"in a clone, type pip install '.[{extra}]' or uv sync --extra {extra}"
        ) from error


def has_wandb_key() -> bool:
    """Whether a W&B key is in the environment or in `~/.netrc`.

    Unlike `wandb.login(prompt=False)`, this does not use the network to verify the key.
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
