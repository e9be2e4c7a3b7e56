"""Random numbers and weighted lists that are the same on every machine.

The name of a stream determines its random numbers: SHAKE-128 computes each block of numbers from the name
and the number of the block. Weights and bounds of weighted lists are computed from sums, quotients and square
roots, because IEEE 754 defines these operations exactly. Logarithms and powers would differ between C libraries.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from hashlib import shake_128
from itertools import chain, count
from typing import Generic, TypeVar

Item = TypeVar("Item")
Draw = Callable[[], int]

RANGE = 1 << 32
_BLOCK = 384  # random numbers per block
_unpack = struct.Struct(f"<{_BLOCK}I").unpack


def stream(name: str) -> Draw:
    """Returns a function whose n-th call returns the n-th 32-bit number of the stream `name`."""
    blocks = (
        _unpack(shake_128(f"{name}\n{block}".encode()).digest(4 * _BLOCK)) for block in count()
    )
    return chain.from_iterable(blocks).__next__


class Weighted(Generic[Item]):
    """A list whose items are picked in proportion to their weights."""

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
