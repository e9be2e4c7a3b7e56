"""The logger of a run: W&B (which may fail without harm), CSV or TensorBoard."""

from __future__ import annotations

import contextlib
import csv
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger, WandbLogger
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from nmt.config import Config, LoggerConfig
from nmt.config.schema import to_containers
from nmt.report.wandb.account import has_key
from nmt.report.wandb.panels import define_metrics, warn_on_error
from nmt.training.lightning import is_offline, wandb_settings
from nmt.utils.environment import rank, sweep_folder
from nmt.utils.errors import InputError
from nmt.utils.files import write_json
from nmt.utils.optional import need

log = logging.getLogger(__name__)

OWN = ("train/", "valid/", "test/", "length/")  # names of this program's scores


class LogEntry(IntEnum):
    """What is logged of an update, in this order; a callback's rows come at any time."""

    TRAINING = 0
    PICTURES = 1
    VALIDATION = 2
    TEST = 3
    OTHERS = 4


@contextlib.contextmanager
def logging_to(config: Config, folder: Path) -> Iterator[Logger | None]:
    """The logger of a run, closed at its end however that comes; None on ranks other than 0.

    Raises:
        InputError: when an extra or a key that the logger needs is missing.
    """
    logger = None if rank() else make_logger(config, folder)
    try:
        yield logger
    finally:
        if isinstance(logger, WandbLogger):
            with warn_on_error("closing the run"):
                import wandb

                wandb.finish()


def check_logger(options: LoggerConfig) -> None:
    """Refuses a logger whose extra or key is missing.

    Raises:
        InputError: naming what is missing and what would do.
    """
    if options.name == "tensorboard":
        need("tensorboard", "tensorboard", "logger=tensorboard")
    if options.name == "wandb" and options.mode == "online" and not has_key():
        raise InputError(
            "logger.mode=online: W&B has no key here; run `wandb login` or set WANDB_API_KEY, "
            "or take logger.mode=offline"
        )


def make_logger(config: Config, folder: Path) -> Logger | None:
    """The logger that the configuration asks for, or None. Raises as `logging_to`."""
    options = config.logger
    check_logger(options)
    if options.name == "csv":
        return ResumableCSVLogger(folder)
    if options.name == "tensorboard":
        return TensorBoardLogger(folder, name="", version="tensorboard")
    if options.name == "none" or options.mode == "disabled":
        return None
    os.environ.setdefault("WANDB_SILENT", "true")
    for mode in dict.fromkeys((options.mode, "offline")):
        with warn_on_error(f"starting the run, logger.mode={mode},"):
            logger = ResumableWandbLogger(config, folder, mode)
            define_metrics(logger.experiment)
            return logger
    return None


class ResumableCSVLogger(CSVLogger):
    """A metrics.csv that a resumed run continues; Lightning's own logger begins it anew.

    Rows from the first step that is logged again on are replaced.
    """

    def __init__(self, folder: Path) -> None:
        # every row at once: what is kept back is lost when the process is killed
        super().__init__(folder, name="", version="", prefix="", flush_logs_every_n_steps=1)
        self._earlier: list[dict[str, Any]] = []
        self._file = folder / "metrics.csv"
        if self._file.is_file():
            with self._file.open(newline="", encoding="utf-8") as rows:
                self._earlier = list(csv.DictReader(rows))
            self._write(self._earlier)

    def _write(self, rows: list[dict[str, Any]]) -> None:
        writer = self.experiment  # removes the file when it is made
        self._file.unlink(missing_ok=True)
        writer.metrics = [dict(row) for row in rows]
        writer.save()

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        if self._earlier and step is not None:
            kept = [row for row in self._earlier if int(row["step"]) < step]
            if len(kept) < len(self._earlier):
                self._write(kept)
            self._earlier = []
        super().log_metrics(metrics, step)


class ResumableWandbLogger(WandbLogger):
    """W&B that fails (no network, a full disk) is reported once and never stops a training.

    The run's id is kept in the run folder, so that a resumed run continues it, and so is what was
    logged last: after a kill some updates are computed again, but no row is logged twice.
    """

    def __init__(self, config: Config, folder: Path, mode: str) -> None:
        options = config.logger
        self._logged = LoggedRows(folder / "wandb" / "logged.json")
        self._next_step = self._logged.step
        super().__init__(
            name=config.name,
            save_dir=folder,
            id=run_id(folder),
            project=options.project,
            entity=options.entity,
            group=options.group or sweep_folder(),
            tags=[*options.tags, config.experiment, config.regime],
            offline=mode == "offline",
            config=to_containers(config),
            resume=None if mode == "offline" else "allow",
            settings={"console": "off", "silent": True},
        )
        if mode == "offline":
            # Lightning says so in the environment, which W&B reads once a process
            wandb_settings(self)["mode"] = mode
        # an option that Lightning hands on and W&B warns of at every start
        wandb_settings(self).pop("anonymous", None)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        with self.row(step, entry_of(metrics)) as new, warn_on_error("logging scores"):
            if new:
                super().log_metrics(metrics, step)

    @rank_zero_only
    def finalize(self, status: str) -> None:
        with warn_on_error("closing the run"):
            super().finalize(status)

    @contextlib.contextmanager
    def row(self, update: int | None, entry: LogEntry) -> Iterator[bool]:
        """Whether a row of an update has yet to be logged; after what is inside it counts as so."""
        if update is not None and self._logged.has(update, entry):
            yield False
            return
        if self._next_step and is_offline(self):
            with warn_on_error("continuing the run"):
                self.experiment.log({}, step=self._next_step)
        self._next_step = 0
        yield True
        if update is not None:
            with warn_on_error("recording what is logged"):
                self._logged.write(update, entry, int(self.experiment.step))


class LoggedRows:
    """What of a W&B run was logged last, in a file of the run folder.

    A callback may log several rows of an update, so that of theirs only what an earlier process
    logged counts as so.

    Attributes:
        last: update and entry of the last of this program's own rows.
        others: the last update of which a callback of the configuration logged a row.
        step: W&B's number for the row after all of them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last, self.others, self.step = (-1, 0), -1, 0
        if path.is_file():
            with warn_on_error("reading what is logged"):
                update, entry, *others, self.step = json.loads(path.read_text())
                self.last = (update, entry)
                self.others = others[0] if others else -1
        self._others_before = self.others

    def has(self, update: int, entry: LogEntry) -> bool:
        """Whether a row was logged before."""
        if entry == LogEntry.OTHERS:
            return update <= self._others_before
        return (update, entry) <= self.last

    def write(self, update: int, entry: LogEntry, step: int) -> None:
        if entry == LogEntry.OTHERS:
            self.others = update
        else:
            self.last = (update, entry)
        self.step = step
        write_json(self.path, [*self.last, self.others, step])


def entry_of(row: Iterable[str]) -> LogEntry:
    """What of an update a row is, from its keys."""
    if not any(key.startswith(OWN) for key in row):
        return LogEntry.OTHERS
    if any(key.startswith(("length/", "test/")) for key in row):
        return LogEntry.TEST
    if any(key.startswith("valid/alignment/") for key in row):
        return LogEntry.PICTURES
    if any(key.startswith("valid/") for key in row):
        return LogEntry.VALIDATION
    return LogEntry.TRAINING


def run_id(folder: Path) -> str:
    """The W&B id of a run folder, drawn when first asked for."""
    identity = folder / "wandb" / "id"
    if identity.is_file():
        return identity.read_text().strip()
    import wandb

    drawn: str = wandb.sdk.lib.runid.generate_id()
    identity.parent.mkdir(parents=True, exist_ok=True)
    identity.write_text(drawn)
    return drawn
