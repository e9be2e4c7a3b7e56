"""Checks of arguments that the functions of the Python interface share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Value = TypeVar("Value")


def listed(values: Iterable[Value], name: str) -> list[Value]:
    """Several values; raises TypeError for a text, whose letters would be taken for them."""
    if isinstance(values, str):
        raise TypeError(f"{name}: a list is expected; put the one into brackets")
    return list(values)
