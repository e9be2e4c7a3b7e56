"""Compares configurations key by key, and applies overrides to the configuration of a checkpoint."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from nmt.config.commands import CheckpointConfig, TrainConfig
from nmt.config.keys import LOCAL, RESUMABLE, TRAINING, WEIGHTS, entries
from nmt.config.loading import check_together, load_plain
from nmt.config.schema import DEVICES, Config, class_name, to_containers
from nmt.utils.errors import InputError
from nmt.utils.quoting import as_typed, command_line, override_key, quoted
from nmt.utils.text import as_list

OF_TRAINING = "it belongs to the training run, and this command cannot change it"
WHOLE = ("logger", "search")  # an option of these groups replaces the whole stored section
SECTIONS = ("data", "trainer", *WHOLE)  # groups whose options may change a stored run
WRITTEN = ("dirpath", "save_dir", "dir", "default_root_dir")  # arguments for output folders
BELOW = ("filename", "name", "version", "sub_dir")  # arguments for paths inside these folders


def flatten(config: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """Flattens nested mappings to dotted keys, down to `depth` levels (0: all), and drops empty sections.

    >>> flatten({"a": {"b": [1], "c": {}}}), flatten({"a": {"b": {"c": 1}}}, depth=2)
    ({'a.b': [1]}, {'a.b': {'c': 1}})
    """
    flat: dict[str, Any] = {}
    for name, value in config.items():
        is_section = isinstance(value, Mapping) and depth != 1
        path = f"{prefix}{name}"
        flat |= flatten(value, f"{path}.", depth - 1) if is_section else {path: value}
    return flat


def is_within(path: str, prefixes: Iterable[str]) -> bool:
    """Whether a dotted key is one of `prefixes`, or inside a section that is one of `prefixes`.

    >>> is_within("logger.mode", ["logger"]), is_within("loggers", ["logger"])
    (True, False)
    """
    return any(path == prefix or path.startswith(f"{prefix}.") for prefix in prefixes)


@functools.cache
def effect_of(schema: type, path: str, section: str = TRAINING) -> str:
    """Returns the effect of a dotted key; an undeclared key has the effect of its section."""
    name, _, rest = path.partition(".")
    entry = {entry.name: entry for entry in dataclasses.fields(schema)}.get(name)
    if entry is None:
        return section
    effect: str = entry.metadata["effect"] or section
    if isinstance(entry.default_factory, type) and dataclasses.is_dataclass(entry.default_factory):
        return effect_of(entry.default_factory, rest, effect)
    inside: Mapping[str, str] = entry.metadata.get("inside", {})
    return inside.get(rest.partition(".")[0], effect)


def differences(before: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns the old and new value of each dotted key that differs; `regime` and `experiment` come first."""
    old, new = flatten(before), flatten(now)
    paths = sorted(old | new, key=lambda path: (path not in ("regime", "experiment"), path))
    return {
        path: (old.get(path), new.get(path)) for path in paths if old.get(path) != new.get(path)
    }


def apply_overrides(
    stored: TrainConfig,
    history: Sequence[str],
    composed: TrainConfig | CheckpointConfig,
    overrides: Sequence[str],
) -> tuple[TrainConfig, list[str]]:
    """Applies the overrides of the command line to the configuration of a checkpoint.

    A key replaces the stored value. An option of `logger` or `search` replaces the stored section. An
    option of `data` or `trainer` replaces the keys that its file sets; one of `trainer` also replaces the
    keys in `DEVICES`. Options of other groups must agree with the stored configuration.

    Args:
        stored: configuration of the checkpoint, which is not modified.
        history: overrides of the run that wrote the checkpoint.
        composed: configuration of the current command, with its defaults and `overrides`.

    Returns:
        The new configuration, and the overrides that reproduce it.

    Raises:
        InputError: if the command cannot change a key or group. The message names the keys to type
            instead of a group.
    """
    schema: Any = type(composed)
    sections = {entry.name for entry in dataclasses.fields(schema)}
    declared = [name for name, _ in entries(schema)]
    of_training = [name for name, _ in entries(TrainConfig)]
    values, given = to_containers(stored), to_containers(composed)
    changed: list[str] = []
    others: list[tuple[str, dict[str, Any]]] = []  # options of other groups, and the keys they set
    for each in OverridesParser.create().parse_overrides(list(overrides)):
        group, value = each.key_or_group, each.value()
        if group not in HydraConfig.get().runtime.choices or isinstance(value, dict):
            changed += flatten({group: value})
        elif group in WHOLE and group in sections:
            changed.append(group)
        elif group in SECTIONS and group in sections:
            keys = flatten(_keys_of(group, as_list(value)), depth=2)
            devices = [f"trainer.{name}" for name in DEVICES] if group == "trainer" else []
            # A file of `data` also sets keys of the training that an evaluation does not have.
            changed += [key for key in (*keys, *devices) if is_within(key, declared)]
        else:
            others.append((str(each.input_line), _keys_of(group, as_list(value))))
    for word, sets in others:
        own = {key: v for key, v in flatten(sets).items() if not is_within(key, changed)}
        known = [key for key in own if is_within(key, declared)]
        _refuse_group(word, own, known, "callbacks" in sets, stored, composed)
    for path in changed:
        if path not in WHOLE and not is_within(path, declared):
            trained = is_within(path, of_training)
            reason = OF_TRAINING if trained else "--help lists keys and groups"
            raise InputError(f"{path}: no such key; {reason}")
    for path in changed:
        if path in WHOLE or is_within(path, of_training):
            _copy(given, values, path)
    if schema is TrainConfig:
        _follow(values, to_containers(stored), changed)
        refuse_changes(to_containers(stored), values, resumed=given["resume"] is not None)
    for path in declared if schema is not TrainConfig else ():
        if effect_of(schema, path) == LOCAL:
            _copy(to_containers(composed), values, path)
    config = load_plain(values)
    check_together(config)
    words = [word for word in overrides if override_key(word) != "resume"]
    typed = set(map(override_key, words))
    kept = [word for word in history if override_key(word) not in typed]
    return config, [*(w for w in kept if not is_within(override_key(w), changed)), *words]


def _keys_of(group: str, options: Iterable[str]) -> dict[str, Any]:
    """Returns the sections and keys that the files of a group's options set, without interpolation.

    The result includes the files that their defaults lists name, but not the keys of Hydra.

    Raises:
        InputError: if an option is not a YAML file of `conf/` or of a folder in Hydra's search path.
    """
    merged: Any = OmegaConf.create()
    sources = HydraConfig.get().runtime.config_sources
    folders = [Path(source.path) for source in sources if source.schema == "file"]
    for option in options:
        files = [folder / group / f"{option}.yaml" for folder in folders]
        file = next(filter(Path.is_file, files), None)
        if file is None:
            raise InputError(f"{group}={option}: not a YAML file of conf/{group} or --config-dir")
        package = re.search(r"^# *@package +(\S+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        name = package[1] if package and package[1] != "_group_" else group.replace("/", ".")
        content: Any = OmegaConf.load(file)
        listed = content.pop("defaults", [])
        for entry in listed if "_self_" in listed else [*listed, "_self_"]:
            other, chosen = (group, entry) if isinstance(entry, str) else next(iter(entry.items()))
            if entry == "_self_":
                sets = content
                for part in reversed(name.split(".") if name != "_global_" else []):
                    sets = {part: sets}
            elif chosen and (other := _group_of(other, group)).partition("/")[0] != "hydra":
                sets = _keys_of(other, as_list(chosen))
            else:
                continue
            merged = OmegaConf.merge(merged, sets)
    plain: Any = OmegaConf.to_container(merged)
    return {key: value for key, value in plain.items() if key != "hydra"}


def _group_of(entry: str, group: str) -> str:
    """Returns the group that an entry of a defaults list names, such as `override /schedule@_group_`."""
    name = re.sub(r"@.*", "", entry.split()[-1])
    return name[1:] if name.startswith("/") else group if name == group else f"{group}/{name}"


def _refuse_group(
    word: str,
    sets: Mapping[str, Any],
    declared: Collection[str],
    callbacks: bool,
    stored: TrainConfig,
    composed: TrainConfig | CheckpointConfig,
) -> None:
    """Refuses an option whose keys differ from the stored ones.

    Args:
        word: the override that chooses the option.
        sets: the keys that the option sets and no other override changes.
        declared: those of them that the current command has.
        callbacks: whether the option sets the section `callbacks`, and thus removes stored callbacks.
        stored: configuration of the checkpoint.
        composed: configuration of the current command.

    Raises:
        InputError: if a key differs. The message names the keys to type instead.
    """
    had, has = flatten(to_containers(stored)), flatten(to_containers(composed))
    wanted = {key: has.get(key, value) for key, value in sets.items()}
    differing = [key for key, value in wanted.items() if had.get(key) != value]
    keys = [key for key in differing if key in declared]
    absent: list[str] = []
    if isinstance(composed, TrainConfig):
        if callbacks:
            absent = [f"callbacks.{n}" for n in stored.callbacks if n not in composed.callbacks]
        after = to_containers(stored)
        for key in [*differing, *absent]:
            _copy(to_containers(composed), after, key)
        refuse_changes(to_containers(stored), after, resumed=composed.resume is not None)
        if not keys and not absent:
            return
    elif not keys:
        raise InputError(f"{word}: {OF_TRAINING}")
    typed = [f"{key}={_typed(wanted[key])}" for key in keys] + [f"{key}=null" for key in absent]
    raise InputError(
        f"{word}: an option of this group cannot change a stored run; leave it out, or type its keys "
        f"instead: {shlex.join(typed)}"
    )


def _typed(value: Any) -> str:
    """Returns a value as typed in an override."""
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def _follow(values: dict[str, Any], stored: Mapping[str, Any], changed: Sequence[str]) -> None:
    """Updates the title and the monitors of callbacks, which `conf/` derives from other keys."""
    old, new = (
        f"{class_name(each['model']['_target_'])}-{each['data']['max_length']}"
        for each in (stored, values)
    )
    if "name" not in changed and values["name"] in (old, f"{old}*"):
        values["name"] = values["name"].replace(old, new)
    was, now = (each["callbacks"].get("best", {}).get("monitor") for each in (stored, values))
    for name, callback in values["callbacks"].items():
        if was and callback.get("monitor") == was and f"callbacks.{name}.monitor" not in changed:
            callback["monitor"] = now


def _copy(given: Mapping[str, Any], values: dict[str, Any], path: str) -> None:
    """Copies the value at a dotted path from `given` to `values`.

    Deletes the key if `given` does not have it, or if it is a stored dictionary and `given` has null.
    """
    *parents, name = path.split(".")
    for parent in parents:
        given = given.get(parent) or {}
        values[parent] = values = values.get(parent) or {}
    if given.get(name) is None and (name not in given or isinstance(values.get(name), dict)):
        values.pop(name, None)
    else:
        values[name] = given[name]


def refuse_changes(before: dict[str, Any], now: dict[str, Any], resumed: bool) -> None:
    """Rejects changed values that do not fit the weights; if `resumed`, also values that change the training.

    Raises:
        InputError: if there is such a change; the message names the key, the new value and the old value.
    """
    for path, (old, new) in differences(before, now).items():
        effect = effect_of(TrainConfig, path)
        fixed = effect == WEIGHTS or path in ("experiment", "regime")
        if fixed or (resumed and effect not in RESUMABLE):
            raise InputError(
                f"{path}={new}: the run was started with {path}={old}; keep that value to continue "
                "the run, or start a new run"
            )


def refuse_other_kind(config: TrainConfig, initial: TrainConfig) -> None:
    """Refuses initial weights whose model, vocabularies or languages differ from those of `config`.

    Raises:
        InputError: if there is such a difference. The message lists the keys and values that the weights need.
    """
    needed = [
        f"{path}={json.dumps(needs)}"
        for path, (needs, _) in differences(*map(to_containers, (initial, config))).items()
        if effect_of(TrainConfig, path) == WEIGHTS
    ]
    if needed:
        raise InputError(
            f"initial_checkpoint={config.initial_checkpoint}: its weights and vocabularies need "
            f"{' '.join(needed)}"
        )


def refuse_outside(
    config: TrainConfig, composed: TrainConfig, folder: Path, overrides: Sequence[str]
) -> None:
    """Refuses a folder outside the run's folder if the checkpoint names it and the user does not.

    The checkpoint may come from someone else, so it must not choose where files are written.

    Raises:
        InputError: if such a folder is neither set in `overrides` nor the same in `composed`.
    """
    typed = [override_key(word) for word in overrides]
    own = outside(composed, folder)
    for path, value in outside(config, folder).items():
        if value != own.get(path) and not is_within(path, typed):
            raise InputError(
                f"{path}={value}: the checkpoint names a folder outside the run's folder; "
                f"type {path}=FOLDER to choose one"
            )


def outside(config: Config, folder: Path) -> dict[str, str]:
    """Returns the settings of callbacks, loggers and Trainer that are paths outside the run's folder."""
    found = {}
    for section in ("callbacks", "logger", "trainer"):
        for path, value in flatten({section: getattr(config, section)}).items():
            name = path.rpartition(".")[2]
            if name in WRITTEN or (name in BELOW and isinstance(value, str)):
                place = Path(value or folder) if name in WRITTEN else folder / value
                if not place.resolve().is_relative_to(folder.resolve()):
                    found[path] = str(value)
    return found


def resume_command(config: Config, folder: Path, trust: Sequence[str]) -> str:
    """Returns the command that resumes a training run, and names its code and folders outside `folder`.

    Args:
        config: the configuration of the run.
        folder: the run's folder.
        trust: the user's code that the configuration names.
    """
    overrides = [f"resume={quoted(str(folder))}"]
    if trust:
        overrides.append(f"trust=[{','.join(trust)}]")
    overrides += [f"{key}={quoted(value)}" for key, value in outside(config, folder).items()]
    return as_typed(command_line("train", overrides))
