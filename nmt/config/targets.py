"""Code that a configuration names (`_target_`, scores): what a checkpoint may name, and its errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import get_object

from nmt.config.keys import is_within
from nmt.config.schema import Config, to_containers
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


def own_code(config: Config) -> list[str]:
    """Code that a configuration names that is not `ALLOWED` in every checkpoint, as `trust` does.

    Whoever typed a configuration, or trained with it, trusts it.
    """
    named = {
        str(value) for path, value in _leaves(to_containers(config)) if _is_target(path, value)
    }
    modules = [name.rpartition(".")[0] for name in config.evaluation.scores or () if "." in name]
    return [*sorted(name for name in named if not ALLOWED.fullmatch(name)), *modules]


def reject_untrusted_targets(stored: dict[str, Any], trust: Sequence[str]) -> None:
    """Refuses a stored configuration that names code that is neither `ALLOWED` nor of `trust`.

    Instantiating a target would run its code, and a function could write a file.

    Args:
        stored: as dictionaries and lists.
        trust: modules, or classes and functions by their full name.

    Raises:
        InputError: naming the key, the target, and what to type to allow it.
    """
    for path, value in _leaves(stored):
        if isinstance(value, str) and "${" in value:
            raise InputError(
                f"{path}: the checkpoint's configuration holds an interpolation, {value}"
            )
        if _is_target(path, value) and not _is_trusted(path, str(value), trust):
            module = str(value).rpartition(".")[0]
            add = value if is_within(module, trust) else module or value
            raise InputError(
                f"{path}={value}: the checkpoint names code outside nmt, which is not run; "
                f"if you trust it, add trust=[{add}]"
            )


def reject_untrusted_scores(stored: Config, trust: Sequence[str]) -> None:
    """Refuses scores of modules outside nmt that are not of `trust`; raises InputError."""
    for name in stored.evaluation.scores or ():
        if "." in name and not is_within(name, trust):
            raise InputError(
                f"evaluation.scores: the checkpoint names code outside nmt, {name}, which is not run; "
                f"if you trust it, add trust=[{name.rpartition('.')[0]}], or choose scores yourself"
            )


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
    """One line on an error of code that a configuration names, without Hydra's lines around it."""
    while error.__cause__ and (
        isinstance(error, InstantiationException) or str(error).lstrip().startswith("Error loading")
    ):
        error = error.__cause__
    line = first_line(error)
    clear = isinstance(
        error, ValueError | TypeError | ImportError | AttributeError | RuntimeError | InputError
    )
    return line if clear else f"{type(error).__name__}: {line}"


def _is_target(path: str, value: Any) -> bool:
    return path.rpartition(".")[2] == "_target_" and value is not None


def _is_trusted(path: str, target: str, trust: Sequence[str]) -> bool:
    if target in trust or ALLOWED.fullmatch(target):
        return True
    if not is_within(target, trust):
        return False
    with named_by(f"{path}={target}"):
        home = getattr(get_object(target), "__module__", None) or ""
    return is_within(home, trust)  # `mine.os.system` starts with mine, but is not of it


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested dictionaries and lists, by their dotted keys."""
    if isinstance(node, dict | list):
        children = node.items() if isinstance(node, dict) else enumerate(node)
        for name, child in children:
            yield from _leaves(child, f"{path}.{name}" if path else str(name))
    else:
        yield path, node
