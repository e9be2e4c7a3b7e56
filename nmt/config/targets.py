"""Code named by a configuration (`_target_`): the classes allowed in a checkpoint, and error messages."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hydra.errors import InstantiationException

from nmt.utils.errors import InputError, first_line

# Code that any checkpoint may name: classes and schedules without an effect when they are made. Names
# are compared without an import, which takes seconds for Lightning.
ALLOWED = re.compile(
    r"nmt\.models\.([A-Z]\w*|optimizer\.(constant|inverse_sqrt|linear))"
    r"|nmt\.layers\.(\w+\.)?[A-Z]\w*"
    r"|torch\.optim\.(lr_scheduler\.)?[A-Z]\w*"
    r"|pytorch_lightning\.((callbacks|loggers)\.)?[A-Z]\w*",
    re.ASCII,
)


def own_targets(config: Any) -> list[str]:
    """Code that a configuration names that is not `ALLOWED` in every checkpoint.

    Whoever typed a configuration, or trained with it, trusts it.

    Args:
        config: as dictionaries and lists.
    """
    return sorted({target for target in _targets(config) if not ALLOWED.fullmatch(target)})


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


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("_target_"):
            yield str(node["_target_"])
        for child in node.values():
            yield from _targets(child)
    elif isinstance(node, list):
        for child in node:
            yield from _targets(child)
