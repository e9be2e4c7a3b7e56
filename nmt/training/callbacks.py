"""This program's own callbacks: seeds per batch, a stop by a signal, results set aside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch

from nmt.training.signals import Stop
from nmt.utils.devices import seed_random_numbers


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


class SetResultsAside(pl.Callback):
    """Renames results.json when updates begin: the run is then unfinished."""

    def __init__(self, results: Path) -> None:
        self.results = results

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero and self.results.is_file():
            self.results.replace(self.results.with_name("results.earlier.json"))


class StopOnSignal(pl.Callback):
    """Writes `last.ckpt` after the update during which a signal came to any rank, and ends the run.

    Args:
        stop: hears the signals.
        last: the checkpoint to write.
    """

    def __init__(self, stop: Stop, last: Path) -> None:
        self.stop, self.last = stop, last
        self._saved_at = -1  # update of the last checkpoint

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.stop.listen()  # Lightning has put its own handlers in front

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        self._saved_at = trainer.global_step

    def on_train_batch_start(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if self._saved_at == trainer.global_step:  # a validation was due after the update
            self._check(trainer)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loop = trainer.fit_loop.epoch_loop
        # ranks talk about this every few updates only, since it makes a GPU wait
        due = trainer.world_size == 1 or trainer.global_step % trainer.log_every_n_steps == 0  # type: ignore[attr-defined]
        will_validate = loop._should_check_val_fx(trainer.fit_loop._data_fetcher)  # type: ignore[arg-type]
        if due and not loop._should_accumulate() and not will_validate:
            self._check(trainer)

    def _check(self, trainer: pl.Trainer) -> None:
        number = self.stop.number
        if trainer.world_size > 1:
            heard = torch.tensor(number, device=trainer.strategy.root_device)
            number = int(trainer.strategy.reduce(heard, reduce_op="max"))
        if number:
            if self._saved_at != trainer.global_step and not trainer.fast_dev_run:  # type: ignore[attr-defined]
                trainer.save_checkpoint(self.last)
            raise self.stop.interrupted(number)
