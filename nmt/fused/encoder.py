"""Encoders with gated units and a custom backward pass. Both directions run in one loop.

Sizes: D = directions, S = source length, B = batch, E = embedding, H = state.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nmt.fused.backend import Backend
from nmt.fused.loop import run_units
from nmt.fused.steps import pad_sizes
from nmt.layers import BidirectionalEncoder, Encoder, ForwardEncoder
from nmt.layers.precision import accumulate_dtype, compute_dtype


class FusedStates(Encoder):
    """Computes the states of an encoder with gated units. One loop computes all directions."""

    backend = Backend()

    def states(self, source: Tensor, mask: Tensor) -> list[Tensor]:
        units: list[Any] = [*self.units]
        dtype = compute_dtype(self.embedding.weight)
        words = self.dropout(look_up(self.embedding, source))  # (B, S, E)
        words = words.transpose(0, 1).to(dtype)
        real = mask.t().unsqueeze(2).to(accumulate_dtype(dtype))  # (S, B, 1)
        inputs = torch.stack([words, words.flip(0)][: len(units)])  # (D, S, B, E)
        weight = torch.stack([unit.W for unit in units]).to(dtype)  # (D, 3H, E)
        bias = torch.stack([unit.bias for unit in units]).to(dtype)
        inputs, weight = pad_sizes(inputs.flatten(1, 2)), pad_sizes(weight)
        projected = torch.baddbmm(bias.unsqueeze(1), inputs, weight.mT)
        states = run_units(
            self.backend,
            projected.unflatten(1, words.shape[:2]),
            units[0].U.new_zeros(len(units), len(source), units[0].hidden),
            torch.stack([unit.U_gates for unit in units]),
            torch.stack([unit.U for unit in units]),
            torch.stack([real, real.flip(0)][: len(units)]),
        )  # (D, S, B, H)
        # uses `unbind`, because the backward pass of `states[i]` would allocate zeros of the size of `states`
        forward, *backward = states.unbind(0)
        by_position = [forward, *(direction.flip(0) for direction in backward)]
        return [direction.transpose(0, 1) for direction in by_position]


class FusedForwardEncoder(FusedStates, ForwardEncoder):
    """See `nmt.layers.ForwardEncoder`."""


class FusedBidirectionalEncoder(FusedStates, BidirectionalEncoder):
    """See `nmt.layers.BidirectionalEncoder`."""


def look_up(table: nn.Embedding, words: Tensor) -> Tensor:
    """Returns the embeddings (..., E) of words (...).

    On a GPU the table is indexed, because the gradient of `torch.nn.Embedding` is not deterministic there
    (https://github.com/pytorch/pytorch/issues/187687).
    """
    vectors: Tensor = table.weight[words] if words.is_cuda else table(words)
    return vectors
