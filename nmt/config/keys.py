"""Declares configuration keys (default, meaning, bounds), and lists the keys of a schema."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Iterator, Mapping
from typing import Any

EDGES = (10, 20, 30, 40, 50, 60)  # default maximum words per bucket; an open bucket follows
CONFIDENCE = 0.95  # share of the resamples inside a confidence interval

LIMITS = {
    "minimum": (operator.ge, "at least"),
    "above": (operator.gt, "above"),
    "maximum": (operator.le, "at most"),
    "below": (operator.lt, "below"),
}

# Effects: what a key changes. The effect decides which commands may change the key of an existing run.
WEIGHTS = "weights"  # fixed: the weights and vocabularies fit no other value
TRAINING = "training"  # what the model learns; ckpt_path may change it
LENGTH = "length"  # when the training ends; resume and ckpt_path may change it
TESTS = "tests"  # search, scores and test sets; resume and ckpt_path may change it
MACHINE = "machine"  # devices, folders and output; runs that differ only in these count as equal
LOCAL = "local"  # like machine; evaluations never read the key from a checkpoint
INCIDENTAL = (MACHINE, LOCAL)
RESUMABLE = (LENGTH, TESTS, *INCIDENTAL)


def key(default: Any, meaning: str, effect: str | None = None, **bounds: Any) -> Any:
    """Declares a configuration key: default (value or section), one-line meaning, effect and bounds.

    A key without an effect has the effect of its section. The bound `inside` holds the effect
    of each entry of a dictionary. The other bounds are `choices` and the keys of `LIMITS`; for a list,
    they apply to each item.
    """
    metadata = {"meaning": meaning, "effect": effect, **bounds}
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=metadata)
    if isinstance(default, list | dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def problem(value: Any, accepts: Mapping[str, Any]) -> str | None:
    """Says what is wrong with a value of the right type; None if it is within the bounds of its key.

    >>> problem(-1, {"minimum": 0}), problem("auto", {"minimum": 0}), problem(1, {"choices": (1, 2)})
    ('must be at least 0', None, None)
    """
    if isinstance(value, list):
        return next((wrong for item in value if (wrong := problem(item, accepts))), None)
    if "choices" in accepts and value not in accepts["choices"]:
        return "must be one of " + ", ".join(map(str, accepts["choices"]))
    if value in ("False", "True"):  # OmegaConf makes these texts of YAML booleans such as no
        return "YAML reads no, off, yes and on as booleans; quote the word, such as 'no'"
    if not isinstance(value, int | float):
        return None
    if not math.isfinite(value):
        return "must be a finite number"
    for name, (holds, words) in LIMITS.items():
        if name in accepts and not holds(value, accepts[name]):
            return f"must be {words} {accepts[name]}"
    return None


def described(entry: dataclasses.Field[Any]) -> str:
    """Describes type and bounds of a key, such as `int, at least 1`."""
    if "choices" in entry.metadata:
        return ", ".join(map(str, entry.metadata["choices"]))
    bounds = [
        f"{w} {entry.metadata[name]}" for name, (_, w) in LIMITS.items() if name in entry.metadata
    ]
    return ", ".join([str(entry.type), *bounds])


def entries(schema: type, path: str = "") -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Yields dotted name and field of each key of a schema, in order."""
    for entry in dataclasses.fields(schema):
        section = entry.default_factory
        if isinstance(section, type) and dataclasses.is_dataclass(section):
            yield from entries(section, f"{path}{entry.name}.")
        else:
            yield path + entry.name, entry


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
