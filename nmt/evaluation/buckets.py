"""Buckets of sentence length."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def buckets(edges: Sequence[int]) -> list[tuple[int, int | None]]:
    """Returns the smallest and largest length of each bucket; the last bucket has no largest length (None).

    Args:
        edges: largest length of each bucket except the last one; ascending, at least 1.

    >>> buckets([10, 20])
    [(1, 10), (11, 20), (21, None)]
    """
    return list(zip([1, *(last + 1 for last in edges)], [*edges, None], strict=True))


def bucket_name(first: int, last: int | None) -> str:
    """Returns the name of a bucket.

    >>> bucket_name(11, 20), bucket_name(20, 20), bucket_name(61, None)
    ('11-20', '20', '61+')
    """
    if last is None:
        return f"{first}+"
    return f"{first}" if first == last else f"{first}-{last}"


def assign(lengths: Sequence[int] | np.ndarray, edges: Sequence[int]) -> np.ndarray:
    """Returns the bucket index of each length, (N,) -> (N,) int64; length 0 is in the first bucket."""
    return np.searchsorted(edges, lengths).astype(np.int64)


def parts_by_length(
    lengths: np.ndarray, edges: Sequence[int] | None
) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Yields a description and a mask of the whole test set, then of each bucket.

    Args:
        lengths: (N,) sentence lengths.
        edges: largest length of each bucket, or None for the whole set only.

    Yields:
        A dictionary with `bucket` (such as `all` or `1-10`), `from` and `to`, and a mask (N,) bool of
        the sentences in the bucket.
    """
    yield {"bucket": "all", "from": None, "to": None}, np.ones(len(lengths), dtype=bool)
    indices = assign(lengths, edges or ())
    for index, (first, last) in enumerate(buckets(edges) if edges is not None else ()):
        yield {"bucket": bucket_name(first, last), "from": first, "to": last}, indices == index
