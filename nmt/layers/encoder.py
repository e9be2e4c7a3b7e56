"""Encoders: source words to annotations (section 3.2), and the summary that s_0 is computed from.

B batch, S source length, E embedding, H state, V vocabulary. Real positions come first in a row;
padding follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from nmt.layers.gated_unit import GatedUnit
from nmt.layers.initialisation import initialise_embedding


class Encoder(nn.Module):
    """The embedding and what both encoders share; see `ForwardEncoder` and `BidirectionalEncoder`.

    `unit` is the class of the recurrent unit, of which each direction has one.
    """

    directions: int  # 1 forward, 2 forward and backward

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
        self.size = self.directions * hidden  # of an annotation
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.dropout = nn.Dropout(dropout)
        self.units = nn.ModuleList(unit(embedding, hidden) for _ in range(self.directions))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        initialise_embedding(self.embedding, init)

    def states(self, source: Tensor, mask: Tensor) -> list[Tensor]:
        """h (B, S, H) of each direction at every position, for source ids (B, S), mask (B, S)."""
        words = self.dropout(self.embedding(source))  # (B, S, E)
        return [
            read_in_one_direction(unit, words, mask, reverse=direction == 1)
            for direction, unit in enumerate(self.units)
        ]


def read_in_one_direction(unit: Any, words: Tensor, mask: Tensor, *, reverse: bool) -> Tensor:
    """The states (B, S, H) of one recurrent network that reads `words` (B, S, E), starting from 0."""
    projected = unit.project(words)  # (B, S, 3H) of a gated unit
    state = unit.start(unit.U.new_zeros(words.shape[0], unit.hidden))
    positions = range(words.shape[1])
    states: list[Tensor] = []
    for j in reversed(positions) if reverse else positions:
        state = unit(state, projected[:, j], real=mask[:, j])
        states.append(unit.output(state))
    return torch.stack(states[::-1] if reverse else states, 1)


class ForwardEncoder(Encoder):
    """The encoder of RNNencdec: →h_j for j = 1..T_x; the summary is →h_Tx (appendix A.2.1)."""

    directions = 1

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Source (B, S), mask (B, S) -> annotations →h_j (B, S, H), summary →h_Tx (B, H)."""
        (states,) = self.states(source, mask)
        return states, states[:, -1]  # the last real state is frozen through the padding


class BidirectionalEncoder(Encoder):
    """The encoder of RNNsearch: h_j = [→h_j; ←h_j], one embedding; the summary is ←h_1 (A.2.1)."""

    directions = 2

    def forward(self, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Source (B, S), mask (B, S) -> annotations (B, S, 2H), summary ←h_1 (B, H)."""
        forward, backward = self.states(source, mask)
        return torch.cat([forward, backward], 2), backward[:, 0]
