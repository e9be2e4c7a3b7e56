"""The checkpoint callback: writes the state at validations, every `checkpoint.minutes`, and on signals.

A checkpoint always holds the state between two updates, after a validation that was due, and the
state of Lightning's loops is set accordingly. An update is a function of that state and of its number
(`nmt.data.batches`, `Seeds`), so that a resumed run ends with the result of an uninterrupted one.
"""

from __future__ import annotations

import logging
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from nmt.config import TrainConfig
from nmt.models.checkpoint import (
    ValidationProgress,
    store_progress,
    stored_progress,
    write_checkpoint,
)
from nmt.training.checkpoint_folder import CheckpointFolder, defect
from nmt.training.lightning import accumulating, complete_loops, is_trial
from nmt.training.signals import Stop
from nmt.training.validation import validation_scores
from nmt.utils.devices import seed_random_numbers
from nmt.utils.errors import RunError

log = logging.getLogger(__name__)


class AtomicCheckpointIO(TorchCheckpointIO):
    """Lightning's checkpoint plugin, which writes atomically (`nmt.models.checkpoint`)."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        write_checkpoint(checkpoint, Path(path))


class Seeds(pl.Callback):
    """Seeds each micro-batch by its number, so that dropout does not depend on restarts."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        entropy = [self.seed, trainer.fit_loop.total_batch_idx, trainer.global_rank]
        seed = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
        seed_random_numbers(seed, pl_module.device)


class Checkpoints(pl.Callback):
    """Writes checkpoints, and remembers the validations and which was best.

    Attributes:
        progress: `progress.history` has one entry a validation: `update`, `train_nll_per_word`
            (since the one before), and every `valid/…` score under its name without the prefix.
    """

    def __init__(self, folder: CheckpointFolder, config: TrainConfig, stop: Stop) -> None:
        self.folder = folder
        self.stop = stop
        self.minutes = config.checkpoint.minutes
        self.every = config.trainer.log_every
        self.monitor = "bleu" if config.trainer.monitor == "bleu" else "nll_per_word"
        self.progress = ValidationProgress()
        self._started = self._written = time.monotonic()

    def hours(self) -> float:
        """Hours of training so far, over all resumes."""
        return (self.progress.seconds + time.monotonic() - self._started) / 3600

    def best_score(self) -> float | None:
        """The score of the best checkpoint that `trainer.monitor` names; None before a validation."""
        best = self.progress.best
        return None if best is None else best[self.monitor]

    def replace_damaged_best(self) -> None:
        """Replaces a damaged or missing best checkpoint by the last one. For rank 0."""
        wrong = defect(self.folder.best) if self.folder.best.is_file() else "there is no best.ckpt"
        if wrong is not None and self.progress.history:
            log.warning("%s; %s takes its place", wrong, self.folder.last)
            self.folder.keep_best()
            self.progress.best = self.progress.history[-1]

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        self.progress = stored_progress(checkpoint)
        self._started = time.monotonic()

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit" and trainer.is_global_zero and not is_trial(trainer):
            self.folder.prepare()

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        trainer.should_stop = self.progress.stopped_early

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._started = self._written = time.monotonic()

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if batch_idx % trainer.accumulate_grad_batches:
            return
        together = trainer.global_step % self.every == 0
        if not together and trainer.world_size > 1:
            return  # ranks communicate on this only every few updates, since it makes a GPU wait
        due = time.monotonic() - self._written > 60 * self.minutes and together
        number = self.stop.number
        if trainer.world_size > 1:
            asked = torch.tensor([number, int(due)], device=pl_module.device)
            number, due = trainer.strategy.reduce(asked, reduce_op="max").tolist()
        if number or due:
            self.write(trainer)
        if number:
            raise self.stop.interrupted(number)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if accumulating(trainer):
            return
        if trainer.global_step >= trainer.max_steps:
            trainer.should_stop = True  # Lightning then validates once more before it ends
        elif trainer.global_step % self.every == 0:
            refuse_non_finite(trainer, pl_module)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: Any) -> None:
        refuse_non_finite(trainer, pl_module)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        entry = {"update": float(trainer.global_step)}
        scores = validation_scores(trainer)
        entry |= {name: score for name, score in scores.items() if "/" not in name}
        if "train/nll_per_word" in trainer.callback_metrics:
            entry["train_nll_per_word"] = float(trainer.callback_metrics["train/nll_per_word"])
        if not math.isfinite(entry["nll_per_word"]):
            raise RunError(
                f"the development NLL is not finite at update {trainer.global_step}; "
                "the earlier checkpoints are intact (try a smaller optimizer.lr, or clip_norm)"
            )
        progress = self.progress
        progress.history.append(entry)
        improved = progress.best is None or self._score(entry) > self._score(progress.best)
        if improved:
            progress.best = entry
        progress.stopped_early = trainer.should_stop and trainer.global_step < trainer.max_steps
        self.write(trainer, best=improved)

    def write(self, trainer: pl.Trainer, best: bool = False) -> None:
        """Writes `last`, copied as the best one where it is; the one before becomes `previous`.

        Called on every rank. As with Lightning's own, a trial (`fast_dev_run`) writes none.
        """
        refuse_non_finite(trainer, trainer.lightning_module)
        if is_trial(trainer):
            return
        for logger in trainer.loggers:
            logger.save()  # a resumed run does not log again what came before its checkpoint
        if trainer.is_global_zero:
            self.folder.make_room()
        trainer.save_checkpoint(self.folder.last)
        self._written = time.monotonic()
        if best and trainer.is_global_zero:
            self.folder.keep_best()

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Stores the progress, and marks the last update as completed in the state of Lightning's loops."""
        now = ValidationProgress(**{**vars(self.progress), "seconds": self.hours() * 3600})
        store_progress(checkpoint, now)
        complete_loops(checkpoint, trainer)

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
