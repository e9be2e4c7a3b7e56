"""Optimizers and learning-rate schedules from the classes that a configuration names.

A schedule is called with the optimizer, its own arguments, and those of `warmup`, `decay_from` and
`updates` (of the whole run) that its signature names; it is stepped once an update.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from hydra.utils import get_class, get_method
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau

from nmt.config import OptimizerConfig
from nmt.config.targets import named_by
from nmt.models.fused_adadelta import FusedAdadelta, is_fusible
from nmt.utils.errors import InputError

FASTEST = {  # of the ways that torch has of making the same update
    "torch.optim.Adadelta": {"foreach": True},
    "torch.optim.Adam": {"fused": True},
    "torch.optim.AdamW": {"fused": True},
}


def make_optimizer(
    parameters: Iterable[Tensor] | Iterable[dict[str, Any]], config: OptimizerConfig, updates: int
) -> Any:
    """An optimizer and its schedule, stepped once an update, as Lightning takes them.

    Takes tensors, or groups of them as torch does. A schedule changes all rates by the same factor.

    Raises:
        InputError: for a class that is not there, is none of its kind, or refuses its arguments.
    """
    target = config._target_
    # torch has tuples where a configuration can only have lists
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in config.options.items()}
    given: list[Any] = list(parameters)
    tensors = [p for each in given for p in (each["params"] if isinstance(each, dict) else [each])]
    fused = target == "torch.optim.Adadelta" and is_fusible(tensors, options)
    options = ({} if fused else FASTEST.get(target, {})) | options
    with named_by(f"optimizer._target_={target}"):
        optimizer_class = get_class(target)
        taken = inspect.signature(optimizer_class).parameters
    if not any(each.kind is each.VAR_KEYWORD for each in taken.values()):
        unknown = [f"optimizer.options.{name}" for name in config.options if name not in taken]
        if unknown:
            raise InputError(
                f"{', '.join(unknown)}: {target} takes no such argument; "
                f"to leave out, type {' '.join(f'~{name}' for name in unknown)}"
            )
    with named_by(f"optimizer._target_={target}"):
        make = FusedAdadelta if fused else optimizer_class
        optimizer = make(given, lr=config.lr, **options)
    if not isinstance(optimizer, Optimizer):
        raise InputError(f"optimizer._target_={target}: not a torch.optim.Optimizer")
    schedule = make_learning_rate_schedule(optimizer, config, updates)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def make_learning_rate_schedule(
    optimizer: Optimizer, config: OptimizerConfig, updates: int
) -> LRScheduler:
    """The schedule of a learning rate; raises InputError as `make_optimizer`."""
    target = config.schedule.get("_target_")
    key = f"optimizer.schedule._target_={target}"
    own = {name: value for name, value in config.schedule.items() if name != "_target_"}
    known = {"warmup": config.warmup, "decay_from": config.decay_from, "updates": updates}
    with named_by(key):
        make: Callable[..., Any] = get_method(str(target))
        named = inspect.signature(make).parameters
    known = {name: value for name, value in known.items() if name in named}
    with named_by(key):
        schedule = make(optimizer, **known, **own)
    if not isinstance(schedule, LRScheduler) or isinstance(schedule, ReduceLROnPlateau):
        raise InputError(f"{key}: not a schedule that is stepped by the number of updates alone")
    if config.warmup and "warmup" not in named:
        raise InputError(f"optimizer.warmup={config.warmup}: {target} has no warm-up; leave it 0")
    return schedule


def check_optimizer(config: OptimizerConfig, updates: int) -> None:
    """Refuses, before there is a model, what `make_optimizer` would, or what could not make updates."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.zeros(1)
    made = make_optimizer([parameter], config, updates)
    if not config.options.get("capturable"):  # which torch takes on a GPU alone
        with named_by(f"optimizer._target_={config._target_}"):
            made["optimizer"].step(lambda: torch.zeros(()))  # Lightning gives a closure, too
    schedule = made["lr_scheduler"]["scheduler"]
    ends = getattr(schedule, "total_steps", updates)
    if ends < updates:
        raise InputError(
            f"optimizer.schedule.total_steps={ends}: must be at least trainer.max_steps={updates}"
        )
    key = f"optimizer.schedule._target_={config.schedule.get('_target_')}"
    with named_by(key), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a schedule that is stepped before its optimizer
        schedule.step()


def constant(optimizer: Optimizer, warmup: int = 0) -> LambdaLR:
    """`optimizer.lr` after warm-up."""
    return _warm(optimizer, warmup, lambda update: 1.0)


def linear(
    optimizer: Optimizer, updates: int, warmup: int = 0, decay_from: float = 0.0
) -> LambdaLR:
    """In a line from `optimizer.lr` to 0 at the last update, once `decay_from` of them are made."""
    start = max(decay_from * updates, warmup)

    def share(update: int) -> float:
        return 1.0 if update < start else max(0.0, (updates - update) / (updates - start))

    return _warm(optimizer, warmup, share)


def inverse_sqrt(optimizer: Optimizer, warmup: int = 0) -> LambdaLR:
    """`optimizer.lr` at the end of warm-up, then falling as 1 / sqrt(update)."""
    return _warm(optimizer, warmup, lambda update: (max(warmup, 1) / max(update + 1, 1)) ** 0.5)


def _warm(optimizer: Optimizer, warmup: int, share: Callable[[int], float]) -> LambdaLR:
    """`share` of the learning rate by the number of the update, from 0; before it, a rise from 0."""
    return LambdaLR(optimizer, lambda n: (n + 1) / warmup if n < warmup else share(n))
