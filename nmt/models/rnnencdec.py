"""RNNencdec: the source sentence as one fixed vector (section 2.1; Cho et al., 2014)."""

from __future__ import annotations

from typing import Any

from nmt.config.schema import ModelConfig
from nmt.layers import Decoder, FixedContext, ForwardEncoder, Output, initialise
from nmt.models.base import Translator


class RNNencdec(Translator):
    """Every target word is written from the same context c_i = →h_Tx."""

    def __init__(
        self, model: ModelConfig, source_size: int, target_size: int, **options: Any
    ) -> None:
        super().__init__(model, source_size, target_size, **options)
        self.encoder = ForwardEncoder(
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
            FixedContext(model.hidden),
            state_input=model.state_input,
            dropout=model.dropout,
            recurrence=model.recurrence,
            graphs=model.graphs,
        )
        self.output = Output(model.maxout, target_size)
        initialise(self, model.init)
