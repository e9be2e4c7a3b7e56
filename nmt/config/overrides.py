"""Applies overrides to the configuration of a checkpoint, and compares two configurations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser

from nmt.config.commands import CheckpointConfig, TrainConfig
from nmt.config.loading import check_together, load_plain
from nmt.config.schema import Config, to_containers
from nmt.utils.commands import override_key
from nmt.utils.errors import InputError

# The keys that each group sets
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

# Keys that change neither what a run learns nor how it is scored: devices, folders, output
RUNTIME_KEYS = (
    "threads",
    "tags",
    "trust",
    "resume",
    "logger",
    "report",
    "data.root",
    "data.cache",
    "data.workers",
    "model.kernels",
    "model.graphs",
    "trainer.accelerator",
    "trainer.devices",
    "trainer.num_nodes",
    "trainer.strategy",
    "trainer.log_every_n_steps",
    "trainer.enable_progress_bar",
    "trainer.enable_model_summary",
    "trainer.profiler",
    "trainer.deterministic",
    "trainer.benchmark",
)
# A resumed run may change these; of them its final weights depend on the number of updates alone.
RESUMABLE_KEYS = (
    *RUNTIME_KEYS,
    "name",
    "data.test",
    "search",
    "evaluation",
    "stress",
    "trainer.max_steps",
    "trainer.max_epochs",
    "trainer.max_time",
)

# Keys that are never read from a checkpoint: somebody else may have written it, and its number of
# threads was chosen for another machine
HERE = ("trust", "threads", "logger", "data.cache")

# Keys that weights and vocabularies depend on; FREE: the ones among them that only affect training
KIND = ("model", "tokenizer", "data.languages", "data.reverse_source")
FREE = ("model.init", "model.dropout", "model.recurrence", "model.kernels", "model.graphs")


def apply_overrides(
    stored: TrainConfig, composed: TrainConfig | CheckpointConfig, overrides: Sequence[str]
) -> TrainConfig:
    """Applies the overrides of the command line to the configuration of a checkpoint.

    Args:
        stored: configuration of the checkpoint; not changed.
        composed: configuration of the running command, from defaults and `overrides`.
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
        f"{path}={json.dumps(needs)}"
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
    old, new = (flatten(to_containers(each)) for each in (before, now))
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
