"""The environment of this process: rank, job, command, sweep."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]


@functools.cache
def git_commit(package: Path = PACKAGE) -> str | None:
    """The commit that the package is at, with `-dirty` if its files differ; None outside its repository."""

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["git", "--no-optional-locks", "-C", str(package), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=20)

    try:
        # a package that was copied into another repository is not tracked there
        if git("ls-files", "--error-unmatch", "__init__.py").returncode:
            return None
        commit = git("rev-parse", "HEAD").stdout.strip()
        differs = git("diff", "--quiet", "HEAD", "--", ".").returncode
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}-dirty" if differs else commit


def rank() -> int:
    """Rank of this process before any process group exists: 0 where nothing says otherwise."""
    for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def is_launched() -> bool:
    """Whether something else has started this process as one of several ranks.

    torchrun, SLURM, or a person who says in the environment where the ranks meet. Of the ranks that
    this program starts itself it is so of all but the first.
    """
    return "MASTER_PORT" in os.environ or job_id("train") is not None


def job_id(command: str) -> str | None:
    """A name shared by all ranks of a job of torchrun or SLURM; None elsewhere.

    A requeued training finds its folder by the number of the job alone. Of other commands a job may
    run several: each step (`srun`) has a name of its own, and outside of steps there is none.
    """
    own = "" if command == "train" else f"-{command}"
    if "TORCHELASTIC_RUN_ID" in os.environ:
        return f"torchrun-{os.environ['TORCHELASTIC_RUN_ID']}{own}"
    if "SLURM_JOB_ID" not in os.environ or "SLURM_NTASKS" not in os.environ:
        return None
    job, step = f"slurm-{os.environ['SLURM_JOB_ID']}", os.environ.get("SLURM_STEP_ID")
    if not own:
        return job
    return None if step is None else f"{job}.{step}{own}"


def command_name() -> str | None:
    """The running command, such as `train`; None where none was typed."""
    from hydra.core.hydra_config import HydraConfig

    return HydraConfig.get().job.name if HydraConfig.initialized() else None


def output_folder() -> Path:
    """The folder that Hydra has made for the running command."""
    from hydra.core.hydra_config import HydraConfig

    return Path(HydraConfig.get().runtime.output_dir)


def sweep_folder() -> str | None:
    """The folder of the sweep that the running job belongs to; None for a run of its own.

    It is what the jobs of a sweep have in common, under every launcher: their group in W&B.
    """
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf

    if not HydraConfig.initialized():
        return None
    hydra = HydraConfig.get()
    return None if OmegaConf.is_missing(hydra.job, "num") else str(hydra.sweep.dir)


def rank_and_world() -> tuple[int, int]:
    """Rank of this process and number of processes, where a process group exists; else 0 of 1."""
    import torch

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return 0, 1
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def gather(mine: Any) -> list[Any]:
    """What each rank has, in the order of ranks."""
    _, world = rank_and_world()
    if world == 1:
        return [mine]
    import torch

    parts: list[Any] = [None] * world
    torch.distributed.all_gather_object(parts, mine)
    return parts
