"""Declares configuration keys (default, meaning, effect, bounds), and lists the keys of a schema."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Iterator, Mapping
from typing import Any

EDGES = (10, 20, 30, 40, 50, 60)  # maximum words of each default length bucket except the last
MAX_LENGTH = 10**9  # maximum length of a sentence or document in words or another unit
MAX_RESAMPLES = 100_000
CONFIDENCE = 0.95  # confidence level of the bootstrap intervals

LIMITS = {
    "minimum": (operator.ge, "at least"),
    "above": (operator.gt, "above"),
    "maximum": (operator.le, "at most"),
    "below": (operator.lt, "below"),
}

# The effect of a key says what depends on the key. `resume` and `ckpt_path`, which continue a run, may
# change only keys with certain effects.
WEIGHTS = "weights"  # shapes of the weights, and vocabularies; no command may change the key
TRAINING = "training"  # what the model learns; `ckpt_path` may change the key
LENGTH = "length"  # when training ends; `resume` and `ckpt_path` may change the key
TESTS = "tests"  # search, scores and test sets; `resume` and `ckpt_path` may change the key
MACHINE = "machine"  # devices, folders and output; comparisons of runs ignore the key
LOCAL = "local"  # like MACHINE, but an evaluation ignores the value in the checkpoint
INCIDENTAL = (MACHINE, LOCAL)
RESUMABLE = (LENGTH, TESTS, *INCIDENTAL)


def key(default: Any, meaning: str, effect: str | None = None, **bounds: Any) -> Any:
    """Declares a configuration key with its default (a value or section class), meaning, effect and bounds.

    A key without an effect has the effect of its section. If its value is a dictionary, `inside` maps the
    entries to their effects. The bounds are `choices` and the keys of `LIMITS`. For a list, they apply to
    each item.
    """
    metadata = {"meaning": meaning, "effect": effect, **bounds}
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=metadata)
    if isinstance(default, list | dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def problem(value: Any, accepts: Mapping[str, Any]) -> str | None:
    """Describes how a value violates the bounds of its key; returns None for an allowed value.

    >>> problem(-1, {"minimum": 0}), problem("auto", {"minimum": 0}), problem(1, {"choices": (1, 2)})
    ('must be at least 0', None, None)
    """
    if isinstance(value, list):
        return next((wrong for item in value if (wrong := problem(item, accepts))), None)
    if "choices" in accepts and value not in accepts["choices"]:
        return "must be one of " + ", ".join(map(str, accepts["choices"]))
    if value in ("False", "True"):  # OmegaConf converts YAML booleans to these strings
        return "YAML reads no, off, yes and on as booleans; quote the word, such as 'no'"
    if not isinstance(value, int | float):
        return None
    if not math.isfinite(value):
        return "must be a finite number"
    for name, (holds, words) in LIMITS.items():
        if name in accepts and not holds(value, accepts[name]):
            return f"must be {words} {accepts[name]}"
    return "must be below 2^63" if isinstance(value, int) and abs(value) >= 2**63 else None


def described(entry: dataclasses.Field[Any]) -> str:
    """Describes the type and bounds of a key, such as `int, at least 1`."""
    if "choices" in entry.metadata:
        return ", ".join(map(str, entry.metadata["choices"]))
    bounds = [
        f"{w} {entry.metadata[name]}" for name, (_, w) in LIMITS.items() if name in entry.metadata
    ]
    kind = "text, a list or a dictionary" if entry.type == "Any" else str(entry.type)
    return ", ".join([kind, *bounds])


def entries(schema: type, path: str = "") -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """Yields the dotted name and the field of each key of a schema."""
    for entry in dataclasses.fields(schema):
        section = entry.default_factory
        if isinstance(section, type) and dataclasses.is_dataclass(section):
            yield from entries(section, f"{path}{entry.name}.")
        else:
            yield path + entry.name, entry
