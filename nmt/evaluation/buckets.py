"""Buckets of sentence length."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nmt.utils.errors import InputError


@dataclass(frozen=True)
class Bucket:
    """The lengths `first` to `last`, both included; `last` is None for the open bucket.

    >>> Bucket(11, 20).name, Bucket(20, 20).name, Bucket(61, None).name
    ('11-20', '20', '61+')
    """

    first: int
    last: int | None

    @property
    def name(self) -> str:
        if self.last is None:
            return f"{self.first}+"
        return f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"

    def row(self) -> dict[str, int | None]:
        """The head of a row of `by_length` in results.json."""
        return {"from": self.first, "to": self.last}


def buckets(edges: Sequence[int]) -> list[Bucket]:
    """The buckets that the edges cut lengths into: one for each edge and the open one.

    Args:
        edges: last length of each bucket, ascending from 1 or more.

    Raises:
        InputError: if the edges do not ascend, naming the key.

    >>> [bucket.name for bucket in buckets([10, 20])]
    ['1-10', '11-20', '21+']
    """
    lasts = list(edges)
    if any(low >= high for low, high in zip([0, *lasts], lasts, strict=False)):
        raise InputError(
            f"evaluation.edges={lasts}: must ascend from 1 or more, such as [10, 20, 30]"
        )
    firsts = [1, *(last + 1 for last in lasts)]
    return [Bucket(first, last) for first, last in zip(firsts, [*lasts, None], strict=True)]


def assign(lengths: Sequence[int] | np.ndarray, edges: Sequence[int]) -> np.ndarray:
    """The position in `buckets(edges)` of each length: (N,) -> (N,) int64.

    A length of 0 counts as 1.

    >>> assign([1, 10, 11, 99], [10, 20]).tolist()
    [0, 0, 1, 2]
    """
    return np.searchsorted(np.asarray(edges), np.asarray(lengths), side="left").astype(np.int64)
