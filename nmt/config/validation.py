"""Validation beyond the schema's types: bounds of single keys, and combinations of keys.

Every error message names the key, the value found, and what would be right.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config.data import DataConfig, TextConfig, TokenizerConfig
from nmt.config.keys import problem
from nmt.config.schema import Config, TrainConfig, class_name, scoring_of
from nmt.utils.errors import InputError, first_line

Section = TypeVar("Section")
GLOBAL = "nmt.layers.attention.Attention"  # the default, which says nothing of a model without any


def load(config: DictConfig, training: bool = True) -> Config:
    """A composed configuration as checked, plain objects. Raises InputError as `validate`."""
    validate(config, training)
    loaded = OmegaConf.to_object(config)
    assert isinstance(loaded, Config)
    return loaded


def load_plain(values: Mapping[str, Any]) -> Config:
    """The configuration of a training, given as plain containers, as objects; only types are checked."""
    config = OmegaConf.merge(OmegaConf.structured(TrainConfig), dict(values))
    _type_texts(config)
    loaded = OmegaConf.to_object(config)
    assert isinstance(loaded, Config)
    return loaded


def validate(config: DictConfig, training: bool = True) -> None:
    """Checks values beyond their types, and gives the test sets their types.

    Args:
        config: a composed configuration whose structure comes from `Config`; `data.train`, `data.valid`
            and `data.test.<name>` become `TextConfig`s.
        training: whether it is for training; the devices of a test share out no training batch.

    Raises:
        InputError: naming the key, the value found and the values accepted.
    """
    _type_texts(config)
    validate_keys(config)
    _validate_together(config)


def _type_texts(config: Any) -> None:
    """Turns every section that describes a text into a `TextConfig`; raises InputError."""
    data = config.data
    for part in ("train", "valid"):
        data[part] = _text(f"data.{part}", data[part])
    for name, text in data.test.items():
        data.test[name] = _text(f"data.test.{check_set_name(str(name))}", text)


def _text(where: str, text: Any) -> Any:
    """A section that describes a text as a `TextConfig`; raises InputError."""
    try:
        return OmegaConf.merge(OmegaConf.structured(TextConfig), text)
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        keys = ", ".join(entry.name for entry in dataclasses.fields(TextConfig))
        raise InputError(f"{where}: {first_line(error)}; its keys are {keys}") from error


def validate_keys(config: DictConfig) -> None:
    """Refuses values outside their bounds, whatever the schema of `config`; raises InputError."""
    schema = OmegaConf.get_type(config)
    assert isinstance(schema, type)
    _validate_node(config, schema, "")


def section(schema: type[Section], /, **values: Any) -> Section:
    """A section of the configuration given in Python, checked like one that was typed.

    Raises:
        InputError: naming the key.
    """
    try:
        config = OmegaConf.merge(OmegaConf.structured(schema), values)
    except OmegaConfBaseException as error:
        name = re.split(r"[.\[]", str(error.full_key or error.key))[0]
        raise InputError(f"{name}={values.get(name)!r}: {first_line(error)}") from error
    assert isinstance(config, DictConfig)
    validate_keys(config)
    made = OmegaConf.to_object(config)
    assert isinstance(made, schema)
    return made


def check_set_name(name: str) -> str:
    """Returns the name of a test set, which is part of file names; raises InputError for others."""
    if not re.fullmatch(r"\w[\w.+-]{0,79}", name) or name.endswith(".detok"):
        raise InputError(
            f"data.test.{name!r}: the name of a test set is part of file names: use up to 80 letters, "
            "digits, '_', '-', '.' and '+'"
        )
    return name


def check_text(data: DataConfig | DictConfig, tokenizer: TokenizerConfig | DictConfig) -> None:
    """Refuses what does not go together in the sections `data` and `tokenizer`."""
    if len(data.languages) != 2:
        listed = ", ".join(data.languages)
        raise InputError(
            f"data.languages=[{listed}]: must be a source and a target language, such as [en,fr]"
        )


def _validate_together(config: DictConfig) -> None:
    """Checks combinations of keys."""
    check_text(config.data, config.tokenizer)
    model, scoring = config.model, scoring_of(config.model)
    attends, title = model.alignment is not None, class_name(model._target_)
    attention = (model.attention or {}).get("_target_")
    # A sweep would count runs of RNNencdec with several scorings as equal ones.
    if scoring and not attends:
        raise InputError(f"scoring={scoring}: {title} has no attention; leave out scoring")
    if not attends and attention not in (None, GLOBAL):
        raise InputError(f"attention={attention}: {title} has no attention")
    if attends and not scoring:
        raise InputError(f"scoring=none: {title} needs a scoring")
    for where in ("evaluation.edges", "stress.lengths"):
        rising = list(OmegaConf.select(config, where) or ())
        if rising != sorted(set(rising)):
            raise InputError(f"{where}={rising}: must be increasing")
    if isinstance(config.threads, str) and config.threads != "auto":
        raise InputError(f"threads={config.threads}: must be a whole number, or auto")
    if config.search.nbest > config.search.beam_size:
        raise InputError(
            f"search.nbest={config.search.nbest}: must be at most search.beam_size="
            f"{config.search.beam_size}"
        )


def _validate_node(node: Any, schema: type, path: str) -> None:
    unknown = set(node) - {entry.name for entry in dataclasses.fields(schema)}
    if unknown:
        name = f"{path}{min(unknown)}"
        raise InputError(f"{name}: no such key; docs/configuration.md lists all keys")
    for entry in dataclasses.fields(schema):
        where = f"{path}{entry.name}"
        try:
            value = OmegaConf.select(node, entry.name)
        except OmegaConfBaseException as error:
            raise InputError(f"{where}: {first_line(error)}") from error
        children = {where: value}
        if isinstance(value, DictConfig) and OmegaConf.get_type(value) is dict:
            children = {f"{where}.{name!s}": child for name, child in value.items()}
        for name, child in children.items():
            section_schema = OmegaConf.get_type(child)
            if isinstance(section_schema, type) and dataclasses.is_dataclass(section_schema):
                _validate_node(child, section_schema, f"{name}.")
        wrong = None if value is None else problem(value, entry.metadata)
        if wrong:
            raise InputError(f"{where}={value!s}: {wrong}")
