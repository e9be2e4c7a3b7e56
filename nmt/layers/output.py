"""The distribution over the next word: p(y_i) ∝ exp(y_iᵀ W_o t_i) (appendix A.2.2).

B batch, T target length, M maxout, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from nmt.layers.fused.cross_entropy import RowNLL, SummedNLL
from nmt.layers.initialisation import initialise_matrix
from nmt.layers.precision import accumulate_dtype, compute_dtype


class Output(nn.Module):
    """W_o t_i + b over the vocabulary, and the negative log-likelihood of given words."""

    def __init__(self, maxout: int, vocabulary: int) -> None:
        super().__init__()
        self.W_o = nn.Parameter(torch.empty(vocabulary, maxout))
        self.bias = nn.Parameter(torch.empty(vocabulary))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        initialise_matrix(self.W_o, init)
        nn.init.zeros_(self.bias)

    def logits(self, readout: Tensor) -> Tensor:
        """Unnormalised log-probabilities (..., V) of the words after a readout (..., M)."""
        return linear(readout, self.W_o, self.bias)

    def nll(self, readout: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        """-log p(y_i) (B, T) in nats from readout (B, T, M), 0 where `mask` (B, T) is False.

        Each entry may get a gradient of its own; for one weight on all of them `loss` is faster.
        """
        return self._place(RowNLL.apply(*self._rows(readout, target, mask)), mask)

    def loss(self, readout: Tensor, target: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Σ nll over the batch, for training, and `nll` (B, T) without gradient, for looking at."""
        total, nll = SummedNLL.apply(*self._rows(readout, target, mask))
        return total, self._place(nll, mask)

    def _rows(
        self, readout: Tensor, target: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, torch.dtype, Tensor | None]:
        """What the cross-entropy needs.

        On a CPU the real positions only. How many there are a GPU would have to be waited for, with
        nothing left to do for it meanwhile: there padded positions are computed too, weighing 0.
        """
        dtype = compute_dtype(self.W_o)
        if readout.is_cuda:
            weight = mask.flatten().to(accumulate_dtype(dtype))
            rows, words = readout.flatten(0, 1), target.flatten()
            return rows, self.W_o, self.bias, words, dtype, weight
        return readout[mask], self.W_o, self.bias, target[mask], dtype, None

    def _place(self, nll: Tensor, mask: Tensor) -> Tensor:
        """The rows of `_rows` back to (B, T)."""
        if nll.is_cuda:
            return nll.view_as(mask)
        return nll.new_zeros(mask.shape).masked_scatter(mask, nll)
