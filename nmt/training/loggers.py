"""The logger of a run: W&B (which may fail without harm), CSV or TensorBoard."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytorch_lightning.loggers import Logger, TensorBoardLogger
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from nmt.config import Config, LoggerConfig
from nmt.config.schema import to_containers
from nmt.report.wandb.account import WITHOUT_KEY, has_key
from nmt.report.wandb.panels import define_metrics, warn_on_error
from nmt.training.metrics_file import ResumableCSVLogger
from nmt.training.wandb_logger import ResumableWandbLogger, check_names
from nmt.utils.environment import rank
from nmt.utils.errors import InputError
from nmt.utils.optional import need

log = logging.getLogger(__name__)


@contextlib.contextmanager
def logging_to(config: Config, folder: Path, typed: Sequence[str] = ()) -> Iterator[Logger | None]:
    """The logger of a run, closed at its end also after an error; None on ranks other than 0.

    Args:
        config: of the run, whose logger `check_logger` has accepted.
        folder: what it writes into.
        typed: overrides of the run, which its name in W&B shows.
    """
    logger = None if rank() else make_logger(config, folder, typed)
    exit_code = 1
    try:
        yield logger
        exit_code = 0
    finally:
        if isinstance(logger, ResumableWandbLogger):
            with warn_on_error("closing the run"):
                logger.close(exit_code)


def check_logger(options: LoggerConfig) -> None:
    """Refuses a logger whose extra or key is missing, and names that W&B would refuse.

    Raises:
        InputError: naming what is missing or wrong, and what would do.
    """
    if options.name == "tensorboard":
        need("tensorboard", "tensorboard", "logger=tensorboard")
    if options.name == "wandb":
        check_names(options)
        if options.mode == "online" and not has_key():
            raise InputError(f"logger.mode=online: {WITHOUT_KEY}, or take logger.mode=offline")


def make_logger(config: Config, folder: Path, typed: Sequence[str] = ()) -> Logger | None:
    """The logger that the configuration asks for, or None. Arguments as `logging_to`."""
    options = config.logger
    if options.name in ("csv", "tensorboard"):
        made = (ResumableCSVLogger if options.name == "csv" else FlushedTensorBoardLogger)(folder)
        made.log_hyperparams(to_containers(config))
        made.save()
        return made
    if options.name == "none" or options.mode == "disabled":
        return None
    os.environ.setdefault("WANDB_SILENT", "true")
    for mode in dict.fromkeys((options.mode, "offline")):
        with warn_on_error(f"starting the run, logger.mode={mode},"):
            logger = ResumableWandbLogger(config, folder, mode, typed)
            define_metrics(logger.experiment)
            if not logger.experiment.offline:
                log.info("W&B: %s", logger.experiment.url)
            return logger
    return None


class FlushedTensorBoardLogger(TensorBoardLogger):
    """TensorBoard's event files, on disk at each checkpoint (`save`): a kill loses no row before it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, name="", version="tensorboard", default_hp_metric=False)

    @rank_zero_only
    def save(self) -> None:
        super().save()
        self.experiment.flush()
