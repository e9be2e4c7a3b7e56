"""Attention with replaced weights, to measure how much translations depend on the weights.

This experiment is not in the paper. Jain and Wallace (2019) and Wiegreffe and Pinter (2019) discuss such experiments.

Sizes: B batch, K queries per sentence, S source length, H state.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.layers.attention import Attention, AttentionOutput
from nmt.layers.memory import Memory


class Intervention(nn.Module):
    """Replaces the attention weights at every step, before c_i = Σ_j α_ij h_j is computed:

        uniform    equal weights at all T_x unpadded positions: c_i is the mean of the annotations
        argmax     weight 1 at the position of the largest weight
        shifted    weights rotated by one position; the last weight moves to the first position

    The new weights also sum to 1, so the scale of the contexts does not change. `log_normaliser` stays the same.
    """

    def __init__(self, attention: Attention, kind: str) -> None:
        super().__init__()
        self.attention = attention
        self.size = attention.size
        self.scoring = attention.scoring
        self.kind = kind

    def keys(self, annotations: Tensor) -> Tensor:
        """Returns the result of `Attention.keys`."""
        return self.attention.keys(annotations)

    def forward(self, state: Tensor, memory: Memory) -> AttentionOutput:
        """Computes the contexts and new weights for `state` (B, K, H), which has K states per sentence."""
        attended = self.attention(state, memory)
        weights = self.replace_weights(attended.weights, memory.mask)
        context = torch.bmm(weights, memory.annotations)
        return AttentionOutput(context, weights, attended.log_normaliser)

    def replace_weights(self, weights: Tensor, mask: Tensor) -> Tensor:
        """Returns the new weights (B, K, S), given the old `weights` and the source mask (B, S)."""
        if self.kind == "shifted":
            return weights.gather(2, shifted_index(mask).unsqueeze(1).expand_as(weights))
        if self.kind == "argmax":
            return torch.zeros_like(weights).scatter(2, weights.argmax(2, keepdim=True), 1.0)
        real = mask.to(weights.dtype).unsqueeze(1)
        return (real / real.sum(2, keepdim=True)).expand_as(weights)


def shifted_index(mask: Tensor) -> Tensor:
    """Returns indices (B, S) that rotate the unpadded positions by one and leave padding unchanged."""
    place = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    last = mask.sum(1, keepdim=True) - 1
    return torch.where(mask, torch.where(place == 0, last, place - 1), place)
