"""The state of training on disk: `last`, `previous` and `best`, each whole and with a checksum.

A checkpoint is written at each validation, every `checkpoint.minutes`, and when a signal asks for
the end. `last` first becomes `previous`, so that at any moment one of the two is a good one; `best`
is a copy.

Whatever the moment, a checkpoint is of the state between two updates, validations included, and
says so to Lightning's loops. What an update does is a function of that state and of its number
(`nmt.data.batches`, `Seeds`): a run that is gone on with ends as if it had never stopped.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from nmt.config.schema import TrainConfig
from nmt.training.signals import Stop
from nmt.utils import files
from nmt.utils.errors import InputError, RunError

log = logging.getLogger(__name__)

LAST, PREVIOUS, BEST = "last.ckpt", "previous.ckpt", "best.ckpt"


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint whole or not at all; reads it as data."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        with checkpoint_errors(Path(path)):
            files.write_atomically(
                Path(path), lambda stream: torch.save(checkpoint, stream), checksum=True
            )


@contextlib.contextmanager
def checkpoint_errors(path: Path) -> Iterator[None]:
    """Turns an error of writing a checkpoint into a `RunError`."""
    try:
        yield
    except (OSError, RuntimeError) as error:  # the latter is torch's own word for a short write
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise RunError(
            f"{path}: cannot write the checkpoint: {reason}; the earlier ones are intact"
        ) from error


class Seeds(pl.Callback):
    """Seeds each micro-batch by its number, so that dropout does not depend on restarts."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        entropy = [self.seed, trainer.fit_loop.total_batch_idx, trainer.global_rank]
        torch.manual_seed(int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0]))


class Checkpoints(pl.Callback):
    """Writes checkpoints, and remembers the validations and which was best.

    Attributes:
        history: one entry a validation: `update`, `nll` (training, a word, since the one before),
            and every `valid/…` score under its name without the prefix.
        best: the best entry of `history`, or None.
        seconds: training time up to the last checkpoint, over all resumes.
        stopped_early: whether the score has not improved for `trainer.patience` validations.
    """

    def __init__(self, folder: Path, config: TrainConfig, stop: Stop) -> None:
        self.folder = folder / "checkpoints"
        self.stop = stop
        self.minutes = config.checkpoint.minutes
        self.every = config.trainer.log_every
        self.monitor = "bleu" if config.trainer.monitor == "bleu" else "nll_per_word"
        self.history: list[dict[str, float]] = []
        self.best: dict[str, float] | None = None
        self.seconds = 0.0
        self.stopped_early = False
        self._started = self._written = time.monotonic()

    def hours(self) -> float:
        """Hours of training so far, over all resumes."""
        return (self.seconds + time.monotonic() - self._started) / 3600

    def state_dict(self) -> dict[str, Any]:
        return {
            "history": self.history,
            "best": self.best,
            "seconds": self.hours() * 3600,
            "stopped_early": self.stopped_early,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history = list(state_dict["history"])
        self.best = state_dict["best"]
        self.seconds = state_dict["seconds"]
        self.stopped_early = state_dict["stopped_early"]
        self._started = time.monotonic()

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit" and trainer.is_global_zero:
            prepare_folder(self.folder)

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        trainer.should_stop = self.stopped_early

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._started = self._written = time.monotonic()

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if batch_idx % trainer.accumulate_grad_batches:
            return
        together = trainer.global_step % self.every == 0
        if not together and trainer.world_size > 1:
            return  # ranks agree on what they do only now and then: it makes a GPU wait
        due = time.monotonic() - self._written > 60 * self.minutes and together
        number = self.stop.number
        if trainer.world_size > 1:
            asked = torch.tensor([number, int(due)], device=pl_module.device)
            number, due = trainer.strategy.reduce(asked, reduce_op="max").tolist()
        if number or due:
            self.write(trainer)
        if number:
            raise self.stop.stopped(number)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.fit_loop._should_accumulate():
            return
        if trainer.global_step >= trainer.max_steps:
            trainer.should_stop = True  # Lightning then validates once more before it ends
        elif trainer.global_step % self.every == 0:
            refuse_non_finite(trainer, pl_module)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        refuse_non_finite(trainer, pl_module)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        entry = {"update": float(trainer.global_step)}
        for name, value in trainer.callback_metrics.items():
            if name.startswith("valid/") and "/" not in name[6:]:
                entry[name[6:]] = float(value)
            elif name == "train/nll_per_word":
                entry["nll"] = float(value)
        if not math.isfinite(entry["nll_per_word"]):
            raise RunError(
                f"the development NLL is not finite at update {trainer.global_step}; "
                "the earlier checkpoints are intact (try a smaller optimizer.lr, or clip_norm)"
            )
        self.history.append(entry)
        improved = self.best is None or self._score(entry) > self._score(self.best)
        if improved:
            self.best = entry
        self.stopped_early = trainer.should_stop and trainer.global_step < trainer.max_steps
        self.write(trainer)
        if improved and trainer.is_global_zero:
            copy_to_best(self.folder / LAST)

    def write(self, trainer: pl.Trainer) -> None:
        """Writes `last`; the one before becomes `previous`. Called on every rank."""
        refuse_non_finite(trainer, trainer.lightning_module)
        if trainer.is_global_zero and (self.folder / LAST).is_file():
            with checkpoint_errors(self.folder / PREVIOUS):
                files.rename(self.folder / LAST, self.folder / PREVIOUS)
        trainer.save_checkpoint(self.folder / LAST)
        self._written = time.monotonic()

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Has Lightning's loops say that the last update and its validation are completed."""
        updates = trainer.global_step
        batches = updates * trainer.accumulate_grad_batches
        loop = checkpoint["loops"]["fit_loop"]
        for count in ("total", "current"):
            counts = loop["epoch_loop.batch_progress"][count]
            counts.update(dict.fromkeys(counts, batches))
        # on its way past a validation that was made, the loop counts this update once more
        validated = batches % int(trainer.val_check_interval) == 0
        loop["epoch_loop.state_dict"]["_batches_that_stepped"] = updates - validated

    def _score(self, entry: dict[str, float]) -> float:
        value = entry[self.monitor]
        return value if self.monitor == "bleu" else -value


def refuse_non_finite(trainer: pl.Trainer, module: Any) -> None:
    """Ends a run whose gradient was not finite, before anything of it is written.

    Raises:
        RunError: naming the update before which it happened.
    """
    if not bool(module.finite):
        raise RunError(
            f"the loss or its gradient is not finite at or before update {trainer.global_step}; "
            "the earlier checkpoints are intact (try a smaller optimizer.lr, or clip_norm)"
        )


def copy_to_best(checkpoint: Path) -> None:
    """Makes a checkpoint the best one."""
    with checkpoint_errors(checkpoint.parent / BEST):
        files.copy(checkpoint, checkpoint.parent / BEST)


def repair_checkpoints(found: Path, update: int, best: dict[str, Any] | None) -> None:
    """Puts right what a killed process left, before a run goes on. For rank 0.

    Args:
        found: the checkpoint to go on with; a damaged `last` beside it would take its place as the
            `previous` one, and is removed.
        update: its number of updates.
        best: the best validation up to then; a kill between writing `last` and copying it to `best`
            leaves the copy to be made.
    """
    if found.name == PREVIOUS:
        for name in (LAST, f"{LAST}{files.CHECKSUM}"):
            (found.parent / name).unlink(missing_ok=True)
    if best is not None and best["update"] == update:
        copied = found.parent / BEST
        if not copied.is_file() or updates_of(copied) != update:
            copy_to_best(found)


def updates_of(checkpoint: Path) -> int | None:
    """The number of updates of a checkpoint, or None if it cannot be read."""
    try:
        content = torch.load(checkpoint, map_location="meta", weights_only=True, mmap=True)
        return int(content["global_step"])
    except Exception:
        return None


def prepare_folder(folder: Path) -> None:
    """Makes the checkpoint folder and removes what a killed process left half written.

    Raises:
        InputError: when the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for partial in folder.glob(".*.partial"):
            partial.unlink(missing_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InputError(f"{folder}: cannot write there: {error.strerror}") from error


def find_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint of a run folder, or None; a damaged one is passed by, aloud."""
    damaged = []
    for name in (LAST, PREVIOUS):
        path = folder / "checkpoints" / name
        if not path.is_file():
            continue
        try:
            files.verify(path)
            torch.load(path, map_location="meta", weights_only=True, mmap=True)
        except Exception as error:
            damaged.append(path)
            log.warning("%s is damaged (%s)", path, str(error).splitlines()[0][:120])
            continue
        if damaged:
            log.warning("going on with %s instead", path)
        return path
    if damaged:
        raise InputError(f"{folder}: no checkpoint is whole: {', '.join(map(str, damaged))}")
    return None
