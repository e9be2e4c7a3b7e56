"""The W&B logger of a run: names, rows, and how a resumed run continues it."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import WandbLogger
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from nmt.config import Config, LoggerConfig
from nmt.config.overrides import GROUPS
from nmt.config.schema import to_containers
from nmt.report.runs import is_incidental, setting, typed_keys
from nmt.report.wandb.panels import TABLE, UPDATE, define_metrics, warn_on_error
from nmt.report.wandb.rows import read_rows
from nmt.report.wandb.service import forget, has_died
from nmt.training.lightning import (
    forget_wandb_run,
    has_wandb_run,
    wandb_settings,
)
from nmt.utils.environment import command_name, sweep_folder
from nmt.utils.errors import InputError
from nmt.utils.files import write_text

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.1  # between two times that W&B writes its rows to disk
PATIENCE_SECONDS = 5.0  # for it to have done so
LONGEST_NAME = 128  # of a run or a group, in characters; W&B refuses a longer one
LONGEST_TAG = 64  # likewise
# what W&B takes, and how to say it
TAKEN = {
    "project": (r"[^/\\#?%:]{1,128}", "must have 1 to 128 characters, none of / \\ # ? % :"),
    "run_name": (rf".{{0,{LONGEST_NAME}}}", f"must have at most {LONGEST_NAME} characters"),
    "group": (rf".{{0,{LONGEST_NAME}}}", f"must have at most {LONGEST_NAME} characters"),
    "tags": (rf".{{1,{LONGEST_TAG}}}", f"must have 1 to {LONGEST_TAG} characters each"),
}
# keys that the name or the tags of a run show already
TOLD = ("experiment", "regime", "model", "data.max_length")
OWN = ("train/", "valid/", "test/", "length/")  # names of this program's scores


class LogEntry(IntEnum):
    """What is logged of an update, in this order; a callback's rows come at any time."""

    TRAINING = 0
    PICTURES = 1
    VALIDATION = 2
    TEST = 3
    OTHERS = 4


class ResumableWandbLogger(WandbLogger):
    """A W&B logger whose failures (no network, a full disk) never stop a training, and that can be resumed.

    The run's id is kept in the run folder, so that a resumed run continues it. Its rows are written to
    disk by a process of W&B's own, which dies with this one. Those of a checkpoint are on disk before
    it is (`save`); after a kill the updates since are made again, and of their rows those are logged
    that the files of the earlier processes do not have: each row is logged once. Where that process
    alone has died, another one goes on (`revive`).
    """

    def __init__(self, config: Config, folder: Path, mode: str, typed: Sequence[str] = ()) -> None:
        options = config.logger
        self._folder = folder
        files = self._files()
        self._logged = LoggedRows(files)
        # the server has such a run already: only what was chosen replaces what was edited there
        known = any(file.parent.name.startswith("run-") for file in files)
        tags = [*options.tags, beginning(config.experiment, LONGEST_TAG), config.regime]
        self._on_disk, self._block = -1, 0  # W&B's number of the last row there, and its block
        self._waiting = False  # for a row to be on disk
        # rows of numbers that may not be there yet: update and content
        self._unsaved: list[tuple[int | None, Mapping[str, float]]] = []
        self._next_step = self._logged.step
        super().__init__(
            name=options.run_name or (None if known else run_name(config, typed)),
            job_type=command_name(),
            save_dir=folder,
            id=run_id(folder),
            project=options.project,
            entity=options.entity or None,
            group=options.group or sweep_group(),
            tags=None if known and not options.tags else tags,
            notes=options.notes,
            # Lightning's own `offline` says so in the environment, to whatever this process does later
            mode=mode,
            config=to_containers(config),
            resume=None if mode == "offline" else "allow",
            settings={
                "console": "off",
                "silent": True,
                "x_transaction_log_flush_interval": FLUSH_SECONDS,
            },
        )
        # an option that Lightning hands on and W&B warns of at every start
        wandb_settings(self).pop("anonymous", None)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        with self.row(step, entry_of(metrics)) as new, warn_on_error("logging scores"):
            if new:
                self._unsaved.append((step, dict(metrics)))
                super().log_metrics(metrics, step)

    @rank_zero_only
    def finalize(self, status: str) -> None:
        with warn_on_error("closing the run"):
            super().finalize(status)

    def identity(self) -> dict[str, str | None]:
        """What finds the run in W&B: its `entity` (None: not known offline), `project` and id (`run`)."""
        run = self.experiment
        return {"entity": run.entity or None, "project": run.project, "run": run.id}

    @contextlib.contextmanager
    def row(self, update: int | None, entry: LogEntry) -> Iterator[bool]:
        """Whether a row of an update has yet to be logged; after what is inside it counts as so."""
        if update is not None and self._logged.has(update, entry):
            yield False
            return
        self.revive()
        self._continue()
        self._waiting = True
        yield True
        if update is not None and entry != LogEntry.OTHERS:
            self._logged.last = (update, entry)

    def _continue(self) -> None:
        if self._next_step:
            with warn_on_error("continuing the run"):
                if self.experiment.offline:  # else the server counts on
                    self.experiment.log({}, step=self._next_step)
        self._next_step = 0

    def revive(self) -> None:
        """Restarts W&B's process where it has died.

        Rows of numbers that were not on disk yet are logged again; pictures are not.
        """
        if not has_wandb_run(self) or not has_died():
            return
        with warn_on_error("starting its process anew"):
            there = LoggedRows(self._files())
            log.info("W&B's process has ended; another one is started")
            forget()
            forget_wandb_run(self)
            self._on_disk, self._block = -1, 0
            define_metrics(self.experiment)
            self._next_step = there.step
            self._continue()
            for update, metrics in self._unsaved:
                if update is None or not there.has(update, entry_of(metrics)):
                    super().log_metrics(metrics, update)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("wandb/*run-*/run-*.wandb"), key=time_of)

    def close(self, exit_code: int = 0) -> None:
        """Ends the run, whose rows are all on disk then; W&B shows one whose code is not 0 as failed."""
        import wandb

        for _ in range(2):
            self.revive()
            try:
                return wandb.finish(exit_code)
            except Exception:
                if not has_died(seconds=2):
                    raise

    @rank_zero_only
    def save(self) -> None:
        """Waits until every row is on disk."""
        self.revive()
        if not self._waiting:
            return
        self._waiting = False
        with warn_on_error("writing rows"):
            file, last = Path(self.experiment.settings.sync_file), int(self.experiment.step) - 1
            until = time.monotonic() + PATIENCE_SECONDS
            while self._on_disk < last:
                for block, row in read_rows(file, self._block):
                    self._on_disk, self._block = int(row["_step"]), block
                if self._on_disk < last and time.monotonic() > until:
                    raise TimeoutError(f"{file}: its last row is {self._on_disk}, not {last}")
                time.sleep(FLUSH_SECONDS / 5)
            self._unsaved.clear()


class LoggedRows:
    """The rows of a W&B run that earlier processes have written; a kill may have cut the files off.

    Attributes:
        last: update and entry of the last of this program's own rows, in this process too.
        others: rows of the configuration's callbacks by update, which may log several of one.
        step: W&B's number for the row after all of them.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self.last, self.step = (-1, 0), 0
        self.others: Counter[int] = Counter()
        for file in files:
            with warn_on_error("reading what is logged"):
                for _, row in read_rows(file):
                    self._add(row)

    def _add(self, row: Mapping[str, Any]) -> None:
        self.step = int(row["_step"]) + 1
        entry, update = entry_of(row), row.get(UPDATE)
        if TABLE in row:  # the test is logged, which is of the last update
            self.last = (self.last[0], LogEntry.TEST)
        elif update is not None and entry == LogEntry.OTHERS:
            self.others[update] += 1
        elif update is not None:
            self.last = (update, entry)

    def has(self, update: int, entry: LogEntry) -> bool:
        """Whether a row is there. The same row of a callback is asked for once."""
        if entry != LogEntry.OTHERS:
            return (update, entry) <= self.last
        self.others[update] -= 1
        return self.others[update] >= 0


def time_of(file: Path) -> str:
    """The time at which a process began a `.wandb` file, as W&B writes it in the folder's name."""
    return file.parent.name.partition("run-")[2]


def entry_of(row: Iterable[str]) -> LogEntry:
    """The kind of a row, from its keys."""
    if not any(key.startswith(OWN) for key in row):
        return LogEntry.OTHERS
    if any(key.startswith(("length/", "test/")) for key in row):
        return LogEntry.TEST
    if any(key.startswith("valid/alignment/") for key in row):
        return LogEntry.PICTURES
    if any(key.startswith("valid/") for key in row):
        return LogEntry.VALIDATION
    return LogEntry.TRAINING


def check_names(options: LoggerConfig) -> None:
    """Refuses what W&B would; raises InputError by the key."""
    for name, (pattern, problem) in TAKEN.items():
        value = getattr(options, name)
        for text in value if isinstance(value, list) else [value]:
            if text is not None and not re.fullmatch(pattern, text, re.DOTALL):
                raise InputError(f"logger.{name}={text}: {problem}")


def run_name(config: Config, typed: Iterable[str]) -> str:
    """The W&B name of a run: its name, seed, and the overrides that change its results.

    >>> run_name(Config(name="RNNsearch-50"), ["scoring=dot", "+optimizer.lr=0.1", "trainer=cpu"])
    'RNNsearch-50, seed 1 (scoring dot, lr 0.1)'
    """
    keys = typed_keys(typed)
    told = {"name", *(TOLD if "name" not in keys else ())}
    settings = ", ".join(
        setting(key, value)
        for key, value in keys.items()
        if key not in told and not all(map(is_incidental, GROUPS.get(key, [key])))
    )
    name = f"{config.name}, seed {config.seed}{f' ({settings})' if settings else ''}"
    return beginning(name, LONGEST_NAME)


def sweep_group() -> str | None:
    """The W&B group of the jobs of a sweep: its folder, of a long path the end, which tells sweeps apart."""
    folder = sweep_folder()
    if folder is None or len(folder) <= LONGEST_NAME:
        return folder
    return f"…{folder[1 - LONGEST_NAME :]}"


def beginning(text: str, longest: int) -> str:
    """A text cut to as many characters.

    >>> beginning("rnnsearch", 9), beginning("rnnsearch", 4)
    ('rnnsearch', 'rnn…')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def run_id(folder: Path) -> str:
    """The W&B id of a run folder: that of a sweep agent of W&B's, or drawn, when first asked for."""
    identity = folder / "wandb" / "id"
    if identity.is_file():
        return identity.read_text().strip()
    import wandb

    given = os.environ.get("WANDB_RUN_ID") if os.environ.get("WANDB_SWEEP_ID") else None
    drawn: str = given or wandb.sdk.lib.runid.generate_id()
    write_text(identity, drawn)
    return drawn
