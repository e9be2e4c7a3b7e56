"""Work of one's own on every rank of a Trainer, beside its loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytorch_lightning as pl
import torch
from torch import nn

Result = TypeVar("Result")


def on_every_rank(trainer: pl.Trainer, model: nn.Module, work: Callable[[], Result]) -> Result:
    """Runs `work` as `Trainer.test` runs its loop, and returns what it returns on this rank.

    The other ranks are started where they have not been. The model is in evaluation mode and on
    this rank's device, products are made in the trainer's precision, and no gradient is kept.
    """

    def prepared() -> Result:
        trainer.strategy.setup_environment()
        model.to(trainer.strategy.root_device)
        training = model.training
        model.eval()
        try:
            with torch.no_grad(), trainer.precision_plugin.test_step_context():
                return work()
        finally:
            model.train(training)

    launcher = trainer.strategy.launcher
    return prepared() if launcher is None else launcher.launch(prepared, trainer=trainer)
