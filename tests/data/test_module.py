"""Lightning gets the same batches after a resume, and on any number of ranks."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from nmt.config.schema import Config
from nmt.data.batch import Batch
from nmt.data.module import MicroBatches, TranslationData
from nmt.data.preparation import prepare


class Recorder(pl.LightningModule):
    """Records the rows of every batch, and has one weight that depends on the batches."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []
        self.validated: list[tuple[int, list[int]]] = []

    def training_step(self, batch: Batch, index: int) -> torch.Tensor:
        self.seen.append(batch.rows.tolist())
        return batch.weight * ((self.weight - batch.source.float().sum(1)) ** 2).sum()

    def validation_step(self, batch: Batch, index: int) -> None:
        self.validated.append((self.global_step, batch.rows.tolist()))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def fit(
    config: Config, folder: Path, updates: int, checkpoint: str | None = None, accumulate: int = 1
) -> tuple[Recorder, pl.Trainer]:
    data = TranslationData(prepare(config.data, config.tokenizer), config)
    trainer = pl.Trainer(
        max_steps=updates,
        max_epochs=-1,
        accumulate_grad_batches=accumulate,
        val_check_interval=4 * accumulate,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    model = Recorder()
    trainer.fit(model, data, ckpt_path=checkpoint, weights_only=checkpoint and True)
    return model, trainer


@pytest.mark.parametrize(("workers", "accumulate", "tokens"), [(0, 1, None), (2, 2, 70)])
def test_resumed_loader_continues_with_the_same_batches(
    config: Config, tmp_path: Path, workers: int, accumulate: int, tokens: int | None
) -> None:
    config.data.workers = workers
    config.data.batch_tokens = tokens
    whole, _ = fit(config, tmp_path, 23, accumulate=accumulate)
    first, trainer = fit(config, tmp_path, 9, accumulate=accumulate)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    config.data.workers = 1
    second, _ = fit(config, tmp_path, 23, str(tmp_path / "last.ckpt"), accumulate)
    assert len(first.seen) == 9 * accumulate
    assert first.seen + second.seen == whole.seen
    assert torch.equal(second.weight, whole.weight)
    assert sorted({step for step, _ in whole.validated}) == [4, 8, 12, 16, 20]
    assert [step for step, _ in first.validated + second.validated] == [
        step for step, _ in whole.validated
    ]


def test_batch_size_is_limited_to_the_number_of_pairs(config: Config, caplog: Any) -> None:
    config.data.batch_size = 10**9
    data = TranslationData(prepare(config.data, config.tokenizer), config)
    pairs = len(data.prepared.train)
    assert f"data.batch_size=1000000000: each update uses all {pairs} pairs" in caplog.text
    assert sorted(data.schedule.rows(0)) == list(range(pairs))


def test_a_number_of_sentences_beside_tokens_is_named(config: Config, caplog: Any) -> None:
    config.data.batch_tokens = 90
    TranslationData(prepare(config.data, config.tokenizer), config)
    assert "data.batch_size=6 is not used: data.batch_tokens=90 replaces it" in caplog.text


def test_validation_has_each_pair_once(config: Config, tmp_path: Path) -> None:
    model, _ = fit(config, tmp_path, 8)
    for step in (4, 8):
        rows = [rows for at, rows in model.validated if at == step]
        assert [len(part) for part in rows] == [2, 2, 2, 1]
        assert sorted(itertools.chain(*rows)) == list(range(7))


@pytest.mark.parametrize(
    ("world", "accumulate", "tokens"), [(1, 1, None), (1, 3, 70), (3, 2, None), (3, 2, 20)]
)
def test_weighted_shares_give_the_mean_over_the_batch(
    config: Config, world: int, accumulate: int, tokens: int | None
) -> None:
    """Ranks and micro-batches share a batch; with `batch_tokens`, a rank may get no pair of a micro-batch."""
    if tokens:
        config.data.batch_tokens = tokens
    prepared = prepare(config.data, config.tokenizer)
    schedule = TranslationData(prepared, config).schedule
    update = 4
    gradient = 0.0
    for rank in range(world):
        micro = MicroBatches(prepared.train, schedule, accumulate, rank, world)
        for number in range(update * accumulate, (update + 1) * accumulate):
            batch = micro[number]
            assert tokens or len(batch.rows) == 6 // (world * accumulate)
            loss = batch.weight * (batch.target * batch.target_mask).sum()
            # Lightning divides by `accumulate`, and DDP averages over ranks.
            gradient += float(loss) / accumulate / world
    whole = [prepared.train[int(row)]["target_ids"].sum() for row in schedule.rows(update)]
    assert gradient == pytest.approx(np.mean(whole), rel=1e-6)


def test_loaders_do_not_change_the_random_state(config: Config) -> None:
    data = TranslationData(prepare(config.data, config.tokenizer), config)
    state = torch.get_rng_state()
    first, _ = (next(iter(loader)) for loader in (data.train_dataloader(), data.val_dataloader()))
    assert torch.equal(torch.get_rng_state(), state)
    assert first.rows.tolist() == data.schedule.rows(0).tolist()


def test_ranks_split_each_batch(config: Config) -> None:
    data = TranslationData(prepare(config.data, config.tokenizer), config)
    training, validation = [], []
    for rank in range(3):
        data.trainer = SimpleNamespace(  # type: ignore[assignment]
            accumulate_grad_batches=1,
            overfit_batches=0,
            global_step=11,
            global_rank=rank,
            world_size=3,
            strategy=SimpleNamespace(root_device=torch.device("cpu")),
        )
        training.append(next(iter(data.train_dataloader())).rows.tolist())
        validation += [batch.rows.tolist() for batch in data.val_dataloader()]
    rows = data.schedule.rows(11).tolist()
    assert training == [rows[0::3], rows[1::3], rows[2::3]]
    assert sorted(map(len, validation)) == [1, 2, 2, 2]
    assert sorted(itertools.chain(*validation)) == list(range(7))
