"""The update rules and the schedules of their learning rate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from nmt.config.schema import OptimizerConfig


def make_optimizer(parameters: Iterable[Tensor], config: OptimizerConfig, updates: int) -> Any:
    """An optimizer and its schedule, stepped once an update, as Lightning takes them."""
    optimizer: torch.optim.Optimizer
    if config.name == "adadelta":
        optimizer = torch.optim.Adadelta(
            parameters, lr=config.lr, rho=config.rho, eps=config.eps, foreach=True
        )
    else:
        optimizer = torch.optim.Adam(
            parameters,
            lr=config.lr,
            betas=(config.beta1, config.beta2),
            eps=config.eps,
            fused=True,
        )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda update: learning_rate_share(update, config, updates)
    )
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def learning_rate_share(update: int, config: OptimizerConfig, updates: int) -> float:
    """Share of `config.lr` used for update `update` (from 0) of `updates`."""
    if update < config.warmup:
        return (update + 1) / config.warmup
    if config.schedule == "inverse_sqrt":
        return (max(config.warmup, 1) / max(update + 1, 1)) ** 0.5
    if config.schedule == "linear":
        start = max(config.decay_from * updates, config.warmup)
        return 1.0 if update < start else max(0.0, (updates - update) / (updates - start))
    return 1.0
