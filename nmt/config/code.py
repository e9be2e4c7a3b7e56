"""Rejects untrusted targets (`_target_`) in a configuration, and reports errors of targets in one line."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import get_object

from nmt.config.changes import is_within
from nmt.config.schema import to_containers
from nmt.utils.errors import InputError, first_line

# Targets that any checkpoint may use: classes and schedules whose creation has no side effects. The
# pattern compares their names, because importing Lightning to compare the classes would take seconds.
ALLOWED = re.compile(
    r"nmt\.models\.([A-Z]\w*|optimizer\.(constant|inverse_sqrt|linear))"
    r"|nmt\.layers\.(\w+\.)?[A-Z]\w*"
    r"|torch\.optim\.(lr_scheduler\.)?[A-Z]\w*"
    r"|pytorch_lightning\.((callbacks|loggers)\.)?[A-Z]\w*",
    re.ASCII,
)


def user_code(config: Any) -> list[str]:
    """Returns the targets in the user's own configuration that `ALLOWED` does not match.

    The user trusts these targets, so callers pass them as `trust` when they read a checkpoint.
    """
    leaves = _leaves(to_containers(config))
    named = {str(value) for path, value in leaves if _names_code(path, value)}
    return sorted(name for name in named if not ALLOWED.fullmatch(name))


def find_own_code(config: Any) -> None:
    """Lets modules of the current folder be imported, if a configuration names or trusts the user's code.

    Installed packages come first on the path, so that no file of the folder replaces one of them.
    """
    if user_code(config) or getattr(config, "trust", []):
        append_current_folder()


def append_current_folder() -> None:
    """Puts the current folder at the end of the path on which Python finds modules."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def reject_untrusted_targets(stored: dict[str, Any], trust: Sequence[str]) -> None:
    """Rejects a stored configuration with a target that is neither `ALLOWED` nor in `trust`.

    Instantiating a target can run arbitrary code.

    Raises:
        InputError: if there is such a target, or an interpolation; the message names the key and its value.
    """
    for path, value in _leaves(stored):
        if isinstance(value, str) and "${" in value:
            raise InputError(f"{path}={value}: refused; a checkpoint may not hold interpolations")
        if _names_code(path, value) and not _is_trusted(path, str(value), trust):
            module = str(value).rpartition(".")[0]
            add = value if is_within(module, trust) else module or value
            raise InputError(
                f"{path}={value}: the checkpoint names code outside nmt, which is not run; "
                f"if you trust it, add trust=[{add}]"
            )


@contextmanager
def errors_naming(key: str) -> Iterator[None]:
    """Adds `key` to the message of an exception in the block.

    The block imports or calls a target. Hydra does not log the exception.

    Args:
        key: configuration key with its value, such as `optimizer._target_=torch.optim.Adm`.

    Raises:
        InputError: if the block raises any exception; the message has one line.
    """
    log = logging.getLogger("hydra.utils")
    before = log.disabled
    log.disabled = True
    try:
        yield
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ and isinstance(cause, InstantiationException | ImportError):
            cause = cause.__cause__
        name = "" if isinstance(cause, InputError | ValueError) else f"{type(cause).__name__}: "
        raise InputError(f"{key}: {name}{first_line(cause)}") from error
    finally:
        log.disabled = before


def _names_code(path: str, value: Any) -> bool:
    """Whether a value is a `_target_`, or the dotted name of a user-defined score."""
    own_score = re.fullmatch(r"(evaluation\.)?scores(\.\d+)?", path) and "." in str(value)
    return bool(own_score) or (path.rpartition(".")[2] == "_target_" and value is not None)


def _is_trusted(path: str, target: str, trust: Sequence[str]) -> bool:
    if target in trust or ALLOWED.fullmatch(target):
        return True
    if not is_within(target, trust):
        return False
    if path.startswith("evaluation.scores."):
        return True  # safe, since `score_of_name` rejects all but Score classes and instances
    with errors_naming(f"{path}={target}"):
        module = getattr(get_object(target), "__module__", None) or ""
    return is_within(module, trust)  # rejects `mine.os.system`, which `mine` only imports


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the dotted key and the value of each leaf of nested dictionaries and lists."""
    if isinstance(node, dict | list):
        children = node.items() if isinstance(node, dict) else enumerate(node)
        for name, child in children:
            yield from _leaves(child, f"{path}.{name}" if path else str(name))
    else:
        yield path, node
