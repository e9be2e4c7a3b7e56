"""Applies what is typed to the configuration of a checkpoint, and compares two configurations."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from nmt.config.commands import CheckpointConfig, TrainConfig
from nmt.config.keys import LOCAL, RESUMABLE, WEIGHTS, effect_of, entries
from nmt.config.loading import check_together, load_plain, type_texts
from nmt.config.schema import Config, to_containers
from nmt.utils.commands import override_key
from nmt.utils.errors import InputError, first_line

log = logging.getLogger(__name__)

OF_TRAINING = "it belongs to the training run, and this command cannot change it"


def apply_overrides(
    stored: TrainConfig,
    history: Sequence[str],
    composed: TrainConfig | CheckpointConfig,
    overrides: Sequence[str],
) -> tuple[TrainConfig, list[str]]:
    """Applies the overrides of the command line to the configuration of a checkpoint.

    Hydra composes the stored experiment, regime and groups without and with the overrides. What differs,
    and what the files of typed groups set, replaces the stored values.

    Args:
        stored: configuration of the checkpoint; not changed.
        history: overrides of the run that wrote the checkpoint.
        composed: configuration of the running command, from defaults and `overrides`.

    Returns:
        The configuration, and the overrides of a command that makes it again.

    Raises:
        InputError: for a key or group that the command cannot change, or another experiment or regime.
    """
    schema: Any = type(composed)
    typed = OverridesParser.create().parse_overrides(list(overrides))
    groups = [each for each in typed if _options(each.key_or_group) and not _is_mapping(each)]
    keys = [path for each in typed if each not in groups for path in _paths(each)]
    for path in keys:
        if not _declares(schema, path):
            raise InputError(f"{path}: no such key; {OF_TRAINING}")
    values, given = to_containers(stored), to_containers(composed)
    changed: list[str] = []
    if groups or schema is TrainConfig:  # a key may change others by an interpolation
        chosen = " ".join(str(each.input_line) for each in groups)
        words = [
            w for w in overrides if w in chosen.split() or _declares(TrainConfig, override_key(w))
        ]
        before = _stored_choices(stored, history)
        now = [*_without(before, map(override_key, words)), *words]
        old, new = _compose(before), _compose(now)
        changed = [*_changed_keys(*map(_sections, (values, old, new))), *_keys_of(groups, now)]
        others = [key for key in changed if not _declares(schema, key)]
        if others and others == changed:
            raise InputError(f"{chosen}: {OF_TRAINING}")
        if others:
            log.info("%s: keys of the training run stay: %s", chosen, ", ".join(others))
        given |= new
    for path in [*changed, *keys]:
        if _declares(schema, path) and _declares(TrainConfig, path):
            _copy(given, values, path)
    if schema is TrainConfig:
        refuse_changes(to_containers(stored), values, resumed=given["resume"] is not None)
    for path, _ in entries(schema) if schema is not TrainConfig else ():
        if effect_of(schema, path) == LOCAL:
            _copy(to_containers(composed), values, path)
    config = load_plain(values)
    check_together(config)
    words = [word for word in overrides if override_key(word) != "resume"]
    return config, [*_without(history, [*map(override_key, words), *changed, *keys]), *words]


def _options(group: str) -> list[str]:
    """Returns the options of a config group, in `conf/` and the user's own folders; [] for a key."""
    loader = GlobalHydra.instance().config_loader()
    options: list[str] = loader.get_group_options(group, overrides=_search_path())
    return options


def _search_path() -> list[str]:
    words = HydraConfig.get().overrides.hydra if HydraConfig.initialized() else ()
    return [word for word in words if override_key(word) == "hydra.searchpath"]


def _is_mapping(override: Override) -> bool:
    return isinstance(override.value(), dict)


def _paths(override: Override) -> list[str]:
    """Returns the keys that an override sets: of a dictionary, all inside."""
    name = override.key_or_group
    return list(flatten({name: override.value()})) if _is_mapping(override) else [name]


def _declares(schema: type, path: str) -> bool:
    return is_within(path, (name for name, _ in entries(schema)))


def _stored_choices(stored: Config, history: Iterable[str]) -> list[str]:
    """Returns the overrides that choose the stored options, if Hydra finds these here.

    Of the history only names of options are used: somebody else may have written it.
    """
    words = {"experiment": f"+experiment={stored.experiment}", "regime": f"regime={stored.regime}"}
    words |= {override_key(word): word for word in history}
    return [
        word
        for group, word in words.items()
        if (options := re.fullmatch(r"\+?[\w/]+=\[?([\w, -]*)\]?", word))
        and {name.strip() for name in options[1].split(",")} <= set(_options(group))
    ]


def _compose(words: Sequence[str]) -> dict[str, Any]:
    """Composes the configuration of a training run."""
    loader = GlobalHydra.instance().config_loader()
    try:
        config = loader.load_configuration("train", [*_search_path(), *words], RunMode.RUN)
        with open_dict(config):
            del config["hydra"]
        training: Any = OmegaConf.to_object(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(f"{' '.join(words)}: {first_line(error)}") from error
    type_texts(training.data)
    return to_containers(training)


def _keys_of(groups: Iterable[Override], words: Sequence[str]) -> list[str]:
    """Returns the keys that the files of chosen options set, and the files that these include."""
    names: set[str | None] = set()
    for each in groups:
        value = each.value()
        options = value if isinstance(value, list) else [value]
        names |= {f"{each.key_or_group}/{option}" for option in options}
    loader: Any = GlobalHydra.instance().config_loader()
    arguments = ("train", [*_search_path(), *words])
    files = loader.compute_defaults_list(*arguments, RunMode.RUN).defaults
    while included := {file.config_path for file in files if file.parent in names} - names:
        names |= included
    chosen = [file for file in files if file.config_path in names]
    _, repository = loader._parse_overrides_and_create_caching_repo(*arguments)
    config = loader._compose_config_from_defaults_list(chosen, repository)
    return [key for key in _sections(OmegaConf.to_container(config)) if key[:6] != "hydra."]


def _sections(config: Any) -> dict[str, Any]:
    """Returns values by `section.key`: what a key holds counts as one value.

    >>> _sections({"seed": 1, "data": {"test": {"mine": {"pairs": 2}}}})
    {'seed': 1, 'data.test': {'mine': {'pairs': 2}}}
    """
    flat: dict[str, Any] = {}
    for name, value in config.items():
        inner = value if isinstance(value, dict) else {}
        flat |= {f"{name}.{key}": each for key, each in inner.items()} or {name: value}
    return flat


def _changed_keys(
    stored: Mapping[str, Any], before: Mapping[str, Any], now: Mapping[str, Any]
) -> list[str]:
    """Returns the keys that differ between two compositions, also through an interpolation.

    A key whose stored value is not that of the first one was typed, and stays.
    """
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return [key for key in keys if key not in now or stored.get(key) == before.get(key)]


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


def _without(words: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Returns the overrides whose keys are not within `paths`."""
    replaced = list(paths)
    return [word for word in words if not is_within(override_key(word), replaced)]


def refuse_changes(before: dict[str, Any], now: dict[str, Any], resumed: bool) -> None:
    """Refuses a configuration that a checkpoint cannot be continued with.

    Args:
        before, now: stored and new configuration.
        resumed: the run must end as if it had never stopped.

    Raises:
        InputError: naming the first key that differs, the stored value and the new one.
    """
    for path, (old, new) in _differences(before, now).items():
        effect = effect_of(TrainConfig, path)
        fixed = effect == WEIGHTS or path in ("experiment", "regime")
        if fixed or (resumed and effect not in RESUMABLE):
            raise InputError(
                f"{path}={new}: the run was started with {path}={old}; use that value to continue it, "
                "or start a new run"
            )


def refuse_other_kind(config: TrainConfig, initial: TrainConfig) -> None:
    """Refuses initial weights of another kind of model, vocabulary or language.

    Raises:
        InputError: naming every key that differs, with the value that the weights need.
    """
    differences = _differences(*map(to_containers, (initial, config)))
    needed = [
        f"{path}={json.dumps(needs)}"
        for path, (needs, _) in differences.items()
        if effect_of(TrainConfig, path) == WEIGHTS
    ]
    if needed:
        raise InputError(
            f"initial_checkpoint={config.initial_checkpoint}: its weights and vocabularies need "
            f"{' '.join(needed)}"
        )


def _differences(before: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns both values of each dotted key that differs, `regime` and `experiment` first."""
    old, new = flatten(before), flatten(now)
    paths = sorted(old | new, key=lambda path: (path not in ("regime", "experiment"), path))
    values = {path: (old.get(path), new.get(path)) for path in paths}
    return {path: (first, second) for path, (first, second) in values.items() if first != second}


def is_within(path: str, prefixes: Iterable[str]) -> bool:
    """Whether a dotted key is one of `prefixes`, or in a section that is.

    >>> is_within("logger.mode", ["logger"]), is_within("loggers", ["logger"])
    (True, False)
    """
    return any(path == prefix or path.startswith(f"{prefix}.") for prefix in prefixes)


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested mappings to dotted keys; empty mappings have none.

    >>> flatten({"a": {"b": [1], "c": {}}})
    {'a.b': [1]}
    """
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= (
            flatten(value, f"{prefix}{name}.")
            if isinstance(value, Mapping)
            else {f"{prefix}{name}": value}
        )
    return flat
