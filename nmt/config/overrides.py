"""Command-line overrides applied to the configuration stored in a checkpoint.

A command that starts from a checkpoint, and a resumed training, take the stored configuration, and
of the composed one only the keys and groups that were typed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf, open_dict

from nmt.config.keys import flatten, inherited, is_within, marked
from nmt.config.schema import Config, TrainConfig
from nmt.config.training import RESUMABLE_ARGUMENTS, RUNTIME_ARGUMENTS
from nmt.utils.errors import InputError

# The keys and sections that each group sets.
GROUPS = {
    "encoder": ["model.encoder"],
    "unit": ["model.unit"],
    "attention": ["model.attention"],
    "scoring": ["model.scoring"],
    "model": ["model"],
    "size": [f"model.{key}" for key in ("hidden", "embedding", "alignment", "maxout")],
    "tokenizer": ["tokenizer"],
    "data": ["data", "tokenizer"],
    "optimizer": ["optimizer"],
    "schedule": ["optimizer.schedule"],
    "callbacks": ["callbacks"],
    "trainer": [f"trainer.{key}" for key in ("accelerator", "devices", "num_nodes", "strategy")],
    "search": ["search"],
    "logger": ["logger"],
    "stress": ["stress"],
}
# A resumed run may change these; the weights it ends with depend on none but the number of updates.
RESUMABLE = (*marked(TrainConfig, "resumable"), *RUNTIME_ARGUMENTS, *RESUMABLE_ARGUMENTS)

ABSENT: Any = object()


def parsed(overrides: Sequence[str]) -> list[Override]:
    """Overrides of a command line as Hydra reads them."""
    read: list[Override] = OverridesParser.create().parse_overrides(list(overrides))
    return read


def typed_paths(overrides: Sequence[str], command: type[Config] | None = None) -> list[str]:
    """The configuration paths that command line overrides set, groups expanded.

    Args:
        overrides: as typed.
        command: schema of a command that starts from a checkpoint: only its `overridable` part of a
            group is taken, and its own keys are passed over. None: all may be set.

    Raises:
        InputError: nothing that an override sets may be set.
    """
    only = command.overridable if command else ()
    own = {"trust"} if command else set()
    if command:
        own |= {entry.name for entry in dataclasses.fields(command)} - inherited(command)
    paths: list[str] = []
    for override in parsed(overrides):
        name = override.key_or_group
        if name in own:
            continue
        wanted = [name]
        if name in GROUPS and not isinstance(override.value(), dict):
            wanted = GROUPS[name]
        allowed = [path for path in wanted if not only or is_within(path, only)]
        for path in wanted:
            allowed += [inner for inner in only if inner.startswith(f"{path}.")]
        if not allowed:
            raise InputError(f"{name}: belongs to the training run; this command cannot change it")
        paths += allowed
    return list(dict.fromkeys(paths))


def apply_typed(
    stored: DictConfig,
    composed: DictConfig,
    overrides: Sequence[str],
    command: type[Config] | None = None,
    here: Sequence[str] = (),
) -> DictConfig:
    """The stored configuration with the overrides applied.

    Args:
        stored: of a checkpoint; not changed.
        composed: by Hydra from defaults and `overrides`.
        overrides: as typed, `HydraConfig.get().overrides.task`.
        command: schema of a command that may change only its `overridable` part; None: all.
        here: keys and sections taken from `composed`, whatever is stored.

    Raises:
        InputError: a path that may not be set.
    """
    config, composed = stored.copy(), composed.copy()
    OmegaConf.resolve(composed)
    deleted = {override.key_or_group for override in parsed(overrides) if override.is_delete()}
    with open_dict(config):
        for path in (*here, *typed_paths(overrides, command)):
            value = OmegaConf.select(composed, path, default=ABSENT)
            if path in deleted or value is ABSENT:  # an option of a group need not set all its keys
                parent, _, name = path.rpartition(".")
                inside = OmegaConf.select(config, parent) if parent else config
                if inside is not None:
                    inside.pop(name, None)
            else:
                OmegaConf.update(config, path, value, merge=False)
    return config


def refuse_changes(stored: DictConfig, config: DictConfig) -> None:
    """Refuses to resume a run with a configuration that would change its result.

    Raises:
        InputError: naming the first key that differs, the stored value and the new one.
    """
    differing = changed_keys(stored, config)
    if differing:
        path = differing[0]
        before, now = (OmegaConf.select(each, path) for each in (stored, config))
        raise InputError(
            f"{path}={now}: the run in this folder was started with {path}={before}; type that to "
            "resume it, or name another folder"
        )


def changed_keys(stored: DictConfig, config: DictConfig) -> list[str]:
    """Keys whose change would change a run's result, `regime` and `experiment` first."""
    before, now = _flat(stored), _flat(config)
    differing = [
        path
        for path in sorted(before.keys() | now.keys())
        if before.get(path) != now.get(path) and not is_within(path, RESUMABLE)
    ]
    return sorted(differing, key=lambda path: path not in ("regime", "experiment"))


def _flat(config: DictConfig) -> dict[str, Any]:
    """Values by dotted key; an empty section has none."""
    flat = flatten(cast(dict[str, Any], OmegaConf.to_container(config, resolve=True)))
    return {path: value for path, value in flat.items() if value != {}}
