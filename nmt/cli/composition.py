"""What Hydra needs to compose `conf/`: the folder, the schemas, the resolvers used there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from nmt.config.schema import SCHEMAS, register
from nmt.utils.environment import job_id, rank
from nmt.utils.errors import InputError

# when this process began: what it adds to the folder of an earlier run is named after it
STARTED = f"{datetime.now():%Y%m%d-%H%M%S}"


def conf_folder() -> Path:
    """The folder `conf/`: next to the package in a checkout, inside it in an installed wheel."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def chosen_file(group: str) -> Path:
    """The file of the option that was typed for a config group, in `conf/` or a folder of the user's.

    Raises:
        InputError: if the option is not a file in a folder.
    """
    runtime = HydraConfig.get().runtime
    option = runtime.choices[group]
    for source in runtime.config_sources:
        file = Path(source.path) / group / f"{option}.yaml"
        if source.schema == "file" and file.is_file():
            return file
    raise InputError(f"{group}={option}: not a file of conf/{group} or of --config-dir")


def register_configs(commands: Iterable[str] = SCHEMAS) -> None:
    """Makes the commands' schemas, and the functions that `conf/` calls, known to Hydra."""
    register(commands)
    # Hydra copies the store for each group that `--help` lists; there is one, which nothing changes
    store = ConfigStore.instance()
    vars(store)["__deepcopy__"] = lambda copied: store
    for resolver in (run_folder, config_subfolder, log_file, wandb_mode, comma_separated):
        OmegaConf.register_new_resolver(resolver.__name__, resolver, replace=True)


def run_folder(command: str, resume: str | None = None) -> str:
    """Name of a run's folder: the resumed run, the job's id, or the time of the start."""
    if resume not in (None, "auto"):
        return str(resume)
    return f"outputs/{job_id(command) or datetime.now().strftime('%Y-%m-%d/%H-%M-%S')}"


def wandb_mode(mode: str) -> str:
    """A value of WANDB_MODE as `logger.mode` has it; Lightning's own logger still sets `dryrun`."""
    return {"dryrun": "offline", "run": "online"}.get(mode, mode)


def comma_separated(text: str | None) -> list[str]:
    """The parts of a list in an environment variable, where it is set."""
    return [] if text is None else [part.strip() for part in text.split(",")]


def named_by_time(command: str, resume: str | None) -> bool:
    """Whether `run_folder` is named after the time of the start, which no other process must know."""
    return resume in (None, "auto") and job_id(command) is None


def config_subfolder(folder: str) -> str | None:
    """Where Hydra writes the composed configuration: what a run was started with stays."""
    if rank() > 0:
        return None
    if not (Path(folder) / ".hydra").exists():
        return ".hydra"
    return f".hydra/again-{STARTED}"


def log_file(folder: str, name: str) -> str:
    """The log file of a command; only rank 0 has one."""
    return os.devnull if rank() > 0 else str(Path(folder) / f"{name}.log")
