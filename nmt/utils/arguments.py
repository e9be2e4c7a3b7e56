"""Arguments of the functions in Python."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value")
PATH = (str, Path)


def plain(value: Any) -> Any:
    """A number of NumPy's as Python's, which a configuration takes; any other value as it is."""
    return value.item() if hasattr(value, "item") else value


def checked(value: Value, name: str, of: type | tuple[type, ...]) -> Value:
    """A value of a class, or of one of several; raises TypeError naming the argument for any other."""
    if not isinstance(value, of):
        wanted = " or ".join(each.__name__ for each in (of if isinstance(of, tuple) else (of,)))
        raise TypeError(f"{name}: {wanted} is expected, not {type(value).__name__}")
    return value


def listed(values: Iterable[Value], name: str, of: type | tuple[type, ...] = object) -> list[Value]:
    """Several values, each as `checked`.

    Raises:
        TypeError: naming the argument, for a value alone, such as a text, whose letters would be
            taken for values, and for one of another class.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: a list is expected; put the one into brackets")
    return [checked(value, f"{name}[{number}]", of) for number, value in enumerate(values)]
