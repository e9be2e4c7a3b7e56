"""Code named by a configuration (`_target_`): the classes allowed in a checkpoint, and error messages."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hydra.errors import InstantiationException

from nmt.utils.errors import InputError, first_line

# Classes outside nmt.models and nmt.layers that any checkpoint may name: they have no side effects,
# whatever their arguments are.
LISTED = frozenset(
    f"{module}.{name}"
    for module, names in {
        "torch.optim": "ASGD Adadelta Adagrad Adam AdamW Adamax NAdam RAdam RMSprop Rprop SGD",
        "torch.optim.lr_scheduler": "ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts "
        "ExponentialLR LinearLR MultiStepLR OneCycleLR PolynomialLR StepLR",
        "nmt.models.optimizer": "constant inverse_sqrt linear",
        "nmt.training.averaging": "ExponentialMovingAverage StochasticWeightAveraging",
        "pytorch_lightning.callbacks": "DeviceStatsMonitor EMAWeightAveraging EarlyStopping "
        "LearningRateMonitor",
    }.items()
    for name in names.split()
)


# types that a configuration can have and an argument can be declared to have
KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    NoneType: "null",
}


def own_targets(config: Any) -> list[str]:
    """Code outside `nmt` that a configuration names, but for what is `LISTED`.

    Whoever typed a configuration, or trained with it, trusts it.

    Args:
        config: as dictionaries and lists.
    """
    others = {target for target in _targets(config) if target not in LISTED}
    return sorted(name for name in others if not name.startswith("nmt."))


@contextmanager
def named_by(key: str) -> Iterator[None]:
    """Inside, code that a configuration names is located or called; what it raises names `key`.

    Hydra also logs what it cannot locate, over several lines: not inside.

    Args:
        key: of the configuration, with its value, such as `optimizer._target_=torch.optim.Adm`.

    Raises:
        InputError: in one line, for every exception.
    """
    log = logging.getLogger("hydra.utils")
    before, log.disabled = log.disabled, True
    try:
        yield
    except Exception as error:
        raise InputError(f"{key}: {reason(error)}") from error
    finally:
        log.disabled = before


def reason(error: BaseException) -> str:
    """One line on an error raised by code that a configuration names, or on why it was not found."""
    while isinstance(error, InstantiationException) and error.__cause__:
        error = error.__cause__  # Hydra wraps it in lines on Hydra
    text = str(error).strip()
    if text.startswith("Error loading"):
        cause = error.__cause__
        if cause is None or isinstance(cause, ModuleNotFoundError | AttributeError):
            named = f" ({first_line(cause)})" if cause else ""
            return f"there is no such class or function{named}; is its module importable from here?"
        return f"its module cannot be imported ({type(cause).__name__}: {first_line(cause)})"
    line = first_line(error)
    clear = isinstance(error, ValueError | TypeError | ImportError | RuntimeError | InputError)
    return line if clear or line == type(error).__name__ else f"{type(error).__name__}: {line}"


def check_types(where: str, code: Any, given: Mapping[str, Any]) -> None:
    """Refuses arguments of another type than a class, or a function, declares them to have.

    Where code does not look at them itself, `patience=abc` fails at its first use, and
    `detect_anomaly=no_thanks` counts as true. What is declared to have types other than those of
    `KINDS` is passed over, and so are null, objects to be made, and what is not declared.

    Args:
        where: key of the section that the arguments are in.

    Raises:
        InputError: naming the key, its value and the type.
    """
    classes = reversed(code.__mro__) if isinstance(code, type) else ()
    makers = [vars(each)["__init__"] for each in classes if "__init__" in vars(each)] or [code]
    declared: dict[str, Any] = {}
    for maker in makers:
        with suppress(Exception):  # names that only a type checker knows
            declared |= get_type_hints(maker)
    for name, value in given.items():
        hint = declared.get(name)
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        whole = float in kinds and type(value) is int
        fits = value is None or whole or type(value) in kinds
        if fits or isinstance(value, dict) or not KINDS.keys() >= {*kinds}:
            continue
        accepted = " or ".join(text for kind, text in KINDS.items() if kind in kinds)
        raise InputError(f"{where}.{name}={value}: must be {accepted}")


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("_target_"):
            yield str(node["_target_"])
        for child in node.values():
            yield from _targets(child)
    elif isinstance(node, list):
        for child in node:
            yield from _targets(child)
