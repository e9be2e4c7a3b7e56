"""Refuses overrides that would have no effect, such as a setting of what is switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from omegaconf import DictConfig, OmegaConf

from nmt.config.keys import is_within
from nmt.config.overrides import GROUPS, NAMES, group_paths, parsed
from nmt.config.schema import (
    BaselineConfig,
    Config,
    EvaluateConfig,
    TranslateConfig,
    scoring_of,
)
from nmt.config.validation import GLOBAL
from nmt.utils.commands import override_key
from nmt.utils.errors import InputError

LISTS = ("callbacks",)  # groups of which several options may be chosen
WITHOUT_DECAY = ("nmt.models.optimizer.constant", "nmt.models.optimizer.inverse_sqrt")


class Idle(NamedTuple):
    """Keys, a condition under which they have no effect, and the words for it."""

    keys: tuple[str, ...]
    unused: Callable[[DictConfig], bool]
    why: str


def _compares_no_alignment_space(config: DictConfig) -> bool:
    everywhere = (config.model.attention or {}).get("_target_") in (None, GLOBAL)
    return everywhere and scoring_of(config.model) == "nmt.layers.scoring.General"


IN_ALL = (
    Idle(
        ("evaluation.top_k",),
        lambda config: config.evaluation.attention != "top_k",
        "without evaluation.attention=top_k",
    ),
)
IN_EVALUATE = (
    Idle(
        tuple(
            f"trainer.lightning.{name}"
            for name in ("fast_dev_run", "limit_train_batches", "limit_val_batches")
        ),
        lambda config: True,
        "without updates, of which an evaluation makes none",
    ),
)
IN_TRANSLATE = (
    Idle(
        ("scores", "detokenise"),
        lambda config: config.alignments == "json",
        "with alignments=json, whose objects hold both",
    ),
)
# for commands that compose the whole configuration, and do not take it from a checkpoint
IN_WHOLE = (
    Idle(
        tuple(
            f"data.{part}.{key}"
            for part in ("train", "in_domain")
            for key in ("alignment_base", "links")
        ),
        lambda config: True,
        "on training text",
    ),
    Idle(
        ("data.in_domain", "data.selection_target_words", "data.selection_order"),
        lambda config: config.data.selection != "axelrod",
        "without data.selection=axelrod",
    ),
    Idle(
        ("data.batch_tokens",),
        lambda config: config.data.batch_by != "tokens",
        "without data.batch_by=tokens",
    ),
    Idle(
        ("data.batch_size",),
        lambda config: config.data.batch_by != "sentences",
        "without data.batch_by=sentences",
    ),
    Idle(
        ("optimizer.decay_from",),
        lambda config: config.optimizer.schedule._target_ in WITHOUT_DECAY,
        "without schedule=linear",
    ),
    Idle(
        ("size.alignment", "model.alignment"), _compares_no_alignment_space, "with scoring=general"
    ),
    Idle(
        ("model.scoring.query_size", "model.scoring.key_size"),
        lambda config: True,
        "on a scoring, which is given the sizes of the model",
    ),
    Idle(
        ("model.init", "data.init", "model.projection_init_exponent"),
        lambda config: config.get("initial_checkpoint") is not None,
        "with initial_checkpoint, whose weights are taken",
    ),
    Idle(("stress.pairs",), lambda config: not config.stress.lengths, "without stress.lengths"),
    Idle(
        ("evaluation.alignment.statistical_aligner_pairs",),
        lambda config: not config.evaluation.alignment.statistical_aligners,
        "without evaluation.alignment.statistical_aligners=true",
    ),
    Idle(
        ("report.live_bits",), lambda config: config.report.live is False, "with report.live=false"
    ),
    Idle(
        tuple(
            f"logger.{key}"
            for key in (
                *("mode", "project", "entity", "run_name", "group", "tags", "notes"),
                "log_checkpoints",
            )
        ),
        lambda config: config.logger.name != "wandb",
        "without logger=wandb",
    ),
)


def refuse_idle(config: DictConfig, overrides: Sequence[str]) -> None:
    """Refuses what was typed and changes nothing, such as a setting of what is switched off.

    Only overrides are checked: defaults may have no effect, such as that of the group `attention` for a
    model without attention. Not to be called for jobs of a sweep, where a key may be meant for
    another job.

    Args:
        config: composed with `overrides`.
        overrides: as typed.

    Raises:
        InputError: naming the key.
    """
    for word, why in idle_words(config, overrides):
        raise InputError(f"{word}: {why}; leave it out")


def idle_words(config: DictConfig, overrides: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The overrides that change nothing, each with the reason; as `refuse_idle`."""
    schema = OmegaConf.get_type(config)
    assert isinstance(schema, type)
    whole = issubclass(schema, Config) and not schema.overridable and not config.get("resume")
    of_command = {EvaluateConfig: IN_EVALUATE, TranslateConfig: IN_TRANSLATE}
    rules = (*IN_ALL, *(IN_WHOLE if whole else ()), *of_command.get(schema, ()))
    for word in overrides:
        key = override_key(word)
        reasons = [f"no effect {rule.why}" for rule in rules if _is_idle(rule, config, key)]
        reasons += _idle_of_model(config, key, word)
        if whole:
            reasons += _overruled(config, key)
        if reasons:
            yield word, reasons[0]


def refuse_lists(overrides: Sequence[str]) -> None:
    """Refuses several options of a group that is one choice; Hydra would merge them.

    Raises:
        InputError: naming the group.
    """
    for override in parsed(overrides):
        name = override.key_or_group
        if name in {*GROUPS, *NAMES, "study"} - set(LISTS) and isinstance(override.value(), list):
            raise InputError(f"{override.input_line}: one option of the group {name}, not a list")


def is_of_baseline(key: str) -> bool:
    """Whether a phrase-based system uses a key or a group."""
    sections = (*BaselineConfig.sections, "logger", "trainer.progress")
    return key in NAMES or all(is_within(path, sections) for path in group_paths(key))


def _is_idle(rule: Idle, config: DictConfig, key: str) -> bool:
    return is_within(key, rule.keys) and rule.unused(config)


def _idle_of_model(config: DictConfig, key: str, word: str) -> Iterator[str]:
    about = key == "attention" or is_within(key, ["model.attention"])
    if about and config.model.alignment is None and word != "attention=none":
        yield f"{config.model.title} has no attention"


def _overruled(config: DictConfig, key: str) -> Iterator[str]:
    """The reason where the key is only a default of another key, which has a value of its own."""
    for name in config.size:
        if key == f"size.{name}" and config.model[name] != config.size[name]:
            yield f"model.{name} is {'null' if config.model[name] is None else config.model[name]} here"
    section, _, name = key.partition(".")
    if section == "updates" and name and config.updates.get(name) != config.trainer.max_steps:
        yield f"trainer.max_steps is {config.trainer.max_steps} here"
