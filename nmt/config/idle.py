"""What is typed and would change nothing: refused, for whoever types a key expects it to do something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from omegaconf import DictConfig, OmegaConf

from nmt.config.keys import is_within
from nmt.config.overrides import GROUPS, NAMES, group_paths, parsed
from nmt.config.schema import BaselineConfig, Config, TranslateConfig, scoring_of
from nmt.utils.commands import override_key
from nmt.utils.errors import InputError

LISTS = ("callbacks",)  # groups of which several options may be chosen
SCHEDULES = "nmt.models.optimizer"
# Sections of a baseline besides those that its results state
BASELINE = (*BaselineConfig.sections, "logger", "trainer.progress")


class Idle(NamedTuple):
    """Keys, whether a configuration uses them, and what has it do so."""

    keys: tuple[str, ...]
    used: Callable[[DictConfig], bool]
    by: str


IN_ALL = (
    Idle(
        ("evaluation.top_k",),
        lambda config: config.evaluation.attention == "top_k",
        "evaluation.attention=top_k",
    ),
)
# Where the configuration is whole, not a checkpoint's with what is typed
IN_WHOLE = (
    Idle(
        tuple(f"data.{part}.{key}" for part in ("train", "in_domain") for key in ("alignment_base", "links")),
        lambda config: False,
        "data.valid and test sets",
    ),
    Idle(
        ("data.in_domain", "data.selection_target_words", "data.selection_order"),
        lambda config: config.data.selection == "axelrod",
        "data.selection=axelrod",
    ),
    Idle(
        ("data.batch_tokens",),
        lambda config: config.data.batch_by == "tokens",
        "data.batch_by=tokens",
    ),
    Idle(
        ("data.batch_size",),
        lambda config: config.data.batch_by == "sentences",
        "data.batch_by=sentences",
    ),
    Idle(
        ("optimizer.decay_from",),
        lambda config: config.optimizer.schedule._target_
        not in (f"{SCHEDULES}.constant", f"{SCHEDULES}.inverse_sqrt"),
        "schedule=linear",
    ),
    Idle(
        ("size.alignment", "model.alignment"),
        lambda config: scoring_of(config.model) != "nmt.layers.scoring.General",
        "a scoring other than general",
    ),
    Idle(("stress.pairs",), lambda config: bool(config.stress.lengths), "stress.lengths"),
    Idle(
        ("evaluation.alignment.statistical_aligner_pairs",),
        lambda config: config.evaluation.alignment.statistical_aligners,
        "evaluation.alignment.statistical_aligners=true",
    ),
    Idle(("report.live_bits",), lambda config: config.report.live is not False, "report.live=true"),
    Idle(
        tuple(f"logger.{key}" for key in ("mode", "project", "entity", "group", "tags", "log_checkpoints")),
        lambda config: config.logger.name == "wandb",
        "logger=wandb",
    ),
)  # fmt: skip
TRANSLATE = (
    Idle(
        ("scores", "detokenise"),
        lambda config: config.alignments != "json",
        "output that is not alignments=json, which holds both,",
    ),
)


def refuse_idle(config: DictConfig, overrides: Sequence[str]) -> None:
    """Refuses what was typed and changes nothing, such as a setting of what is switched off.

    Only what is typed can be told from defaults: a model without attention may leave the default of
    the group `attention` as it is, and stored configurations hold every key. Not for the jobs of a
    sweep, where a key may be meant for another job.

    Args:
        config: composed with `overrides`.
        overrides: as typed.

    Raises:
        InputError: naming the key.
    """
    schema = OmegaConf.get_type(config)
    assert isinstance(schema, type)
    whole = issubclass(schema, Config) and not schema.overridable and not config.get("resume")
    rules = [
        *IN_ALL,
        *(IN_WHOLE if whole else ()),
        *(TRANSLATE if schema is TranslateConfig else ()),
    ]
    for word in overrides:
        key = override_key(word)
        for rule in rules:
            if is_within(key, rule.keys) and not rule.used(config):
                raise InputError(f"{word}: only {rule.by} uses it; leave it out")
        _refuse_attention(config, key, word)
        if whole:
            _refuse_overruled(config, key, word)
        if schema is BaselineConfig and not _is_of_baseline(key):
            raise InputError(f"{word}: a phrase-based system does not use it; leave it out")


def refuse_lists(overrides: Sequence[str]) -> None:
    """Refuses several options of a group that is one choice; Hydra would merge them.

    Raises:
        InputError: naming the group.
    """
    for override in parsed(overrides):
        name = override.key_or_group
        if name in {*GROUPS, *NAMES} - set(LISTS) and isinstance(override.value(), list):
            raise InputError(f"{override.input_line}: one option of the group {name}, not a list")


def _refuse_attention(config: DictConfig, key: str, word: str) -> None:
    model = config.model
    about = key == "attention" or is_within(key, ["model.attention"])
    if about and model.alignment is None and word != "attention=none":
        raise InputError(f"{word}: {model.title} has no attention; leave it out")


def _refuse_overruled(config: DictConfig, key: str, word: str) -> None:
    """Refuses a default of another key, where that key has a value of its own."""
    for name in config.size:
        if key == f"size.{name}" and config.model[name] != config.size[name]:
            value = "null" if config.model[name] is None else config.model[name]
            raise InputError(f"{word}: model.{name} is {value} here; leave it out")
    section, _, name = key.partition(".")
    if section == "updates" and config.updates.get(name) != config.trainer.max_steps:
        raise InputError(
            f"{word}: trainer.max_steps is {config.trainer.max_steps} here; leave it out"
        )


def _is_of_baseline(key: str) -> bool:
    if key in NAMES:
        return True
    return all(is_within(path, BASELINE) for path in group_paths(key))
