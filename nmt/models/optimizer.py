"""Creates optimizers and learning-rate schedules from the classes or functions that a configuration names.

The function that creates a schedule is called with the optimizer and the arguments in `optimizer.schedule`. If it
has a parameter `updates`, it also gets the planned number of updates. The schedule steps once per update.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch
from hydra.utils import get_class, get_method
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from nmt.config.code import errors_naming
from nmt.config.schema import OptimizerConfig

FASTEST = {  # options that choose torch's fastest implementation of an optimizer
    "torch.optim.Adadelta": {"foreach": True},
    "torch.optim.Adam": {"fused": True},
    "torch.optim.AdamW": {"fused": True},
}


def make_optimizer(
    network: nn.Module, config: OptimizerConfig, updates: int, kernels: bool = False
) -> Any:
    """Returns an optimizer and its learning-rate schedule, in Lightning's format.

    The optimizer has two groups of parameters: word embeddings (`torch.nn.Embedding`) with the learning rate
    `lr * embedding_factor`, and all others with `lr`. A network without embeddings has one group.

    With `kernels`, `FusedAdadelta` replaces `torch.optim.Adadelta` if it supports the parameters and
    options.

    Raises:
        InputError: if a class does not exist or does not accept its arguments.
    """
    target = config._target_
    # torch expects tuples, and a configuration has only lists
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in config.options.items()}
    embeddings = [m.weight for m in network.modules() if isinstance(m, nn.Embedding)]
    others = [p for p in network.parameters() if all(p is not each for each in embeddings)]
    rates = (others, config.lr), (embeddings, config.lr * config.embedding_factor)
    groups = [{"params": tensors, "lr": lr} for tensors, lr in rates if tensors]
    fused = (
        kernels and target == "torch.optim.Adadelta" and has_kernel(others + embeddings, options)
    )
    options = FASTEST.get(target, {}) | options
    with errors_naming(f"optimizer._target_={target}"):
        make = get_class("nmt.fused.gpu.adadelta.FusedAdadelta" if fused else target)
        optimizer = make(groups, lr=config.lr, **options)
    schedule = make_schedule(optimizer, config, updates)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def replace_optimizer(checkpoint: dict[str, Any], made: dict[str, Any], same_class: bool) -> None:
    """Replaces the optimizer and schedule in a checkpoint by `made`, a result of `make_optimizer`.

    The new schedule takes as many steps as the checkpoint has updates. With `same_class`, the new optimizer
    gets the stored state.
    """
    schedule = made["lr_scheduler"]["scheduler"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of schedule steps without optimizer steps
        for _ in range(checkpoint["global_step"]):
            schedule.step()
    [before] = checkpoint["optimizer_states"]
    state = made["optimizer"].state_dict()
    if same_class:
        state["state"] = before["state"]
    checkpoint["optimizer_states"] = [state]
    checkpoint["lr_schedulers"] = [schedule.state_dict()]


def has_kernel(parameters: list[Tensor], options: dict[str, Any]) -> bool:
    """Whether `FusedAdadelta` supports the parameters and options."""
    return (
        all(isinstance(p, Tensor) for p in parameters)
        and all(p.dtype == torch.float32 and p.is_contiguous() for p in parameters)
        and len({p.device for p in parameters}) == 1
        and options.keys() <= {"rho", "eps", "weight_decay"}
    )


def make_schedule(optimizer: Optimizer, config: OptimizerConfig, updates: int) -> LRScheduler:
    """Returns the learning-rate schedule; raises InputError if it cannot be created."""
    own = dict(config.schedule)
    target = own.pop("_target_", None)
    with errors_naming(f"optimizer.schedule._target_={target}"):
        make: Callable[..., LRScheduler] = get_method(str(target))
        if "updates" in inspect.signature(make).parameters:
            own["updates"] = updates
        return make(optimizer, **own)


def constant(optimizer: Optimizer, warmup: int = 0) -> LambdaLR:
    """Keeps the learning rate at `optimizer.lr` after warm-up."""
    return _warm(optimizer, warmup, lambda update: 1.0)


def linear(
    optimizer: Optimizer, updates: int, warmup: int = 0, decay_from: float = 0.0
) -> LambdaLR:
    """Keeps `optimizer.lr` for the first fraction `decay_from` of the updates, then decays linearly to 0 at the end."""
    if updates < 1:
        raise ValueError("needs the number of updates; set trainer.max_steps or trainer.max_epochs")
    start = max(decay_from * updates, warmup)

    def share(update: int) -> float:
        return 1.0 if update < start else max(0.0, (updates - update) / (updates - start))

    return _warm(optimizer, warmup, share)


def inverse_sqrt(optimizer: Optimizer, warmup: int = 0) -> LambdaLR:
    """Reaches `optimizer.lr` at the end of warm-up, then decays as 1 / sqrt(update)."""
    return _warm(optimizer, warmup, lambda update: (max(warmup, 1) / max(update + 1, 1)) ** 0.5)


def _warm(optimizer: Optimizer, warmup: int, share: Callable[[int], float]) -> LambdaLR:
    """Warms up linearly for `warmup` updates, then multiplies `optimizer.lr` by `share(update)`."""
    return LambdaLR(optimizer, lambda n: (n + 1) / warmup if n < warmup else share(n))
