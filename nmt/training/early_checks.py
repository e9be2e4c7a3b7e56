"""Checks at the start of a run, for errors that would otherwise appear after hours of work."""

from __future__ import annotations

from collections.abc import Sequence

from omegaconf import DictConfig

from nmt.config import Config
from nmt.config.keys import is_within
from nmt.config.schema import to_containers
from nmt.config.targets import own_targets
from nmt.config.validation import check_set_name
from nmt.evaluation.scores import choose_scores, modules_of_scores
from nmt.evaluation.stress import joined_name, position_name
from nmt.training.trainer import trainer_arguments
from nmt.utils.commands import override_key
from nmt.utils.devices import check_accelerator
from nmt.utils.errors import InputError


def check_early(config: Config) -> None:
    """Refuses at the start what would be found missing after hours of work.

    Raises:
        InputError: for a score, a set's name, an extra or a device.
    """
    for name in config.data.test:
        for length in config.stress.lengths:
            check_set_name(joined_name(name, length))
        for size in config.stress.positions:
            check_set_name(position_name(name, size))
    choose_scores(config.evaluation.scores)
    check_accelerator(config.trainer["accelerator"])
    trainer_arguments(config)


def own_code(config: DictConfig | Config) -> list[str]:
    """Code that a configuration names, as `trust` does; whoever typed or trained it trusts it."""
    return [*own_targets(to_containers(config)), *modules_of_scores(config.evaluation.scores)]


def refuse_untrusted_scores(config: DictConfig, typed: Sequence[str], trust: Sequence[str]) -> None:
    """Refuses scores of modules outside nmt that only a stored configuration names.

    Args:
        config: the stored configuration with what was typed.
        typed: overrides of the command line; scores that stand there may be imported.
        trust: modules that may be.

    Raises:
        InputError: naming the module.
    """
    if any(override_key(word) == "evaluation.scores" for word in typed):
        return
    for module in modules_of_scores(config.evaluation.scores):
        if not is_within(module, trust):
            raise InputError(
                f"evaluation.scores: the checkpoint names code outside nmt, {module}, which is not"
                f" run; if you trust it, add trust=[{module}], or choose scores yourself"
            )
