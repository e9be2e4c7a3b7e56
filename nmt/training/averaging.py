"""Callbacks that average weights without making the CPU wait for the device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EMAWeightAveraging, WeightAveraging
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Averaging(WeightAveraging):
    """Lightning's weight averaging, with a weight for the current weights that subclasses give (`share`)."""

    @abstractmethod
    def share(self, taken: int) -> float:
        """Weight of the current weights in the new average, above 0 and at most 1.

        Args:
            taken: how often the weights were taken before; the first time the share is 1.
        """

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit":
            device = self._device or pl_module.device
            self._average_model = _CountedOnTheHost(pl_module, device, self.share)


class _CountedOnTheHost(AveragedModel):
    """PyTorch's averaged model with its count of updates on the CPU.

    PyTorch keeps the count on the device, and the CPU waits for it at every update.
    """

    def __init__(
        self,
        model: pl.LightningModule,
        device: torch.device | int,
        share: Callable[[int], float],
    ) -> None:
        super().__init__(model, device=device, use_buffers=True)
        self.n_averaged = torch.tensor(0)
        self.share = share

    def update_parameters(self, model: pl.LightningModule) -> None:  # type: ignore[override]
        averages, weights = [], []
        pairs = (chain(each.parameters(), each.buffers()) for each in (self.module, model))
        for average, current in zip(*pairs, strict=True):
            if average.is_floating_point():
                averages.append(average.detach())
                weights.append(current.detach())
            else:
                average.copy_(current)
        move = get_ema_multi_avg_fn(decay=1 - self.share(int(self.n_averaged)))
        move(averages, weights, self.n_averaged)
        self.n_averaged += 1


class ExponentialMovingAverage(Averaging, EMAWeightAveraging):
    """Lightning's exponential moving average of the weights, with the same arguments.

    The average is what is validated, stored as `state_dict` and tested.
    """

    def __init__(self, decay: float = 0.999, **options: Any) -> None:
        super().__init__(decay=decay, **options)
        self.decay = decay

    def share(self, taken: int) -> float:
        return 1 - self.decay if taken else 1.0


class StochasticWeightAveraging(Averaging):
    """The mean of the weights after some of the last updates (Izmailov et al., 2018).

    Counted in updates (Lightning's own counts epochs). The mean is what is validated, stored as
    `state_dict` and tested; until the averaging starts it is the current weights. A resumed run
    averages from the update that it was started with, however many updates it goes on to.

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
        super().__init__()
        self.start = start
        self.every = every
        self.first = 1  # update after which the weights are first taken

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        if stage == "fit":
            first = self.start * trainer.max_steps if self.start < 1 else self.start
            self.first = max(1, round(first))
        super().setup(trainer, pl_module, stage)

    def should_update(self, step_idx: int | None = None, epoch_idx: int | None = None) -> bool:
        """Whether the mean is updated; until the averaging starts it is set to the current weights."""
        if step_idx is None:
            return False
        update = step_idx + 1
        return update <= self.first or (update - self.first) % self.every == 0

    def share(self, taken: int) -> float:
        return 1 / max(1, taken - self.first + 2)  # these weights among them

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "first": self.first}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.first = state_dict["first"]
