"""Callbacks of a training."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytorch_lightning as pl
import torch

from nmt.training.callbacks import Seeds


def test_every_batch_of_every_rank_has_random_numbers_of_its_own():
    module = pl.LightningModule()

    def draw(seed: int, batch: int, rank: int) -> float:
        trainer: Any = SimpleNamespace(
            fit_loop=SimpleNamespace(total_batch_idx=batch), global_rank=rank
        )
        Seeds(seed).on_train_batch_start(trainer, module, None, 0)
        return torch.rand(()).item()

    places = [(seed, batch, rank) for seed in (1, 2) for batch in (0, 1, 2) for rank in (0, 1)]
    drawn = {place: draw(*place) for place in places}
    assert len(set(drawn.values())) == len(places)
    assert all(draw(*place) == drawn[place] for place in reversed(places))
