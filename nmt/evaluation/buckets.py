"""Buckets of sentence length."""

from collections.abc import Iterator, Sequence

import numpy as np


def buckets(edges: Sequence[int]) -> list[tuple[int, int | None]]:
    """Returns the first and last length of each bucket; None as the last of the open bucket.

    Args:
        edges: last length of each bucket, ascending from 1 or more.

    >>> buckets([10, 20])
    [(1, 10), (11, 20), (21, None)]
    """
    lasts = list(edges)
    return list(zip([1, *(last + 1 for last in lasts)], [*lasts, None], strict=True))


def bucket_name(first: int, last: int | None) -> str:
    """The name of a bucket.

    >>> bucket_name(11, 20), bucket_name(20, 20), bucket_name(61, None)
    ('11-20', '20', '61+')
    """
    if last is None:
        return f"{first}+"
    return f"{first}" if first == last else f"{first}-{last}"


def assign(lengths: Sequence[int] | np.ndarray, edges: Sequence[int]) -> np.ndarray:
    """Returns the index in `buckets(edges)` of each length; 0 counts as 1: (N,) -> (N,) int64."""
    return np.searchsorted(np.asarray(edges), np.asarray(lengths), side="left").astype(np.int64)


def split_by_length(
    lengths: np.ndarray, edges: Sequence[int]
) -> Iterator[tuple[int, int | None, np.ndarray]]:
    """Yields first and last length of each bucket, and which lengths are inside it: (N,) bool."""
    indices = assign(lengths, edges)
    for index, (first, last) in enumerate(buckets(edges)):
        yield first, last, indices == index
