"""The encoders: a sentence into annotations (section 3.2) and the vector the decoder starts from.

B batch, S source length, E embedding, H state, V vocabulary. Real positions come first in a row;
padding follows.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.layers.fused.graphs import GraphCache
from nmt.layers.fused.unit import recur
from nmt.layers.gated_unit import GatedUnit
from nmt.layers.initialisation import initialise_embedding
from nmt.layers.precision import accumulate_dtype, compute_dtype


class Encoder(nn.Module):
    """The embedding and what both encoders share; see `ForwardEncoder` and `BidirectionalEncoder`.

    `recurrence` is "plain" (a readable loop under autograd) or "fused" (its own backward over the
    whole sentence). Raises ValueError for another one. With `graphs` a fused recurrence trained on
    a GPU is replayed from CUDA graphs.
    """

    directions: int  # of reading: 1 forward, 2 forward and backward

    def __init__(
        self,
        vocabulary: int,
        embedding: int,
        hidden: int,
        *,
        dropout: float = 0.0,
        recurrence: str = "plain",
        graphs: bool = False,
    ) -> None:
        super().__init__()
        if recurrence not in ("plain", "fused"):
            raise ValueError(f"recurrence is {recurrence!r}; it must be 'plain' or 'fused'")
        self.recurrence = recurrence
        self.recordings = GraphCache() if graphs else None
        self.size = self.directions * hidden
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.dropout = nn.Dropout(dropout)
        self.units = nn.ModuleList(GatedUnit(embedding, hidden) for _ in range(self.directions))
        self.initialise("paper")

    def initialise(self, kind: str) -> None:
        initialise_embedding(self.embedding, kind)

    def states(self, source: Tensor, mask: Tensor) -> list[Tensor]:
        """h (B, S, H) of each direction at every position."""
        words = self.dropout(self.embedding(source))  # (B, S, E)
        if self.recurrence == "fused":
            return run_fused([*self.units], words, mask, self.recordings)
        return [
            run(unit, words, mask, reverse=direction == 1)  # type: ignore[arg-type]
            for direction, unit in enumerate(self.units)
        ]


def run(unit: GatedUnit, words: Tensor, mask: Tensor, *, reverse: bool) -> Tensor:
    """The states (B, S, H) of one gated network that reads `words` (B, S, E) from a state of 0."""
    projected = unit.project(words)  # (B, S, 3H)
    state = unit.U.new_zeros(words.shape[0], unit.hidden)
    positions = range(words.shape[1])
    states: list[Tensor] = []
    for j in reversed(positions) if reverse else positions:
        state = unit(state, projected[:, j], real=mask[:, j])
        states.append(state)
    return torch.stack(states[::-1] if reverse else states, 1)


def run_fused(
    units: list[GatedUnit], words: Tensor, mask: Tensor, recordings: GraphCache | None = None
) -> list[Tensor]:
    """The states of `run` for all directions in one loop, the second reading backwards."""
    first = units[0].U
    kind = compute_dtype(first)
    turned = words.transpose(0, 1).to(kind)  # (S, B, E), time first
    real = mask.t().unsqueeze(2).to(accumulate_dtype(kind))  # (S, B, 1)
    inputs = torch.stack([turned, turned.flip(0)][: len(units)])  # (D, S, B, E)
    weight = torch.stack([unit.W for unit in units]).to(kind)  # (D, 3H, E)
    bias = torch.stack([unit.bias for unit in units]).to(kind)
    projected = torch.baddbmm(bias.unsqueeze(1), inputs.flatten(1, 2), weight.transpose(1, 2))
    states = recur(
        projected.unflatten(1, turned.shape[:2]),
        first.new_zeros(len(units), words.shape[0], first.shape[0]),
        torch.stack([unit.U_gates for unit in units]),
        torch.stack([unit.U for unit in units]),
        torch.stack([real, real.flip(0)][: len(units)]),
        kind,
        recordings,
    )  # (D, S, B, H)
    in_order = [states[0], states[1].flip(0)] if len(units) == 2 else [states[0]]
    return [direction.transpose(0, 1) for direction in in_order]


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
        ahead, back = self.states(source, mask)
        return torch.cat([ahead, back], 2), back[:, 0]
