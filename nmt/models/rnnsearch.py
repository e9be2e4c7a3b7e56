"""RNNsearch: a bidirectional encoder, and attention at every target word (section 3)."""

from __future__ import annotations

from typing import Any

from nmt.config.schema import ModelConfig
from nmt.layers import Attention, BidirectionalEncoder, Decoder, Output, initialise
from nmt.models.base import Translator
from nmt.models.build import build_scoring


class RNNsearch(Translator):
    """Each target word is written from an expected annotation c_i = Σ_j α_ij h_j of its own."""

    def __init__(
        self, model: ModelConfig, source_size: int, target_size: int, **options: Any
    ) -> None:
        super().__init__(model, source_size, target_size, **options)
        annotation = 2 * model.hidden
        self.encoder = BidirectionalEncoder(
            source_size,
            model.embedding,
            model.hidden,
            dropout=model.dropout,
            recurrence=model.recurrence,
            graphs=model.graphs,
        )
        self.decoder = Decoder(
            target_size,
            model.embedding,
            model.hidden,
            model.maxout,
            Attention(model.hidden, annotation, model.alignment, build_scoring(model)),
            state_input=model.state_input,
            dropout=model.dropout,
            recurrence=model.recurrence,
            graphs=model.graphs,
        )
        self.output = Output(model.maxout, target_size)
        initialise(self, model.init)
