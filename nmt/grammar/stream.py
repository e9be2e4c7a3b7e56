"""Random numbers that are the same on every machine, and draws from weighted lists by them.

A stream is named by a text and made block by block by SHAKE-128 of the name and the block's
number, so that it depends on no library generator. Weights are sums and quotients of small
numbers (exact under IEEE 754; no logarithm or power, which differ between C libraries).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from hashlib import shake_128
from typing import Generic, TypeVar

Item = TypeVar("Item")
Draw = Callable[[], int]

RANGE = 1 << 32
_BLOCK = 384
_unpack = struct.Struct(f"<{_BLOCK}I").unpack


def _numbers(name: str) -> Iterator[int]:
    block = 0
    while True:
        yield from _unpack(shake_128(f"{name}\n{block}".encode()).digest(4 * _BLOCK))
        block += 1


def stream(name: str) -> Draw:
    """A function whose n-th call gives the n-th 32-bit number of the stream called `name`."""
    return _numbers(name).__next__


def threshold(probability: float) -> int:
    """The number that a share `probability` of the 32-bit numbers lies below."""
    return int(probability * RANGE)


class Weighted(Generic[Item]):
    """A list drawn from in proportion to weights."""

    __slots__ = ("_bounds", "items")

    def __init__(self, items: Sequence[Item], weights: Sequence[float]) -> None:
        total = sum(weights)
        self.items = list(items)
        self._bounds: list[int] = []
        below = 0.0
        for weight in weights[:-1]:
            below += weight
            self._bounds.append(int(below / total * RANGE))

    def pick(self, draw: Draw) -> Item:
        return self.items[bisect_right(self._bounds, draw())]
