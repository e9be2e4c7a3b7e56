"""`TranslationData`: the batches that Lightning trains and tests on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from nmt.config.schema import Config, DataConfig
from nmt.data.batch import Batch
from nmt.data.batches import TrainingSchedule, evaluation_batches
from nmt.data.pairs import Pairs
from nmt.data.preparation import Prepared
from nmt.utils.processes import follow_parent

log = logging.getLogger(__name__)


class TranslationData(pl.LightningDataModule):
    """Batches for training, validation and tests; each rank gets its own share.

    The Trainer needs `use_distributed_sampler=False`, since this class selects the shares. A pool of
    sorted pairs (see `TrainingSchedule`) may extend into the next epoch.

    Args:
        prepared: the encoded text.
        config: the whole configuration; `data`, `search.batch_size`,
            `evaluation.valid_sentences` and `seed` are used.
    """

    def __init__(self, prepared: Prepared, config: Config) -> None:
        super().__init__()
        self.prepared = prepared
        self.config = config
        data = config.data
        pairs = len(prepared.train)
        if data.batch_tokens is None and data.batch_size > pairs:
            log.warning("data.batch_size=%d: each update uses all %d pairs", data.batch_size, pairs)
        if data.batch_tokens and data.batch_size != DataConfig.batch_size:
            log.warning(
                "data.batch_size=%d is not used: data.batch_tokens=%d replaces it, unless it is null",
                data.batch_size,
                data.batch_tokens,
            )
        self.schedule = TrainingSchedule(
            prepared.train.sizes,
            data.batch_tokens or min(data.batch_size, pairs),
            seed=config.seed,
            by_tokens=data.batch_tokens is not None,
        )

    def examples(self) -> tuple[Batch, Batch]:
        """Returns this rank's first micro-batch of the median-sized and of the largest update of the first pool."""
        accumulate = self.trainer.accumulate_grad_batches if self.trainer else 1
        batches = MicroBatches(self.prepared.train, self.schedule, accumulate, *self._rank())
        updates = self.schedule.by_size()
        return batches[accumulate * updates[len(updates) // 2]], batches[accumulate * updates[-1]]

    def train_dataloader(self) -> DataLoader[Batch]:
        """Returns the micro-batches of an epoch, starting at the trainer's current update.

        Micro-batch n depends only on n. The first n is `accumulate` times the trainer's count of updates. A
        resumed run therefore needs no loader state, even if workers had prefetched batches.
        """
        accumulate = self.trainer.accumulate_grad_batches if self.trainer else 1
        workers = self.config.data.workers
        batches = MicroBatches(self.prepared.train, self.schedule, accumulate, *self._rank())
        return self._loader(
            batches,
            sampler=EpochSampler(self.trainer, accumulate, len(batches)),
            num_workers=workers,
            persistent_workers=workers > 0,
            prefetch_factor=8 if workers else None,
            worker_init_fn=follow_parent,
        )

    def val_dataloader(self) -> DataLoader[Batch]:
        """Returns this rank's share of the development pairs.

        The first `evaluation.valid_sentences` pairs are also translated. They come first, in separate
        batches, so that no batch is translated for only a few of its sentences.
        """
        return self._evaluation(self.prepared.valid, self.config.evaluation.valid_sentences)

    def test_dataloader(self) -> list[DataLoader[Batch]]:
        """Returns this rank's share of each test set, in the order of the configuration."""
        return [self._evaluation(pairs) for pairs in self.prepared.test.values()]

    def _evaluation(self, pairs: Pairs, apart: int = 0) -> DataLoader[Batch]:
        size = self.config.search.batch_size
        share = evaluation_batches(pairs.sizes, size, *self._rank(), apart)
        return self._loader(share, collate_fn=pairs.batch)

    def _rank(self) -> tuple[int, int]:
        """Returns the rank of this process and the number of processes."""
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)

    def _loader(self, batches: Any, **options: Any) -> DataLoader[Batch]:
        on_gpu = self.trainer is not None and self.trainer.strategy.root_device.type == "cuda"
        # A DataLoader draws a seed when it starts. With the global generator, each validation or restart
        # would change the dropout masks that follow.
        generator = torch.Generator()
        return Loader(batches, batch_size=None, pin_memory=on_gpu, generator=generator, **options)


class Loader(DataLoader[Batch]):
    """A DataLoader with an empty state, so that Lightning treats it as resumable."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Does nothing, since `EpochSampler` computes its start from the trainer's count of updates."""


class EpochSampler(Sampler[int]):
    """Yields the indices of the micro-batches from the trainer's current update to the end of the epoch."""

    def __init__(self, trainer: pl.Trainer | None, accumulate: int, length: int) -> None:
        self.trainer = trainer
        self.accumulate = accumulate
        self.length = length

    def __iter__(self) -> Iterator[int]:
        start = self.trainer.global_step * self.accumulate if self.trainer else 0
        return iter(range(start, (start // self.length + 1) * self.length))

    def __len__(self) -> int:
        return self.length


class MicroBatches(Dataset[Batch]):
    """This rank's share of all micro-batches; micro-batch n belongs to update n // accumulate.

    Lightning divides each loss by `accumulate`, and DDP averages the gradients of the ranks. The weight
    of a batch cancels both divisions. The accumulated gradient is therefore the gradient of the mean loss
    over the sentences of the update.
    """

    def __init__(
        self, train: Pairs, schedule: TrainingSchedule, accumulate: int, rank: int, world: int
    ) -> None:
        self.train = train
        self.schedule = schedule
        self.accumulate = accumulate
        self.rank = rank
        self.world = world

    def __len__(self) -> int:
        """Returns the estimated number of micro-batches per epoch; `overfit_batches` uses the first ones in order."""
        return self.accumulate * self.schedule.updates_per_epoch()

    def __getitem__(self, number: int) -> Batch:
        update, micro = divmod(number, self.accumulate)
        sentences = self.schedule.rows(update)
        rows = self.schedule.share(update, micro, self.accumulate, self.rank, self.world)
        if len(rows):
            return self.train.batch(rows, self.world * self.accumulate / len(sentences))
        # This rank has no sentences, but must contribute a gradient for DDP. A sentence whose words are
        # all masked gives a zero gradient.
        batch = self.train.batch(sentences[:1], 0.0)
        masked, none = torch.zeros_like(batch.target_mask), torch.zeros_like(batch.words)
        return batch._replace(target_mask=masked, rows=batch.rows[:0], words=none)
