"""Attention with replaced weights, which shows how much translations depend on the weights.

Beyond the paper. Jain and Wallace (2019) and Wiegreffe and Pinter (2019) discuss what this shows.

B batch, K queries a sentence, S source length.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.layers.attention import Attention, AttentionOutput
from nmt.layers.memory import Memory

INTERVENTIONS = ("uniform", "argmax", "shifted")


class Intervention(nn.Module):
    """An attention whose weights α_i of every step are replaced before c_i = Σ_j α_ij h_j is formed:

        uniform    equal weights at all T_x real positions: c_i is the mean of the annotations
        argmax     all of it at the largest weight
        shifted    the weight of each position at the next one; that of the last at the first

    The weights of a step still sum to 1, so that contexts keep their scale. The log-normaliser stays
    that of the scores.
    """

    def __init__(self, attention: Attention, kind: str) -> None:
        super().__init__()
        self.attention = attention
        self.size = attention.size
        self.scoring = attention.scoring
        self.kind = kind

    def keys(self, annotations: Tensor) -> Tensor:
        """As `Attention.keys`."""
        return self.attention.keys(annotations)

    def forward(self, state: Tensor, memory: Memory) -> AttentionOutput:
        """Attends with K states a sentence (B, K, H)."""
        attended = self.attention(state, memory)
        weights = self.changed(attended.weights, memory.mask)
        context = torch.bmm(weights, memory.annotations)
        return AttentionOutput(context, weights, attended.log_normaliser)

    def changed(self, weights: Tensor, mask: Tensor) -> Tensor:
        """Other weights (B, K, S) than those of attention, given the mask (B, S)."""
        if self.kind == "shifted":
            return weights.gather(2, shifted_index(mask).unsqueeze(1).expand_as(weights))
        if self.kind == "argmax":
            return torch.zeros_like(weights).scatter(2, weights.argmax(2, keepdim=True), 1.0)
        real = mask.to(weights.dtype).unsqueeze(1)
        return (real / real.sum(2, keepdim=True)).expand_as(weights)


def shifted_index(mask: Tensor) -> Tensor:
    """(B, S): the position before each real one, and of the first the last; others as they are."""
    place = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    last = mask.sum(1, keepdim=True) - 1
    return torch.where(mask, torch.where(place == 0, last, place - 1), place)
