"""`Memory`: the encoded source sentences that the decoder attends to; and a search's bookkeeping.

B batch, S source length, A annotation, N alignment, K hypotheses a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

Fields = TypeVar("Fields", bound=tuple[Any, ...])


class Memory(NamedTuple):
    """The encoded sentences of a batch."""

    annotations: Tensor  # (B, S, A) h_j
    keys: Tensor | None  # (B, S, N) U_a h_j; None for a fixed context
    mask: Tensor  # (B, S) bool, True on real positions
    summary: Tensor  # (B, H) ←h_1 of a bidirectional encoder, →h_Tx of a forward one


def select(fields: Fields, rows: Tensor) -> Fields:
    """The sentences `rows` (indices) of a memory, a state or an attention, in that order."""
    return _each(fields, lambda field: field[rows])


def reorder(fields: Fields, places: Tensor) -> Fields:
    """Each hypothesis (B', K') becomes the former one `places[b, k]`.

    Place b * K + k is that of hypothesis k of sentence b.
    """
    rows = places.flatten()

    def take(field: Tensor) -> Tensor:  # (B, K, ...) -> (B', K', ...)
        return field.flatten(0, 1).index_select(0, rows).unflatten(0, places.shape)

    return _each(fields, take)


def _each(fields: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """A tuple of tensors, None and further tuples, with the function applied to each tensor."""
    if fields is None:
        return None
    if isinstance(fields, Tensor):
        return function(fields)
    mapped = [_each(field, function) for field in fields]
    return type(fields)(*mapped) if hasattr(fields, "_fields") else tuple(mapped)
