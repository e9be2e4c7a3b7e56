"""Encoders, which compute annotations of source words (section 3.2) and a summary for the decoder's s_0.

Sizes: B batch, S source length, E embedding, H state. Padding is at the end of a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from nmt.layers.gated_unit import GatedUnit
from nmt.layers.initialisation import initialise_embedding


class Encoder(nn.Module):
    """The base class of `ForwardEncoder` and `BidirectionalEncoder`.

    `unit` is the class of the recurrent unit. Each direction has its own unit.
    """

    directions: int  # 1 (forward) or 2 (forward and backward)

    def __init__(
        self,
        vocabulary: int,
        embedding: int,
        hidden: int,
        *,
        dropout: float = 0.0,
        unit: Callable[..., nn.Module] = GatedUnit,
    ) -> None:
        super().__init__()
        self.size = self.directions * hidden  # size of an annotation
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.dropout = nn.Dropout(dropout)
        self.units = nn.ModuleList(unit(embedding, hidden) for _ in range(self.directions))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        initialise_embedding(self.embedding, init)

    def states(self, source: Tensor, mask: Tensor) -> list[Tensor]:
        """Returns the states (B, S, H) of each direction for source ids (B, S) with mask (B, S)."""
        words = self.dropout(self.embedding(source))  # (B, S, E)
        return [
            read_in_one_direction(unit, words, mask, reverse=direction == 1)
            for direction, unit in enumerate(self.units)
        ]


def read_in_one_direction(unit: Any, words: Tensor, mask: Tensor, *, reverse: bool) -> Tensor:
    """Returns the states (B, S, H) of a unit that reads the embeddings `words` (B, S, E) from a zero state on."""
    projected = unit.project(words)  # (B, S, 3H) for a GatedUnit
    state = unit.start(unit.U.new_zeros(words.shape[0], unit.hidden))
    positions = range(words.shape[1])
    states: list[Tensor] = []
    for j in reversed(positions) if reverse else positions:
        state = unit(state, projected[:, j], real=mask[:, j])
        states.append(unit.output(state))
    return torch.stack(states[::-1] if reverse else states, 1)


class ForwardEncoder(Encoder):
    """The encoder of RNNencdec, with annotations →h_j and summary →h_Tx (appendix A.2.1)."""

    directions = 1

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the annotations (B, S, H) and summary (B, H) of source ids (B, S) with mask (B, S)."""
        (states,) = self.states(source, mask)
        return states, states[:, -1]  # →h_Tx, because padding does not change the state


class BidirectionalEncoder(Encoder):
    """The encoder of RNNsearch, with annotations h_j = [→h_j; ←h_j] and summary ←h_1 (A.2.1)."""

    directions = 2

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the annotations (B, S, 2H) and summary (B, H) of source ids (B, S) with mask (B, S)."""
        forward, backward = self.states(source, mask)
        return torch.cat([forward, backward], 2), backward[:, 0]
