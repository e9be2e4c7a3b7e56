"""How a key is declared (`key`: default, meaning, bounds), and functions over dotted keys."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from omegaconf import ListConfig

EDGES = (10, 20, 30, 40, 50, 60)  # last length of each bucket by default
CONFIDENCE = 0.95  # share of the resamples inside an interval


def key(
    default: Any,
    meaning: str,
    *,
    choices: tuple[Any, ...] | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    runtime: bool = False,
    resumable: bool = False,
) -> Any:
    """A configuration key: default, one-line meaning, and the values that `problem` accepts.

    Args:
        runtime: what a run learns and scores does not depend on the key. Of a section: all its keys.
        resumable: the key may change when a run is resumed, as every `runtime` key may.
    """
    bounds = {
        "choices": choices,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "below": below,
    }
    metadata = {
        "meaning": meaning,
        **{name: bound for name, bound in bounds.items() if bound is not None},
        "runtime": runtime,
        "resumable": runtime or resumable,
    }
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def problem(value: Any, accepts: Mapping[str, Any]) -> str | None:
    """What is wrong with a value of the right type; None if it is within the bounds of its key.

    >>> problem(-1, {"minimum": 0}), problem("auto", {"minimum": 0}), problem(1, {"choices": (1, 2)})
    ('must be at least 0', None, None)
    """
    if isinstance(value, ListConfig):
        return next((found for item in value if (found := problem(item, accepts))), None)
    if "choices" in accepts and value not in accepts["choices"]:
        return "must be one of " + ", ".join(map(str, accepts["choices"]))
    if not isinstance(value, int | float):
        return None
    if not math.isfinite(value):
        return "must be a finite number"
    if value < accepts.get("minimum", value):
        return f"must be at least {accepts['minimum']}"
    if value > accepts.get("maximum", value):
        return f"must be at most {accepts['maximum']}"
    if "above" in accepts and value <= accepts["above"]:
        return f"must be above {accepts['above']}"
    if "below" in accepts and value >= accepts["below"]:
        return f"must be below {accepts['below']}"
    return None


def described(entry: dataclasses.Field[Any]) -> str:
    """Type and bounds of a key as text, such as `int, from 1`."""
    if "choices" in entry.metadata:
        return ", ".join(map(str, entry.metadata["choices"]))
    words = {"minimum": "from", "above": "above", "maximum": "to", "below": "below"}
    bounds = [
        f"{word} {entry.metadata[name]}" for name, word in words.items() if name in entry.metadata
    ]
    return ", ".join([str(entry.type), *bounds])


def entries(schema: type, path: str = "") -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """The keys of a schema, in order: dotted name and field."""
    for entry in dataclasses.fields(schema):
        factory = entry.default_factory
        if isinstance(factory, type) and dataclasses.is_dataclass(factory):
            yield from entries(factory, f"{path}{entry.name}.")
        else:
            yield path + entry.name, entry


def marked(schema: type, mark: str, path: str = "") -> Iterator[str]:
    """The dotted names of the sections and keys that were declared with `key(..., mark=True)`.

    Keys inside such a section are not listed.
    """
    for entry in dataclasses.fields(schema):
        factory = entry.default_factory
        if entry.metadata[mark]:
            yield path + entry.name
        elif isinstance(factory, type) and dataclasses.is_dataclass(factory):
            yield from marked(factory, mark, f"{path}{entry.name}.")


def inherited(schema: type) -> set[str]:
    """Names of the fields that a schema has unchanged from the one it extends."""
    names = {entry.name for entry in dataclasses.fields(schema)}
    return names - set(inspect.get_annotations(schema))


def is_within(path: str, prefixes: Iterable[str]) -> bool:
    """Whether a dotted key is one of `prefixes`, or in a section that is.

    >>> is_within("logger.mode", ["logger"]), is_within("loggers", ["logger"])
    (True, False)
    """
    return any(path == prefix or path.startswith(f"{prefix}.") for prefix in prefixes)


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one mapping with dotted keys; an empty mapping stays a value."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat
