"""Builds the LightningModule of a configuration; only classes of `nmt` and of trusted modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hydra.utils import get_class, get_object

from nmt.config import Config
from nmt.config.keys import is_within
from nmt.config.targets import TRUSTED, named_by
from nmt.utils.errors import InputError

if TYPE_CHECKING:
    from nmt.models.base import Translator


def build_model(config: Config, source_size: int, target_size: int) -> Translator:
    """The LightningModule of a configuration, freshly initialised (seed before calling).

    Raises:
        InputError: where a class that the configuration names cannot be found or built.
    """
    target = config.model._target_
    with named_by(f"model._target_={target}"):
        model_class: type[Translator] = get_class(target)
    return model_class(
        config.model,
        source_size,
        target_size,
        optimizer=config.optimizer,
        updates=config.trainer["max_steps"],
        reverse_source=config.data.reverse_source,
    )


def reject_untrusted_targets(stored: dict[str, Any], trust: Sequence[str]) -> None:
    """Refuses a stored configuration that names code outside `TRUSTED` and the modules of `trust`.

    A checkpoint is data, possibly from a stranger: instantiating a target it names would run code.

    Raises:
        InputError: naming the key, the target, and what to type to allow it.
    """
    for path, value in _leaves(stored, ""):
        if isinstance(value, str) and "${" in value:
            raise InputError(
                f"{path}: the checkpoint's configuration holds an interpolation, {value}"
            )
        if path.rpartition(".")[2] != "_target_" or value is None:
            continue
        allowed = is_within(value, (*TRUSTED, *trust))
        if allowed:
            with named_by(f"{path}={value}"):
                home = getattr(get_object(value), "__module__", None) or ""
            # `nmt.cli.command.os.system` starts with nmt, but is not of it
            allowed = is_within(home, ("nmt", "torch.optim", "pytorch_lightning", *trust))
        if not allowed:
            raise InputError(
                f"{path}={value}: the checkpoint names code outside nmt, which is not run; "
                f"if you trust it, add trust=[{value.rpartition('.')[0] or value}]"
            )


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict | list):
        children = node.items() if isinstance(node, dict) else enumerate(node)
        for name, child in children:
            yield from _leaves(child, f"{path}.{name}" if path else str(name))
    else:
        yield path, node
