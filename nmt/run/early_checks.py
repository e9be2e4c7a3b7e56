"""Checks at the start of a run, for errors that would otherwise appear after hours of work."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import torch
from omegaconf import DictConfig

from nmt.config import Config
from nmt.config.keys import is_within
from nmt.config.schema import to_containers
from nmt.config.targets import own_targets
from nmt.config.validation import check_set_name
from nmt.data.vocabulary import SPECIAL
from nmt.evaluation.scores import choose_scores, modules_of_scores
from nmt.evaluation.stress import joined_name
from nmt.models import build_model
from nmt.models.checkpoint_schema import MOST_SETTINGS
from nmt.models.optimizer import check_optimizer
from nmt.report.figures import check_own
from nmt.training.callbacks import make_callbacks
from nmt.training.loggers import check_logger
from nmt.training.trainer import lightning_arguments
from nmt.utils.commands import override_key
from nmt.utils.devices import check_accelerator
from nmt.utils.errors import InputError
from nmt.utils.untrusted import bounded


def check_storable(config: Config) -> None:
    """Refuses what no checkpoint and no results.json can hold; raises InputError naming the key."""
    bounded(to_containers(config), "configuration", MOST_SETTINGS)


def check_early(config: Config) -> None:
    """Refuses at the start what would be found missing after hours of work.

    Raises:
        InputError: as `check_anywhere`, and for an extra, a device, or a key of W&B that is not there.
    """
    check_anywhere(config)
    check_logger(config.logger)
    check_accelerator(config.trainer.accelerator)


def check_anywhere(config: Config) -> None:
    """Refuses what is wrong on every machine.

    Raises:
        InputError: as `check_storable`, and for an argument of Lightning's or a class that is not there.
    """
    check_storable(config)
    for name, length in itertools.product(config.data.test, config.stress.lengths):
        check_set_name(joined_name(name, length))
    choose_scores(config.evaluation.scores)
    lightning_arguments(config.trainer, Path())
    check_own(config.report)
    with torch.device("meta"):
        build_model(config, len(SPECIAL), len(SPECIAL))


def check_training(config: Config) -> None:
    """Refuses at the start what only a training uses.

    Raises:
        InputError: for an optimizer, schedule or callback that cannot be, and for weights of attention
            other than those that will be learnt.
    """
    if config.evaluation.attention != "as_trained":
        raise InputError(
            f"evaluation.attention={config.evaluation.attention}: a training is tested with the "
            "attention that it has learnt; type it to nmt.evaluate"
        )
    check_optimizer(config.optimizer, config.trainer.max_steps)
    make_callbacks(config)


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
