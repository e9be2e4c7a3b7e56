"""Runs a function on every rank outside of the Trainer's loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytorch_lightning as pl
import torch
from torch import nn

Result = TypeVar("Result")


def on_every_rank(trainer: pl.Trainer, model: nn.Module, work: Callable[[], Result]) -> Result:
    """Runs `work` on every rank, as `Trainer.test` runs its loop. Returns the result of this rank.

    Launches the other ranks if necessary. The model is on this rank's device and in evaluation mode,
    matrix products run in the trainer's precision, and no gradients are computed.
    """

    def run() -> Result:
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
    return run() if launcher is None else launcher.launch(run, trainer=trainer)
