"""Which code a checkpoint may name: a checkpoint is data, possibly from a stranger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hydra.utils import get_object

from nmt.config.keys import is_within
from nmt.config.targets import ALLOWED, named_by
from nmt.utils.errors import InputError


def reject_untrusted_targets(stored: dict[str, Any], trust: Sequence[str]) -> None:
    """Refuses a stored configuration that names code that is neither `ALLOWED` nor of `trust`.

    Instantiating a target would run its code, and a function could write a file.

    Args:
        stored: as dictionaries and lists.
        trust: modules, or classes and functions by their full name.

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
    if target in trust or ALLOWED.fullmatch(target):
        return
    module = target.rpartition(".")[0]
    if is_within(target, trust):
        with named_by(f"{path}={target}"):
            home = getattr(get_object(target), "__module__", None) or ""
        if is_within(home, trust):  # `mine.os.system` starts with mine, but is not of it
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
