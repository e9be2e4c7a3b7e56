"""RNNsearch: a bidirectional encoder (or the one chosen), and attention at every target word (section 3)."""

from __future__ import annotations

from typing import Any

from nmt.layers import Attention, BidirectionalEncoder, Encoder
from nmt.models.base import Translator
from nmt.models.parts import build_attention, chosen_class


class RNNsearch(Translator):
    """Each target word is written from an expected annotation c_i = Σ_j α_ij h_j of its own."""

    def make_encoder(self, *sizes: int, **options: Any) -> Encoder:
        encoder: type[Encoder] = chosen_class(self.model, "encoder", Encoder, BidirectionalEncoder)
        return encoder(*sizes, **options)

    def make_context(self, annotation: int) -> Attention:
        return build_attention(self.model, annotation)
