"""`Memory` with the encoded source sentences, and `select` and `reorder` for a beam search.

Sizes: B batch, S source length, A annotation, N key, H state, K hypotheses per sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

Fields = TypeVar("Fields", bound=tuple[Any, ...])


class Memory(NamedTuple):
    """The encoded sentences of a batch, which the decoder attends to."""

    annotations: Tensor  # (B, S, A) h_j
    keys: Tensor | None  # (B, S, N) U_a h_j; None for a fixed context
    mask: Tensor  # (B, S) bool, False on padding
    summary: Tensor  # (B, H) ←h_1 of a bidirectional encoder, →h_Tx of a forward encoder


def select(fields: Fields, rows: Tensor) -> Fields:
    """Selects the sentences with indices `rows` from a memory, a state or an attention output."""
    return _each(fields, lambda field: field[rows])


def reorder(fields: Fields, indices: Tensor) -> Fields:
    """Selects and reorders the hypotheses of a state or attention output by `indices` (B', K').

    The new hypothesis k of sentence b is the old hypothesis with the flat index `indices[b, k]`. The flat
    index of the old hypothesis n of sentence m is m * K + n.
    """
    rows = indices.flatten()

    def take(field: Tensor) -> Tensor:  # (B, K, ...) -> (B', K', ...)
        return field.flatten(0, 1).index_select(0, rows).unflatten(0, indices.shape)

    return _each(fields, take)


def _each(fields: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Applies `function` to each tensor of nested tuples. None stays None."""
    if fields is None:
        return None
    if isinstance(fields, Tensor):
        return function(fields)
    mapped = [_each(field, function) for field in fields]
    return type(fields)(*mapped) if hasattr(fields, "_fields") else tuple(mapped)
