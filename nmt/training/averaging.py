"""Stochastic weight averaging, counted in updates (Lightning's own counts epochs)."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import WeightAveraging
from torch import Tensor


class StochasticWeightAveraging(WeightAveraging):
    """The mean of the weights after some of the last updates (Izmailov et al., 2018).

    The mean is what is validated, stored as `state_dict` and tested; until the averaging starts it
    is the current weights. A resumed run averages from the update that it was started with, however
    many updates it goes on to.

    Args:
        start: update after which the weights are first taken; below 1 a share of the run's updates.
        every: updates between two times that they are taken.

    Raises:
        ValueError: where `start` is not above 0 or `every` is below 1.
    """

    def __init__(self, start: float = 0.75, every: int = 1) -> None:
        if start <= 0:
            raise ValueError(f"start={start}: must be above 0")
        if every < 1:
            raise ValueError(f"every={every}: must be at least 1")
        super().__init__(avg_fn=self._mean)
        self.start = start
        self.every = every
        self.first = 1  # update after which the weights are first taken

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit":
            first = self.start * trainer.max_steps if self.start < 1 else self.start
            self.first = max(1, round(first))
        super().setup(trainer, pl_module, stage)

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        """Whether the mean changes with an update: before the first time it follows the weights."""
        if step_idx is None:
            return False
        update = step_idx + 1
        return update <= self.first or (update - self.first) % self.every == 0

    def _mean(self, mean: Tensor, weights: Tensor, changes: Tensor) -> Tensor:
        """The mean after one more change, given how many were made before it."""
        taken = (changes - self.first + 2).clamp(min=1)  # these weights among them
        return mean + (weights - mean) / taken

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "first": self.first}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.first = state_dict["first"]
