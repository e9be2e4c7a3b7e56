"""RNNsearch: a bidirectional encoder, and attention at every target word (section 3)."""

from __future__ import annotations

from typing import Any

from nmt.layers import Attention, BidirectionalEncoder
from nmt.models.base import Translator
from nmt.models.build import build_scoring


class RNNsearch(Translator):
    """Each target word is written from an expected annotation c_i = Σ_j α_ij h_j of its own."""

    def make_encoder(self, *sizes: int, **options: Any) -> BidirectionalEncoder:
        return BidirectionalEncoder(*sizes, **options)

    def make_context(self, annotation: int) -> Attention:
        scoring = build_scoring(self.model)
        assert self.model.alignment is not None  # or there is no scoring function
        return Attention(self.model.hidden, annotation, self.model.alignment, scoring)
