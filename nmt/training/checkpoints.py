"""The state of training on disk: `last`, `previous` and `best`, each whole and with a checksum.

A checkpoint is written at each validation and every `checkpoint.minutes`. `last` first becomes
`previous`, so that at any moment one of the two is a good one; `best` is a copy.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from nmt import files
from nmt.config import Config
from nmt.errors import Failure, Refusal

log = logging.getLogger(__name__)

LAST, PREVIOUS, BEST = "last.ckpt", "previous.ckpt", "best.ckpt"


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint whole or not at all; reads it as data."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        try:
            files.write_atomically(
                Path(path), lambda stream: torch.save(checkpoint, stream), checksum=True
            )
        except OSError as error:
            raise Failure(
                f"{path}: cannot write the checkpoint: {error.strerror or error}; "
                "the earlier ones are intact"
            ) from error
        except RuntimeError as error:  # torch's own word for a short write
            raise Failure(
                f"{path}: cannot write the checkpoint: {str(error).splitlines()[0]}; "
                "the earlier ones are intact"
            ) from error


class Checkpoints(pl.Callback):
    """Writes checkpoints, and remembers the validations and which was best.

    Attributes:
        history: one entry a validation: `update`, `nll` (training, a word, since the one before),
            and every `valid/…` score under its name without the prefix.
        best: the best entry of `history`, or None.
        seconds: training time up to the last checkpoint, over all resumes.
    """

    def __init__(self, folder: Path, config: Config) -> None:
        self.folder = folder / "checkpoints"
        self.minutes = config.checkpoint.minutes
        self.every = config.trainer.log_every
        self.monitor = "bleu" if config.trainer.monitor == "bleu" else "nll_per_word"
        self.history: list[dict[str, float]] = []
        self.best: dict[str, float] | None = None
        self.seconds = 0.0
        self._started = self._written = time.monotonic()

    def hours(self) -> float:
        """Hours of training so far, over all resumes."""
        return (self.seconds + time.monotonic() - self._started) / 3600

    def state_dict(self) -> dict[str, Any]:
        return {
            "history": self.history,
            "best": self.best,
            "seconds": self.hours() * 3600,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history = list(state_dict["history"])
        self.best = state_dict["best"]
        self.seconds = state_dict["seconds"]
        self._started = time.monotonic()

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit" and trainer.is_global_zero:
            prepare_folder(self.folder)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._started = self._written = time.monotonic()
        # a kill between writing `last` and copying it to `best` leaves the copy to be made
        last = self.folder / LAST
        best_is_last = self.best is not None and self.best["update"] == trainer.global_step
        if best_is_last and trainer.is_global_zero and last.is_file():
            files.copy(last, self.folder / BEST)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.fit_loop._should_accumulate():
            return
        if trainer.global_step >= trainer.max_steps:
            trainer.should_stop = True  # Lightning then validates once more before it ends
        elif trainer.global_step % self.every == 0:
            refuse_non_finite(trainer, pl_module)
            due = time.monotonic() - self._written > 60 * self.minutes
            if trainer.strategy.broadcast(due):
                self.write(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        if trainer.sanity_checking or trainer.state.fn != "fit":
            return
        refuse_non_finite(trainer, pl_module)
        entry = {"update": float(trainer.global_step)}
        for name, value in trainer.callback_metrics.items():
            if name.startswith("valid/") and "/" not in name[6:]:
                entry[name[6:]] = float(value)
            elif name == "train/nll_per_word":
                entry["nll"] = float(value)
        self.history.append(entry)
        improved = self.best is None or self._score(entry) > self._score(self.best)
        if improved:
            self.best = entry
        self.write(trainer)
        if improved and trainer.is_global_zero:
            files.copy(self.folder / LAST, self.folder / BEST)

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """A signal that asks to stop is obeyed between two updates; the state is written first."""
        from pytorch_lightning.utilities.exceptions import SIGTERMException

        if isinstance(exception, SIGTERMException) and trainer.state.fn == "fit":
            self.write(trainer)

    def write(self, trainer: pl.Trainer) -> None:
        """Writes `last`; the one before becomes `previous`. Called on every rank."""
        if trainer.is_global_zero and (self.folder / LAST).is_file():
            files.rename(self.folder / LAST, self.folder / PREVIOUS)
        trainer.save_checkpoint(self.folder / LAST)
        self._written = time.monotonic()

    def _score(self, entry: dict[str, float]) -> float:
        value = entry[self.monitor]
        return value if self.monitor == "bleu" else -value


def refuse_non_finite(trainer: pl.Trainer, module: Any) -> None:
    """Ends a run whose gradient was not finite, before anything of it is written.

    Raises:
        Failure: naming the update before which it happened.
    """
    if not bool(module.finite):
        raise Failure(
            f"the loss or its gradient is not finite at or before update {trainer.global_step}; "
            "the earlier checkpoints are intact (try a smaller optimizer.lr, or clip_norm)"
        )


def prepare_folder(folder: Path) -> None:
    """Makes the checkpoint folder and removes what a killed process left half written.

    Raises:
        Refusal: when the folder cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for partial in folder.glob(".*.partial"):
            partial.unlink(missing_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise Refusal(f"{folder}: cannot write there: {error.strerror}") from error


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
        raise Refusal(f"{folder}: no checkpoint is whole: {', '.join(map(str, damaged))}")
    return None
