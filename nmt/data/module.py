"""The LightningDataModule: loaders of training micro-batches and of validation batches."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from nmt.config import Config
from nmt.data.batch import Batch
from nmt.data.batches import TokenSchedule, TrainingSchedule, evaluation_batches
from nmt.data.prepare import Prepared
from nmt.data.splits import HeldOut, Train


class TranslationData(pl.LightningDataModule):
    """Batches for training and validation, each rank's own share.

    The trainer must be made with `use_distributed_sampler=False`: ranks are told apart here. An epoch
    has as many updates as a pass over the training pairs takes; pools run on from one to the next.

    Args:
        prepared: what to read from.
        config: the whole configuration; `data`, `trainer`, `search.batch_size` and `seed` are used.
    """

    def __init__(self, prepared: Prepared, config: Config) -> None:
        super().__init__()
        self.prepared = prepared
        self.schedule = make_training_schedule(prepared.train, config)
        self._workers: int = config.data.workers
        self._evaluation_batch: int = config.search.batch_size

    def train_dataloader(self) -> DataLoader[Batch]:
        """The micro-batches of an epoch, from the first one after the updates the trainer has made.

        Micro-batch n is a function of n alone, and the loader counts from the trainer's update. A resumed
        training therefore needs no state of the loader, whatever the workers had read ahead.
        """
        accumulate = self.trainer.accumulate_grad_batches if self.trainer else 1
        batches = MicroBatches(self.prepared.train, self.schedule, accumulate, *self._rank())
        length = accumulate * self.schedule.updates_per_epoch()
        return self._loader(batches, EpochSampler(self.trainer, accumulate, length))

    def val_dataloader(self) -> DataLoader[Batch]:
        """This rank's share of the development pairs, every one on one rank, longest first."""
        valid = EvaluationBatches(self.prepared.valid, self._evaluation_batch, *self._rank())
        return self._loader(valid)

    def test_dataloader(self) -> list[DataLoader[Batch]]:
        """This rank's share of each test set, in the order of the configuration."""
        return [
            self._loader(EvaluationBatches(split, self._evaluation_batch, *self._rank()))
            for split in self.prepared.test.values()
        ]

    def _rank(self) -> tuple[int, int]:
        """Rank of this process and number of processes."""
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)

    def _loader(self, dataset: Dataset[Batch], sampler: Any = None) -> DataLoader[Batch]:
        on_gpu = self.trainer is not None and self.trainer.strategy.root_device.type == "cuda"
        # Evaluation makes its batches in this process: they are few, and starting workers is slow.
        workers = self._workers if sampler is not None else 0
        return DataLoader(
            dataset,
            batch_size=None,
            sampler=sampler,
            num_workers=workers,
            persistent_workers=workers > 0,
            prefetch_factor=8 if workers else None,
            worker_init_fn=end_with_parent,
            pin_memory=on_gpu,
            # A loader draws a seed when it starts; from the global generator, it would shift
            # dropout with the number of validations and restarts.
            generator=torch.Generator(),
        )


def end_with_parent(worker: int) -> None:
    """Has a worker end within a second after the process that started it has ended.

    torch's workers notice that, too, but then wait forever to hand over their batches.
    """
    starter = multiprocessing.parent_process()
    assert starter is not None
    process = starter.pid

    def watch() -> None:
        while os.getppid() == process:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def make_training_schedule(train: Train, config: Config) -> TrainingSchedule:
    """The pairs of every update: a number of sentences, or of tokens if `data.batch_tokens` is set."""
    data = config.data
    settings = (data.pool, data.pool_order, config.seed)
    if data.batch_tokens is not None:
        return TokenSchedule(train.sizes, data.batch_tokens, *settings)
    return TrainingSchedule(train.sizes, data.batch_size, *settings)


class EpochSampler(Sampler[int]):
    """Numbers of the micro-batches from the trainer's update to the end of its epoch."""

    def __init__(self, trainer: pl.Trainer | None, accumulate: int, length: int) -> None:
        self.trainer, self.accumulate, self.length = trainer, accumulate, length

    def __iter__(self) -> Iterator[int]:
        made = self.trainer.global_step * self.accumulate if self.trainer else 0
        return iter(range(made, (made // self.length + 1) * self.length))

    def __len__(self) -> int:
        """Of a whole epoch."""
        return self.length


class MicroBatches(Dataset[Batch]):
    """Item n: this rank's share of micro-batch n % accumulate of update n // accumulate.

    Lightning divides each loss by `accumulate` and DDP averages the gradients of the ranks. The weight
    of a batch undoes both, so that the gradients sum to that of the mean over the update's sentences.

    Where a batch by tokens has fewer sentences than there are shares, a rank without a sentence
    computes a gradient of zeros, since the other ranks wait for it.
    """

    def __init__(
        self, train: Train, schedule: TrainingSchedule, accumulate: int, rank: int, world: int
    ) -> None:
        self.train = train
        self.schedule = schedule
        self.accumulate = accumulate
        self.rank = rank
        self.world = world

    def __len__(self) -> int:
        """Of an epoch; Lightning's `overfit_batches` takes the first ones in order."""
        return self.accumulate * self.schedule.updates_per_epoch()

    def __getitem__(self, number: int) -> Batch:
        update, micro = divmod(number, self.accumulate)
        rows = self.schedule.share(update, micro, self.accumulate, self.rank, self.world)
        weight = self.world * self.accumulate / self.schedule.sentences(update)
        return self.train.batch(rows, weight) if len(rows) else self._idle(update)

    def _idle(self, update: int) -> Batch:
        """A batch that adds nothing to any sum: a sentence with all words masked, and no rows."""
        batch = self.train.batch(self.schedule.rows(update)[:1], 0.0)
        nothing, none = torch.zeros_like(batch.target_mask), torch.zeros_like(batch.words)
        return dataclasses.replace(batch, target_mask=nothing, rows=batch.rows[:0], words=none)


class EvaluationBatches(Dataset[Batch]):
    """This rank's share of the batches of a held-out split."""

    def __init__(self, split: HeldOut, batch_size: int, rank: int, world: int) -> None:
        self.split = split
        self.batches = evaluation_batches(split.sizes, batch_size, rank, world)

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, number: int) -> Batch:
        return self.split.batch(self.batches[number])
