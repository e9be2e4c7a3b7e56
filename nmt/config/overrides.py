"""Applies overrides to the configuration of a checkpoint, and compares two configurations."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
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
from nmt.config.keys import LOCAL, RESUMABLE, WEIGHTS, effect_of, entries, flatten, is_within
from nmt.config.loading import check_together, load_plain, type_texts
from nmt.config.schema import Config, to_containers
from nmt.utils.errors import InputError, first_line
from nmt.utils.quoting import override_key
from nmt.utils.text import as_list

log = logging.getLogger(__name__)
OF_TRAINING = "it belongs to the training run, and this command cannot change it"


def apply_overrides(
    stored: TrainConfig,
    history: Sequence[str],
    composed: TrainConfig | CheckpointConfig,
    overrides: Sequence[str],
) -> tuple[TrainConfig, list[str]]:
    """Applies the overrides of the command line to the configuration of a checkpoint.

    Hydra composes the stored experiment, regime and groups twice, without and with the overrides. The
    second composition replaces the stored value of a key if the two compositions differ in this key. It
    also replaces the value if a file of an overridden group sets the key.

    Args:
        stored: configuration of the checkpoint, which is not modified.
        history: overrides of the run that wrote the checkpoint.
        composed: configuration of the current command, with its defaults and `overrides`.

    Returns:
        The new configuration, and the overrides that reproduce it.

    Raises:
        InputError: if the command cannot change a key or group, or if the experiment or regime differs
            from the stored one.
    """
    schema: Any = type(composed)
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    groups = [o for o in parsed if _options(o.key_or_group) and not isinstance(o.value(), dict)]
    keys = [p for o in parsed if o not in groups for p in flatten({o.key_or_group: o.value()})]
    for path in keys:
        if not _declares(schema, path):
            known = OF_TRAINING if _declares(TrainConfig, path) else "--help lists keys and groups"
            raise InputError(f"{path}: no such key; {known}")
    values, given = to_containers(stored), to_containers(composed)
    changed: list[str] = []
    if groups or schema is TrainConfig:  # overridden keys may also change interpolated values
        chosen = [str(each.input_line) for each in groups]
        words = [w for w in overrides if w in chosen or _declares(TrainConfig, override_key(w))]
        before = _stored_choices(stored, history)
        now = [*_without(before, map(override_key, words)), *words]
        old, new = _compose(before), _compose(now)
        had, was, has = (flatten(each, depth=2) for each in (values, old, new))
        changed = [*_changed_keys(had, was, has), *_keys_of(groups, now)]
        others = [k for k in changed if not _declares(schema, k) and had.get(k) != has.get(k)]
        if others and not any(_declares(schema, key) for key in changed):
            raise InputError(f"{' '.join(chosen)}: {OF_TRAINING}")
        if others:
            log.info("%s: unchanged training keys: %s", " ".join(chosen), ", ".join(others))
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


def _declares(schema: type, path: str) -> bool:
    return is_within(path, (name for name, _ in entries(schema)))


def _search_path() -> list[str]:
    words = HydraConfig.get().overrides.hydra if HydraConfig.initialized() else ()
    return [word for word in words if override_key(word) == "hydra.searchpath"]


def _options(group: str) -> list[str]:
    """Returns the options of a config group in `conf/` and the user's folders; [] if `group` is a key."""
    loader: Any = GlobalHydra.instance().config_loader()
    return list(loader.get_group_options(group, overrides=_search_path()))


def _stored_choices(stored: Config, history: Iterable[str]) -> list[str]:
    """Returns the overrides that chose options of the stored run's config groups, if these options still exist.

    Only overrides of groups are taken from `history`, since its author may be untrusted.
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
    """Returns the keys set in the files of chosen options, and in the files that their defaults lists name."""
    names: set[str | None] = set()
    for each in groups:
        names |= {f"{each.key_or_group}/{option}" for option in as_list(each.value())}
    loader: Any = GlobalHydra.instance().config_loader()
    arguments = ("train", [*_search_path(), *words])
    files = loader.compute_defaults_list(*arguments, RunMode.RUN).defaults
    while included := {file.config_path for file in files if file.parent in names} - names:
        names |= included
    chosen = [file for file in files if file.config_path in names]
    _, repository = loader._parse_overrides_and_create_caching_repo(*arguments)
    config = loader._compose_config_from_defaults_list(chosen, repository)
    plain: Any = OmegaConf.to_container(config)  # interpolations are not resolved
    return [key for key in flatten(plain, depth=2) if not key.startswith("hydra.")]


def _changed_keys(had: dict[str, Any], was: dict[str, Any], has: dict[str, Any]) -> list[str]:
    """Returns the keys that differ between `was` (composed without the overrides) and `has` (with them).

    Skips a key whose stored value (`had`) differs from `was`, since the stored run had overridden the key.
    """
    keys = [key for key in {**was, **has} if was.get(key) != has.get(key)]
    return [key for key in keys if key not in has or had.get(key) == was.get(key)]


def _copy(given: dict[str, Any], values: dict[str, Any], path: str) -> None:
    """Copies the value at a dotted path from `given` to `values`; deletes the key if `given` does not have it."""
    *parents, name = path.split(".")
    for parent in parents:
        given = given.get(parent) or {}
        values[parent] = values = values.get(parent) or {}
    if name in given:
        values[name] = given[name]
    else:
        values.pop(name, None)


def _without(words: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Returns the overrides in `words` whose keys are not within `paths`."""
    replaced = list(paths)
    return [word for word in words if not is_within(override_key(word), replaced)]


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


def differences(before: dict[str, Any], now: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Returns the old and new value of each dotted key that differs; `regime` and `experiment` come first."""
    old, new = flatten(before), flatten(now)
    paths = sorted(old | new, key=lambda path: (path not in ("regime", "experiment"), path))
    return {
        path: (old.get(path), new.get(path)) for path in paths if old.get(path) != new.get(path)
    }
