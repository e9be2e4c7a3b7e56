"""Builds one checked configuration from composed files, a checkpoint and overrides.

A stored configuration may name trusted code only. Every error message names the key, its value and
the remedy.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import InstantiationException
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config.keys import entries, problem
from nmt.config.schema import (
    GROUPS,
    RESUMABLE_KEYS,
    CheckpointConfig,
    Config,
    DataConfig,
    TextConfig,
    TrainConfig,
    class_name,
    scoring_of,
    to_containers,
)
from nmt.utils.commands import literal, override_key
from nmt.utils.errors import InputError, first_line

Section = TypeVar("Section")

# Keys that are never read from a checkpoint: somebody else may have written it, and its number of
# threads was chosen for another machine
HERE = ("trust", "threads", "logger", "data.cache")

# Keys that weights and vocabularies depend on; FREE: the ones among them that only affect training
KIND = ("model", "tokenizer", "data.languages", "data.reverse_source")
FREE = ("model.init", "model.dropout", "model.recurrence", "model.kernels", "model.graphs")


# Code that any checkpoint may name: classes and schedules whose creation has no side effects. Names
# are compared without an import, since Lightning takes seconds to import.
ALLOWED = re.compile(
    r"nmt\.models\.([A-Z]\w*|optimizer\.(constant|inverse_sqrt|linear))"
    r"|nmt\.layers\.(\w+\.)?[A-Z]\w*"
    r"|torch\.optim\.(lr_scheduler\.)?[A-Z]\w*"
    r"|pytorch_lightning\.((callbacks|loggers)\.)?[A-Z]\w*",
    re.ASCII,
)


def load(composed: DictConfig) -> Any:
    """Checks a composed configuration and returns it as objects of its schema.

    Raises:
        InputError: for a value that is out of bounds or contradicts another.
        OmegaConfBaseException: for a missing value, or an interpolation that cannot be resolved.
    """
    config = OmegaConf.to_object(composed)
    if isinstance(config, Config):
        type_texts(config.data)
        check_together(config)
    check_bounds(config)
    return config


def load_plain(values: Mapping[str, Any]) -> TrainConfig:
    """Checks a training configuration that is given as dictionaries and lists.

    Raises:
        InputError: for a wrong type, or a value out of bounds.
    """
    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(TrainConfig), dict(values)))
    assert isinstance(config, TrainConfig)
    type_texts(config.data)
    check_bounds(config)
    return config


def type_texts(data: DataConfig) -> None:
    """Turns the sections that describe a text into `TextConfig`s; raises InputError."""
    data.train, data.valid = (
        section(TextConfig, getattr(data, part), f"data.{part}.") for part in ("train", "valid")
    )
    data.test = {
        check_set_name(str(name)): section(TextConfig, text, f"data.test.{name}.")
        for name, text in data.test.items()
    }


def section(schema: type[Section], values: Any, where: str = "") -> Section:
    """Checks a section of a configuration and returns it as an object.

    Args:
        values: its keys, or already an object of the schema.
        where: prefix of each key in messages.

    Raises:
        InputError: naming the key.
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


def check_bounds(config: Any, where: str = "") -> None:
    """Raises InputError for unknown keys, and for values out of bounds."""
    fields = dataclasses.fields(config)
    if unknown := vars(config).keys() - {entry.name for entry in fields}:
        name = f"{where}{min(unknown)}"
        raise InputError(f"{name}: no such key; docs/configuration.md lists all keys")
    for entry in fields:
        name, value = f"{where}{entry.name}", getattr(config, entry.name)
        if dataclasses.is_dataclass(value):
            check_bounds(value, f"{name}.")
        elif wrong := problem(value, entry.metadata) if value is not None else None:
            raise InputError(f"{name}={value}: {wrong}")


def check_together(config: Config) -> None:
    """Raises InputError for values that contradict each other."""
    if len(config.data.languages) != 2:
        raise InputError(
            f"data.languages=[{', '.join(config.data.languages)}]: must be a source and a target "
            "language, such as [en,fr]"
        )
    # Otherwise a sweep over scorings would count equal runs of RNNencdec as different.
    model, title = config.model, class_name(config.model._target_)
    scoring, attention = scoring_of(model), (model.attention or {}).get("_target_", "")
    if model.alignment is None and scoring:
        raise InputError(f"scoring={scoring}: {title} has no attention; leave out scoring")
    if model.alignment is None and class_name(attention) not in ("", "Attention"):
        raise InputError(f"attention={attention}: {title} has no attention")
    if model.alignment is not None and not scoring:
        raise InputError(f"scoring=none: {title} needs a scoring")
    edges = list(config.evaluation.edges or ())
    if edges != sorted(set(edges)):
        raise InputError(f"evaluation.edges={edges}: must be increasing")
    if isinstance(config.threads, str) and config.threads != "auto":
        raise InputError(f"threads={config.threads}: must be a whole number, or auto")


def check_set_name(name: str) -> str:
    """Returns the name of a test set; raises InputError if it cannot be part of a file name."""
    if not re.fullmatch(r"\w[\w.+-]{0,79}", name) or name.endswith(".detok"):
        raise InputError(
            f"data.test.{name!r}: the name of a test set is part of file names: use up to 80 letters, "
            "digits, '_', '-', '.' and '+'"
        )
    return name


# Overrides of a stored configuration


def apply_overrides(
    stored: TrainConfig, composed: TrainConfig | CheckpointConfig, overrides: Sequence[str]
) -> TrainConfig:
    """Applies the overrides of the command line to the configuration of a checkpoint.

    Args:
        stored: configuration of the checkpoint; not changed.
        composed: configuration of the running command, from defaults and `overrides`.
        overrides: the overrides of the command line.

    Raises:
        InputError: as `load`.
    """
    values, given = to_containers(stored), to_containers(composed)
    local_keys = () if isinstance(composed, TrainConfig) else HERE
    for path in (*local_keys, *override_paths(overrides)):
        if {path.partition(".")[0]} <= values.keys() & given.keys():
            _copy(given, values, path)
    config = load_plain(values)
    check_together(config)
    return config


def override_paths(overrides: Sequence[str]) -> list[str]:
    """Returns the keys and sections that overrides set, with groups expanded."""
    paths: list[str] = []
    for each in OverridesParser.create().parse_overrides(list(overrides)):
        name = each.key_or_group
        chosen = name in GROUPS and not isinstance(each.value(), dict)
        paths += GROUPS[name] if chosen else [name]
    return paths


def _copy(given: dict[str, Any], values: dict[str, Any], path: str) -> None:
    """Copies the value at a dotted path into `values`, or removes it if `given` lacks it."""
    *parents, name = path.split(".")
    for parent in parents:
        given = given.get(parent) or {}
        values[parent] = values = values.get(parent) or {}
    if name in given:
        values[name] = given[name]
    else:
        values.pop(name, None)


def merge_overrides(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Returns the overrides of a resumed run: `now` replaces `before`; `resume` is dropped."""
    now = [word for word in now if override_key(word) != "resume"]
    replaced = [*map(override_key, now), *override_paths(now)]
    return [*(word for word in before if not is_within(override_key(word), replaced)), *now]


def refuse_changes(stored: Config, config: Config) -> None:
    """Refuses to resume a run with a configuration that would change its result.

    Raises:
        InputError: naming the first key that differs, the stored value and the new one.
    """
    for path, (before, now) in _differences(stored, config).items():
        if not is_within(path, RESUMABLE_KEYS):
            raise InputError(
                f"{path}={now}: the run in this folder was started with {path}={before}; use that "
                "value to resume it, or name another folder"
            )


def refuse_other_kind(config: TrainConfig, initial: TrainConfig) -> None:
    """Refuses initial weights of another kind of model, vocabulary or language.

    Raises:
        InputError: naming every key that differs, with the value that the weights need.
    """
    needed = [
        f"{path}={literal(needs)}"
        for path, (needs, _) in _differences(initial, config).items()
        if is_within(path, KIND) and not is_within(path, FREE)
    ]
    if needed:
        raise InputError(
            f"initial_checkpoint={config.initial_checkpoint}: its weights and vocabularies need "
            f"{' '.join(needed)}"
        )


def _differences(before: Config, now: Config) -> dict[str, tuple[Any, Any]]:
    """Returns both values of each dotted key that differs, `regime` and `experiment` first."""
    flat = [
        {
            path: None if value == {} else value
            for path, value in flatten(to_containers(each)).items()
        }
        for each in (before, now)
    ]
    paths = sorted({*flat[0], *flat[1]}, key=lambda p: (p not in ("regime", "experiment"), p))
    values = {path: (flat[0].get(path), flat[1].get(path)) for path in paths}
    return {path: (old, new) for path, (old, new) in values.items() if old != new}


# Code that a configuration names


def user_code(config: Config) -> list[str]:
    """Returns the code outside nmt that a configuration names, as a value of the key `trust`.

    Users trust the code in a configuration that they wrote or trained with.
    """
    named = {
        str(value) for path, value in _leaves(to_containers(config)) if _names_code(path, value)
    }
    return sorted(name for name in named if not ALLOWED.fullmatch(name))


def reject_untrusted_targets(stored: dict[str, Any], trust: Sequence[str]) -> None:
    """Refuses a stored configuration whose code is neither `ALLOWED` nor in `trust`.

    Instantiating a target runs its code, which could write a file.

    Args:
        stored: configuration as dictionaries and lists.
        trust: modules, or classes and functions by their full name.

    Raises:
        InputError: naming the key, the target, and what to type to allow it.
    """
    for path, value in _leaves(stored):
        if isinstance(value, str) and "${" in value:
            raise InputError(
                f"{path}: the checkpoint's configuration holds an interpolation, {value}"
            )
        if _names_code(path, value) and not _is_trusted(path, str(value), trust):
            module = str(value).rpartition(".")[0]
            add = value if is_within(module, trust) else module or value
            raise InputError(
                f"{path}={value}: the checkpoint names code outside nmt, which is not run; "
                f"if you trust it, add trust=[{add}]"
            )


@contextmanager
def errors_naming(key: str) -> Iterator[None]:
    """Adds `key` to errors of the block, which imports or calls code that a configuration names.

    Hides the lines that Hydra logs for code that it cannot locate.

    Args:
        key: configuration key with its value, such as `optimizer._target_=torch.optim.Adm`.

    Raises:
        InputError: for every exception, in one line.
    """
    log = logging.getLogger("hydra.utils")
    before, log.disabled = log.disabled, True
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
    """Whether a value is a `_target_`, or a score from outside nmt."""
    own_score = path.startswith("evaluation.scores.") and "." in str(value)
    return own_score or (path.rpartition(".")[2] == "_target_" and value is not None)


def _is_trusted(path: str, target: str, trust: Sequence[str]) -> bool:
    if target in trust or ALLOWED.fullmatch(target):
        return True
    if not is_within(target, trust):
        return False
    if path.startswith("evaluation.scores."):
        return True  # a class or an instance; anything else is refused as no score
    with errors_naming(f"{path}={target}"):
        module = getattr(get_object(target), "__module__", None) or ""
    return is_within(module, trust)  # `mine.os.system` starts with mine, but is code of os


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields dotted key and value of all leaves of nested dictionaries and lists."""
    if isinstance(node, dict | list):
        children = node.items() if isinstance(node, dict) else enumerate(node)
        for name, child in children:
            yield from _leaves(child, f"{path}.{name}" if path else str(name))
    else:
        yield path, node


# Dotted keys


def is_within(path: str, prefixes: Iterable[str]) -> bool:
    """Whether a dotted key is one of `prefixes`, or in a section that is.

    >>> is_within("logger.mode", ["logger"]), is_within("loggers", ["logger"])
    (True, False)
    """
    return any(path == prefix or path.startswith(f"{prefix}.") for prefix in prefixes)


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested mappings to dotted keys; an empty mapping stays a value."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat
