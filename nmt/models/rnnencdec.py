"""RNNencdec: the source sentence as one fixed vector (section 2.1; Cho et al., 2014)."""

from __future__ import annotations

from typing import Any

from nmt.layers import FixedContext, ForwardEncoder
from nmt.models.base import Translator


class RNNencdec(Translator):
    """Every target word is written from the same context c_i = →h_Tx."""

    def make_encoder(self, *sizes: int, **options: Any) -> ForwardEncoder:
        return ForwardEncoder(*sizes, **options)

    def make_context(self, annotation: int) -> FixedContext:
        return FixedContext(annotation)
