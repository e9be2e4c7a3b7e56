"""Creates Lightning's loggers from the configuration, and starts and ends their runs."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger, WandbLogger

from nmt.config.schema import Config, to_containers
from nmt.training.trainer import make_object, target_of
from nmt.utils.environment import (
    WITHOUT_KEY,
    command_name,
    has_wandb_key,
    rank,
    sweep_folder,
    swept_overrides,
)
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import write_text
from nmt.utils.text import without_home

log = logging.getLogger(__name__)

MAX_NAME = 128  # maximum characters in the name of a W&B run or group
MAX_TAG = 64  # maximum characters in a W&B tag
FLUSH_S = 0.1  # seconds between W&B's writes to disk


def make_loggers(config: Config, folder: Path) -> list[Logger]:
    """Creates the loggers of the section `logger`.

    Adds defaults for missing arguments: `save_dir`, the names of folders, and for W&B
    `id`, `resume`, `project`, `name`, `group`, `tags`, `job_type` and `settings`. The W&B id is stored in
    the run's folder, so that a resumed run continues its W&B run.

    Raises:
        InputError: if a section is not a logger or cannot be instantiated, or if W&B is online and has no API key.
    """
    loggers: list[Logger] = []
    for name, settings in config.logger.items():
        key = f"logger.{name}"
        given = dict(settings)
        code = target_of(key, given, config.logger)
        given.setdefault("save_dir", str(folder))
        if code is WandbLogger:
            disabled = os.environ.get("WANDB_MODE") == "disabled"
            if not (given.get("offline") or disabled or has_wandb_key()):
                raise InputError(f"{key}.offline=false: {WITHOUT_KEY}, or set {key}.offline=true")
            if given.get("offline") and given.get("log_model"):
                raise InputError(
                    f"{key}.log_model={given['log_model']}: uploads checkpoints; type {key}.offline=false too"
                )
            given |= wandb_options(config, folder, given)
        elif code is TensorBoardLogger:
            if not find_spec("tensorboard"):
                raise InputError(f"{key}: TensorBoard is missing; type uv sync --extra tensorboard")
            given = {"name": "", "version": "tensorboard", "default_hp_metric": False} | given
        elif code is CSVLogger:
            given = {"name": "csv"} | given
        made = make_object(key, given, Logger)
        if isinstance(made, WandbLogger):
            made._wandb_init.pop("anonymous", None)  # W&B warns about this default of Lightning
        loggers.append(made)
    return loggers


@contextlib.contextmanager
def logging_run(loggers: Sequence[Logger], config: Config) -> Iterator[None]:
    """Logs the configuration at the start, and closes W&B's run at the end."""
    exit_code = 1
    try:
        for each in loggers:
            connect(each)
            each.log_hyperparams(without_home(to_containers(config)))
        yield
        exit_code = 0
    finally:
        wandb = sys.modules.get("wandb")
        if wandb and rank() == 0:
            with contextlib.suppress(Exception):  # a network error must not fail a finished run
                wandb.finish(exit_code=exit_code)


def connect(logger: Logger) -> None:
    """Starts the W&B run, which is logged offline if W&B's server cannot be reached."""
    if not isinstance(logger, WandbLogger):
        return
    import wandb
    from wandb.errors import CommError

    try:
        _ = logger.experiment
    except CommError as error:
        log.warning(
            "W&B: %s; logging offline; to upload the run later, type `wandb sync %s/wandb/offline-run-*`",
            first_line(error),
            logger.save_dir,
        )
        wandb.teardown()  # otherwise W&B's process would still use the id of the run
        logger._offline = True
        logger._wandb_init |= {"mode": "offline", "resume": None}
        _ = logger.experiment


def wandb_options(config: Config, folder: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments that nmt sets for a WandbLogger; values of `given` take precedence."""
    tags = [*config.tags, *filter(None, os.environ.get("WANDB_TAGS", "").split(","))]
    tags = [*tags, config.experiment, config.regime]
    os.environ.setdefault("WANDB_SILENT", "true")
    name = ", ".join([f"{config.name}, seed {config.seed}", *swept_overrides()])[:MAX_NAME]
    group = (sweep_folder() or "")[-MAX_NAME:]
    # write often, because a killed run loses what W&B's process has not yet written
    settings = {"x_transaction_log_flush_interval": FLUSH_S, "silent": True}
    return {
        "id": given.get("id") or run_id(folder),
        "resume": given.get("resume", None if given.get("offline") else "allow"),
        "project": given.get("project") or os.environ.get("WANDB_PROJECT", "nmt"),
        "name": given.get("name") or os.environ.get("WANDB_NAME") or name,
        "group": given.get("group") or os.environ.get("WANDB_RUN_GROUP") or group or None,
        "tags": given.get("tags") or [tag.strip()[:MAX_TAG] for tag in dict.fromkeys(tags)],
        "job_type": given.get("job_type") or command_name(),
        "settings": settings | (given.get("settings") or {}),
    }


def run_id(folder: Path) -> str:
    """Returns the W&B id of a run; a new id comes from W&B's sweep agent or is random, and is stored in `folder`."""
    file = folder / "wandb" / "id"
    if file.is_file():
        return file.read_text().strip()
    from wandb.sdk.lib.runid import generate_id

    agent = os.environ.get("WANDB_RUN_ID") if os.environ.get("WANDB_SWEEP_ID") else None
    new_id = agent or generate_id()
    if rank() == 0:
        write_text(file, new_id)
    return new_id
