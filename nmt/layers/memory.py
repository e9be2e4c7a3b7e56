"""`Memory`: the encoded source sentences that the decoder attends to."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Memory(NamedTuple):
    """The encoded sentences of a batch (B batch, S source length, A annotation, N alignment).

    A search forms many contexts of one sentence, so that the `products` of the annotations with the
    decoder's matrices are computed in advance (`Decoder.precompute`).
    """

    annotations: Tensor  # (B, S, A) h_j
    keys: Tensor | None  # (B, S, N) U_a h_j; None for a fixed context
    mask: Tensor  # (B, S) bool, True on real positions
    summary: Tensor  # (B, H) ←h_1 of a bidirectional encoder, →h_Tx of a forward one
    products: Tensor | None = None  # (B, S, P) [C; C_o] h_j; (B, 1, P) for a fixed context

    def select(self, rows: Tensor) -> Memory:
        """The sentences `rows` (indices or a bool mask), in that order."""
        kept = (None if field is None else field[rows] for field in self)
        return Memory(*kept)  # type: ignore[arg-type]
