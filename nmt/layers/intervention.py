"""Attention whose weights are replaced, to measure how much translations depend on them.

Beyond the paper; see Jain and Wallace (2019) and Wiegreffe and Pinter (2019) on what such
interventions show and do not show.

B batch, K queries a sentence, S source length.
"""

from __future__ import annotations

import random
from functools import cache

import torch
from torch import Tensor, nn

from nmt.layers.attention import Attention, AttentionOutput, normalise_rows
from nmt.layers.memory import Memory

INTERVENTIONS = ("uniform", "argmax", "top_k", "permuted", "shifted")


class Intervention(nn.Module):
    """An attention whose weights α_i of every step are replaced before c_i = Σ_j α_ij h_j is formed:

        uniform    equal weights at all T_x real positions: c_i is the mean of the annotations
        argmax     all of it at the largest weight
        top_k      the k largest weights, in their proportions
        permuted   the weights of the positions in another order, which depends on T_x alone
        shifted    the weight of each position at the next one; that of the last at the first

    Each keeps the sum of a step's weights: 1, or where the attention was trained with less, as in
    a window, that, so that contexts keep their scale and it is seen what rests on the places of the
    weights alone. The log-normaliser stays that of the scores. Nothing here depends on the other
    sentences of a batch. Raises ValueError for another kind, or a k below 1.
    """

    def __init__(self, attention: Attention, kind: str, top_k: int = 1) -> None:
        super().__init__()
        if kind not in INTERVENTIONS:
            raise ValueError(f"attention is {kind!r}; it must be one of {', '.join(INTERVENTIONS)}")
        if top_k < 1:
            raise ValueError(f"top_k is {top_k}; it must be at least 1")
        self.attention = attention
        self.size = attention.size
        self.scoring = attention.scoring
        self.normalised = attention.normalised
        self.kind = kind
        self.top_k = 1 if kind == "argmax" else top_k

    def keys(self, annotations: Tensor) -> Tensor:
        return self.attention.keys(annotations)

    def forward(self, state: Tensor, memory: Memory) -> AttentionOutput:
        """Attends with K states a sentence (B, K, H)."""
        # of the attention itself the weights alone are read, whatever it makes of its context
        attended = self.attention(state, memory._replace(products=None))
        weights = self.changed(attended.weights, memory.mask)
        return AttentionOutput.weighted(
            weights, attended.log_normaliser, self.values(memory), memory.products
        )

    def values(self, memory: Memory) -> Tensor:
        return self.attention.values(memory)

    def changed(self, weights: Tensor, mask: Tensor) -> Tensor:
        """Other weights (B, K, S) than those of attention, given the mask (B, S)."""
        if self.kind in ("permuted", "shifted"):
            order = shifted(mask) if self.kind == "shifted" else permuted(mask)
            return weights.gather(2, order.unsqueeze(1).expand_as(weights))
        if self.kind == "uniform":
            kept = mask.to(weights.dtype).unsqueeze(1)
        else:
            order = weights.sort(dim=2, descending=True, stable=True).indices[..., : self.top_k]
            kept = torch.zeros_like(weights).scatter(2, order, weights.gather(2, order))
        return normalise_rows(kept)[0] * weights.sum(2, keepdim=True)


def shifted(mask: Tensor) -> Tensor:
    """(B, S): the position before each real one, and of the first the last; others as they are."""
    place = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    last = mask.sum(1, keepdim=True) - 1
    return torch.where(mask, torch.where(place == 0, last, place - 1), place)


def permuted(mask: Tensor) -> Tensor:
    """(B, S): the real positions of each sentence in an order that depends on their number alone."""
    length = mask.shape[1]
    ranks = torch.tensor(_ranks(length), device=mask.device).expand(mask.shape)
    place = torch.arange(1, length + 1, device=mask.device)  # from 1: behind all real positions
    return torch.where(mask, ranks, place).argsort(1)


@cache
def _ranks(length: int) -> list[float]:
    """Numbers between 0 and 1, the first of which are the same for every length."""
    draw = random.Random(1)
    return [draw.random() for _ in range(length)]
