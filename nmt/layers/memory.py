"""What the decoder attends to: one copy a sentence, however many hypotheses a search follows."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Memory(NamedTuple):
    """The encoded sentences of a batch (B batch, S source length, A annotation, N alignment)."""

    annotations: Tensor  # (B, S, A) h_j
    keys: Tensor | None  # (B, S, N) U_a h_j; None for a fixed context
    mask: Tensor  # (B, S) bool, True on real positions
    summary: Tensor  # (B, H) ←h_1 for attention, →h_Tx for a fixed context

    def select(self, rows: Tensor) -> Memory:
        """The sentences `rows` (indices or a bool mask), in that order; the others leave."""
        keys = None if self.keys is None else self.keys[rows]
        return Memory(self.annotations[rows], keys, self.mask[rows], self.summary[rows])
