"""Which code a checkpoint may name: a checkpoint is data, possibly from a stranger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from hydra.utils import get_object
from torch import nn

from nmt.config.keys import is_within
from nmt.config.targets import TRUSTED, named_by
from nmt.utils.errors import InputError

SCHEDULES = tuple(f"nmt.models.optimizer.{name}" for name in ("constant", "inverse_sqrt", "linear"))

# Classes that these packages export: theirs without importing Lightning, which takes seconds.
EXPORTED = re.compile(r"(nmt\.models|pytorch_lightning(\.(callbacks|loggers))?)\.[A-Z]\w*")


def reject_untrusted_targets(stored: dict[str, Any], trust: Sequence[str]) -> None:
    """Refuses a stored configuration that names code outside `TRUSTED` and the modules of `trust`.

    Instantiating a target would run its code. Of `nmt` itself only modules of networks are accepted,
    for a function could write a file.

    Raises:
        InputError: naming the key, the target, and what to type to allow it.
    """
    for path, value in _leaves(stored, ""):
        if isinstance(value, str) and "${" in value:
            raise InputError(
                f"{path}: the checkpoint's configuration holds an interpolation, {value}"
            )
        if path.rpartition(".")[2] == "_target_" and value is not None:
            _refuse_stranger(path, str(value), trust)


def _refuse_stranger(path: str, target: str, trust: Sequence[str]) -> None:
    if target in trust or target in SCHEDULES or EXPORTED.fullmatch(target):
        return
    module = target.rpartition(".")[0]
    if is_within(target, (*TRUSTED, *trust)):
        with named_by(f"{path}={target}"):
            code = get_object(target)
        # `nmt.cli.command.os.system` starts with nmt, but is not of it
        home = getattr(code, "__module__", None) or ""
        network = isinstance(code, type) and issubclass(code, nn.Module)
        if is_within(home, ("torch.optim", "pytorch_lightning", *trust)) or (
            is_within(home, ["nmt"]) and network
        ):
            return
    add = target if is_within(module, trust) else module or target
    raise InputError(
        f"{path}={target}: the checkpoint names code outside nmt, which is not run; "
        f"if you trust it, add trust=[{add}]"
    )


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict | list):
        children = node.items() if isinstance(node, dict) else enumerate(node)
        for name, child in children:
            yield from _leaves(child, f"{path}.{name}" if path else str(name))
    else:
        yield path, node
