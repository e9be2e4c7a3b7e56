"""The distribution over the next word: p(y_i) ∝ exp(y_iᵀ (W_o t_i + b)) (appendix A.2.2, plus a bias).

Sizes: B batch, T target length, M maxout units, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from nmt.layers.initialisation import initialise_matrix
from nmt.layers.precision import accumulate_dtype


class Output(nn.Module):
    """The logits W_o t_i + b of all words, and the negative log-likelihood of given words."""

    def __init__(self, maxout: int, vocabulary: int) -> None:
        super().__init__()
        self.W_o = nn.Parameter(torch.empty(vocabulary, maxout))
        self.bias = nn.Parameter(torch.empty(vocabulary))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        initialise_matrix(self.W_o, init)
        nn.init.zeros_(self.bias)

    def logits(self, readout: Tensor) -> Tensor:
        """Returns the logits (..., V) of all words for readouts (..., M)."""
        return linear(readout, self.W_o, self.bias)

    def nll(self, readout: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        """Returns -log p(y_i) (B, T) in nats for readouts (B, T, M). It is 0 where `mask` (B, T) is False."""
        logits = self.logits(readout[mask])  # (R, V) for R unpadded positions
        logits = logits.to(accumulate_dtype(logits.dtype))
        nll = cross_entropy(logits, target[mask], reduction="none")
        return nll.new_zeros(mask.shape).masked_scatter(mask, nll)

    def loss(self, readout: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        """Returns the sum of `nll` over the batch, a scalar."""
        return self.nll(readout, target, mask).sum()
