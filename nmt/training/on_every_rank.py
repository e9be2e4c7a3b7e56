"""Runs a function on every rank outside of the Trainer's loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytorch_lightning as pl
import torch
from torch import nn

Result = TypeVar("Result")


def on_every_rank(trainer: pl.Trainer, model: nn.Module, work: Callable[[], Result]) -> Result:
    """Runs `work` on every rank in the same way as `Trainer.test`, and returns this rank's result.

    Launches the other ranks if necessary. Moves the model to this rank's device and sets it to evaluation
    mode. `work` runs with the trainer's precision and without gradients.
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
