"""Builds checked configurations; every error message names the key, its value and the remedy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config.commands import CheckpointConfig, TrainConfig
from nmt.config.keys import entries, problem
from nmt.config.schema import Config, DataConfig, TextConfig, class_name, scoring_of
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import check_set_name

Section = TypeVar("Section")


def load(composed: Any) -> Any:
    """Checks a composed configuration and converts it to the dataclasses of its schema.

    Raises:
        InputError: if a value is out of bounds or contradicts another value.
        OmegaConfBaseException: if a value is missing, or if an interpolation cannot be resolved.
    """
    config = OmegaConf.to_object(composed)
    if not dataclasses.is_dataclass(config):
        raise InputError(
            "--config-name: not a configuration of this command; to repeat a run, type the overrides "
            "listed in its .hydra/overrides.yaml"
        )
    if isinstance(config, Config):
        type_texts(config.data)
        check_together(config)
    # Config groups may add training keys that the schema of an evaluation does not declare.
    # `apply_overrides` rejects overrides of such keys.
    check_bounds(config, closed=not isinstance(config, CheckpointConfig))
    return config


def load_plain(values: Mapping[str, Any]) -> TrainConfig:
    """Checks a training configuration of plain dictionaries and lists.

    Raises:
        InputError: if a value has the wrong type or is out of bounds.
    """
    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(TrainConfig), dict(values)))
    assert isinstance(config, TrainConfig)
    type_texts(config.data)
    check_bounds(config)
    return config


def type_texts(data: DataConfig) -> None:
    """Converts `data.train`, `data.valid` and each test set to `TextConfig`; raises InputError for a wrong key."""
    data.train, data.valid = (
        section(TextConfig, getattr(data, part), f"data.{part}.") for part in ("train", "valid")
    )
    data.test = {
        check_set_name(str(name)): section(TextConfig, text, f"data.test.{name}.")
        for name, text in data.test.items()
    }


def section(schema: type[Section], values: Any, where: str = "") -> Section:
    """Checks a section of a configuration and returns it as an object of `schema`.

    Raises:
        InputError: if a key or value is wrong; the message names the key, prefixed with `where`.
    """
    try:
        checked = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(schema), values))
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        name = getattr(error, "full_key", None) or ""
        known = ", ".join(path for path, _ in entries(schema))
        raise InputError(f"{where}{name}: {first_line(error)}; the keys are {known}") from error
    assert isinstance(checked, schema)
    check_bounds(checked, where)
    return checked


def check_bounds(config: Any, where: str = "", closed: bool = True) -> None:
    """Raises InputError for values out of bounds and, if `closed`, for unknown keys."""
    fields = dataclasses.fields(config)
    if closed and (unknown := vars(config).keys() - {entry.name for entry in fields}):
        name = f"{where}{min(unknown)}"
        raise InputError(f"{name}: no such key; docs/configuration.md lists all keys")
    for entry in fields:
        name = f"{where}{entry.name}"
        value = getattr(config, entry.name)
        if dataclasses.is_dataclass(value):
            check_bounds(value, f"{name}.", closed)
        elif wrong := problem(value, entry.metadata) if value is not None else None:
            typed = f"[{', '.join(map(str, value))}]" if isinstance(value, list) else value
            raise InputError(f"{name}={typed}: {wrong}")


def check_together(config: Config) -> None:
    """Raises InputError for values that contradict each other."""
    if len(config.data.languages) != 2:
        raise InputError(
            f"data.languages=[{', '.join(config.data.languages)}]: must be a source and a target "
            "language, such as [en,fr]"
        )
    # RNNencdec ignores `scoring` and `attention`. Reject both, since they would make equal runs look different.
    model = config.model
    title = class_name(config.model._target_)
    scoring = scoring_of(model)
    attention = (model.attention or {}).get("_target_", "")
    if model.alignment is None and scoring:
        raise InputError(f"scoring={scoring}: {title} has no attention; leave out scoring")
    if model.alignment is None and class_name(attention) not in ("", "Attention"):
        raise InputError(f"attention={attention}: {title} does not attend; leave out attention=")
    if model.alignment is not None and not scoring:
        raise InputError(f"scoring=none: {title} needs a scoring, such as scoring=additive")
    has_words = config.tokenizer.kind == "words"
    if config.search.replace_unk == "dictionary" and not (model.alignment and has_words):
        raise InputError(
            "search.replace_unk=dictionary: needs a model with attention and tokenizer=words; type "
            "search.replace_unk=none"
        )
    edges = list(config.evaluation.edges or ())
    if [0, *edges] != sorted({0, *edges}):
        raise InputError(f"evaluation.edges={edges}: must be increasing, starting at 1 or more")
    if isinstance(config.threads, str) and config.threads != "auto":
        raise InputError(f"threads={config.threads}: must be a whole number, or auto")
