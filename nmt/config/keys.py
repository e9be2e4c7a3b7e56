"""How a key is declared (`key`: default, meaning, bounds), and functions over dotted keys."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, get_type_hints

EDGES = (10, 20, 30, 40, 50, 60)  # last length of each bucket where nothing says another
CONFIDENCE = 0.95  # share of the resamples inside an interval, likewise
MOST_RESAMPLES = 100_000  # of which a few figures each are held in memory
TYPES = {int: "whole number", float: "number", bool: "true or false", str: "text", Any: "value"}


def key(
    default: Any,
    meaning: str,
    *,
    choices: tuple[Any, ...] | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    word: str | None = None,
    path: bool = False,
    runtime: bool = False,
    resumable: bool | None = None,
) -> Any:
    """A configuration key: default, one-line meaning, and the values `nmt.config.validation` accepts.

    Args:
        word: what may stand in place of a number.
        path: names files or folders, of which none has an empty name.
        runtime: where a run is made, and what is kept and said of it: nothing that it learns or
            scores depends on it. Of a section: all of its keys.
        resumable: may change when a run is resumed, as every `runtime` key may; False for a key of a
            section that may.
    """
    bounds = {
        "choices": choices,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "below": below,
        "word": word,
        "path": path or None,
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


def entries(schema: type, path: str = "") -> Iterator[tuple[str, dataclasses.Field[Any], Any]]:
    """The keys of a schema, in order: dotted name, field and annotation."""
    hints = get_type_hints(schema)
    for entry in dataclasses.fields(schema):
        factory = entry.default_factory
        if isinstance(factory, type) and dataclasses.is_dataclass(factory):
            yield from entries(factory, f"{path}{entry.name}.")
        else:
            yield path + entry.name, entry, hints[entry.name]


def marked(schema: type, mark: str, value: bool = True, path: str = "") -> Iterator[str]:
    """The dotted names of the sections and keys that were declared with `key(..., mark=value)`.

    Keys inside such a section are not listed.
    """
    for entry in dataclasses.fields(schema):
        factory = entry.default_factory
        if entry.metadata[mark] is value:
            yield path + entry.name
        elif isinstance(factory, type) and dataclasses.is_dataclass(factory):
            yield from marked(factory, mark, value, f"{path}{entry.name}.")


def completed(
    schema: type, stored: Mapping[str, Any], without: Iterable[str] = ()
) -> dict[str, Any]:
    """A stored configuration with the defaults of the keys that it lacks.

    Left out are the keys `without`, dotted, and defaults that refer to other keys.
    """
    config = copy.deepcopy(dict(stored))
    for path, entry, _ in entries(schema):
        if is_within(path, without):
            continue
        *sections, name = path.split(".")
        inside: Any = config
        for section in sections:
            inside = inside.setdefault(section, {}) if isinstance(inside, dict) else None
        if not isinstance(inside, dict) or name in inside:
            continue
        default = entry.default
        if entry.default_factory is not dataclasses.MISSING:
            default = entry.default_factory()
        if not (isinstance(default, str) and default.startswith("${")):
            inside[name] = default
    return config


def inherited(schema: type) -> set[str]:
    """Names of the fields that a schema has unchanged from the one it extends."""
    names = {entry.name for entry in dataclasses.fields(schema)}
    return names - set(inspect.get_annotations(schema))


def type_name(hint: Any) -> str:
    """A type annotation as the documentation writes it.

    >>> type_name(list[int]), type_name(str | None), type_name(dict[str, dict[str, str]])
    ('list of whole number', 'text or null', 'dictionary of dictionary of text')
    >>> type_name(int | str)
    'whole number or text'
    """
    if isinstance(hint, types.UnionType):
        hints = typing.get_args(hint)
        parts = [type_name(part) for part in hints if part is not types.NoneType]
        return " or ".join([*parts, *(["null"] if types.NoneType in hints else [])])
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is not None:
        return f"{'list' if origin is list else 'dictionary'} of {type_name(inner[-1])}"
    return TYPES[hint]


def bounds(accepts: Mapping[str, Any]) -> str:
    """The bounds of a key as text; empty: all values of its type.

    >>> bounds({"minimum": 0, "below": 1}), bounds({"choices": ("a", "b")}), bounds({})
    ('from 0, below 1', 'a, b', '')
    >>> bounds({"minimum": 1, "word": "auto"})
    'auto, from 1'
    """
    if "choices" in accepts:
        return ", ".join(map(str, accepts["choices"]))
    words = {"minimum": "from", "above": "above", "maximum": "to", "below": "below"}
    numbers = [f"{word} {accepts[name]}" for name, word in words.items() if name in accepts]
    return ", ".join([*([accepts["word"]] if "word" in accepts else []), *numbers])
