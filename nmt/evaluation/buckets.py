"""Buckets of sentence length."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def buckets(edges: Sequence[int]) -> list[tuple[int, int | None]]:
    """Returns the first and the last length of each bucket; the last bucket is open and ends at None.

    Args:
        edges: last length of each bucket but the open one; ascending, at least 1.

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
    """Returns each length's index in `buckets(edges)`: (N,) -> (N,) int64. Length 0 counts as 1."""
    return np.searchsorted(edges, lengths).astype(np.int64)


def parts_by_length(
    lengths: np.ndarray, edges: Sequence[int] | None
) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Yields the whole set, then each bucket: the columns that name it, and a mask of its lengths.

    Args:
        lengths: (N,)
        edges: last length of each bucket; None: yields the whole set only.

    Yields:
        A dictionary with `bucket` (such as `all` or `1-10`), `from` and `to`; and which of the lengths
        are inside, (N,) bool.
    """
    yield {"bucket": "all", "from": None, "to": None}, np.ones(len(lengths), dtype=bool)
    indices = assign(lengths, edges or ())
    for index, (first, last) in enumerate(buckets(edges) if edges is not None else ()):
        yield {"bucket": bucket_name(first, last), "from": first, "to": last}, indices == index
