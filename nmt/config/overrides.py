"""Command-line overrides applied to the configuration stored in a checkpoint.

A command that starts from a checkpoint, and a resumed training, take the stored configuration, and
of the composed one only the keys and groups that were typed on the command line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from nmt.config.keys import flatten, inherited, is_within, marked
from nmt.config.model import SizeConfig
from nmt.config.schema import Config, EvaluateConfig, TrainConfig
from nmt.utils.errors import InputError

GROUPS = {
    "encoder": ["model.encoder"],
    "unit": ["model.unit"],
    "attention": ["model.attention"],
    "scoring": [
        "model.scoring",
        "model.projection_init_exponent",
        "model.projection_lr_exponent",
    ],
    "model": ["model"],
    "size": ["size", *(f"model.{entry.name}" for entry in dataclasses.fields(SizeConfig))],
    "tokenizer": ["tokenizer"],
    "data": ["data", "tokenizer"],
    "optimizer": ["optimizer"],
    "schedule": ["optimizer.schedule"],
    "callbacks": ["callbacks"],
    # a trainer is a choice of devices; how long and how precisely is the regime's and the run's
    "trainer": [
        "trainer.accelerator",
        "trainer.devices",
        "trainer.num_nodes",
        "trainer.strategy",
    ],
    "search": ["search"],
    "logger": ["logger"],
    "stress": ["stress"],
}
NAMES = ("experiment", "regime")  # groups that set keys everywhere, and the key that names them

# What may change when a run is resumed: nothing here changes the weights it ends with, but for the
# number of updates. Of these, FROZEN stays: search.max_ratio ends the translations that choose the best.
RESUMABLE = tuple(marked(TrainConfig, "resumable"))
FROZEN = tuple(marked(TrainConfig, "resumable", False))


def command_keys(command: type) -> tuple[str, ...]:
    """The keys of a command that are not those of a training run, and `trust`."""
    own = {entry.name for entry in dataclasses.fields(command)} - inherited(command)
    return (*sorted(own), "trust")


def parsed(overrides: Sequence[str]) -> list[Override]:
    """Overrides of a command line as Hydra reads them."""
    found: list[Override] = OverridesParser.create().parse_overrides(list(overrides))
    return found


def group_paths(name: str) -> list[str]:
    """The configuration paths that a group sets, or the key itself."""
    return GROUPS.get(name, [name])


def typed_paths(overrides: Sequence[str], command: type[Config] | None = None) -> list[str]:
    """The configuration paths that command line overrides set, groups expanded.

    Args:
        overrides: as typed.
        command: schema of a command that starts from a checkpoint: of a group that part is taken
            which it may set; its own keys are passed over. None: all may be set.

    Raises:
        InputError: for a path or a group of which nothing may be set.
    """
    only = command.overridable if command else ()
    own = command_keys(command) if command else ()
    paths: list[str] = []
    for override in parsed(overrides):
        name = override.key_or_group
        if name in NAMES or name in own:
            continue
        chosen = [name]
        if name in GROUPS and isinstance(override.value(), str | None):
            chosen = [inner for path in GROUPS[name] for inner in _part(path, only)]
        if not chosen or (only and not all(is_within(path, only) for path in chosen)):
            tests = EvaluateConfig.overridable
            if all(is_within(path, tests) for path in group_paths(name)):
                raise InputError(f"{name}: not used by this command; type it to nmt.evaluate")
            raise InputError(f"{name}: belongs to the training run; this command cannot change it")
        paths += chosen
    return list(dict.fromkeys(paths))


def apply_typed(
    stored: DictConfig,
    composed: DictConfig,
    overrides: Sequence[str],
    command: type[Config] | None = None,
    keep: Sequence[str] = (),
    here: Sequence[str] = (),
) -> DictConfig:
    """The stored configuration with the overrides applied.

    Args:
        stored: of a checkpoint; not changed.
        composed: by Hydra from defaults and `overrides`. A group that was typed takes the values
            that it has in the stored regime and experiment, for which it is composed once more.
        overrides: as typed, `HydraConfig.get().overrides.task`.
        command: schema of a command that may change only its `overridable` part; None: all.
        keep: keys that a group does not change, only they themselves.
        here: keys and sections that are the composed ones, whatever is stored.

    Raises:
        InputError: for an experiment or regime other than the stored one, or a path that is not overridable.
    """
    _refuse_other_names(stored, composed, overrides)
    config, composed = stored.copy(), _in_regime_of(stored, composed, overrides)
    OmegaConf.resolve(composed)
    deleted = {o.key_or_group for o in parsed(overrides) if o.is_delete()}
    with open_dict(config):
        for path in here:
            OmegaConf.update(config, path, OmegaConf.select(composed, path), merge=False)
        for path in typed_paths(overrides, command):
            parent, _, name = path.rpartition(".")
            if path in deleted - set(GROUPS):
                inside = OmegaConf.select(config, parent) if parent else config
                if inside is not None:  # what is not there needs no deleting
                    inside.pop(name, None)
                continue
            OmegaConf.update(config, path, OmegaConf.select(composed, path), merge=False)
        for path in set(keep) - {override.key_or_group for override in parsed(overrides)}:
            OmegaConf.update(config, path, OmegaConf.select(stored, path))
    return config


def refuse_changes(stored: DictConfig, config: DictConfig) -> None:
    """Refuses to resume a run whose result would change.

    Raises:
        InputError: naming the first key that differs, the stored value and the typed one.
    """
    before, now = _flat(stored), _flat(config)
    for path in sorted(before.keys() | now.keys()):
        free = is_within(path, RESUMABLE) and path not in FROZEN
        if before.get(path) != now.get(path) and not free:
            raise InputError(
                f"{path}={now.get(path)}: the run was started with {before.get(path)}; resuming "
                "it cannot change this, start a new run instead"
            )


def _in_regime_of(stored: DictConfig, composed: DictConfig, overrides: Sequence[str]) -> DictConfig:
    """`overrides` composed with the stored regime and experiment where none were typed."""
    typed = {override.key_or_group for override in parsed(overrides)}
    if not typed & set(GROUPS) or not HydraConfig.initialized():
        return composed.copy()
    loader = GlobalHydra.instance().config_loader()
    named = [] if "regime" in typed else [f"regime={stored.regime}"]
    if "experiment" not in typed and stored.experiment in loader.get_group_options("experiment"):
        named.append(f"+experiment={stored.experiment}")
    config = loader.load_configuration(
        HydraConfig.get().job.config_name, [*named, *overrides], RunMode.RUN
    )
    with open_dict(config):
        del config["hydra"]
    return config


def _refuse_other_names(stored: DictConfig, composed: DictConfig, overrides: Sequence[str]) -> None:
    for override in parsed(overrides):
        name = override.key_or_group  # a file of one's own may set no name: compare what it set
        if name in NAMES and composed[name] != stored[name]:
            raise InputError(
                f"{name}={override.value()}: the checkpoint is of {name}={stored[name]}"
            )


def _part(path: str, only: Sequence[str]) -> list[str]:
    """The part of a configuration path that may be set: itself, or the paths of `only` inside it."""
    if not only or is_within(path, only):
        return [path]
    return [inner for inner in only if inner.startswith(f"{path}.")]


def _flat(config: DictConfig) -> dict[str, Any]:
    """Values by dotted key; an empty section has none."""
    found = flatten(cast(dict[str, Any], OmegaConf.to_container(config, resolve=True)))
    return {path: value for path, value in found.items() if value != {}}
