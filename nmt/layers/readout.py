"""The deep output with a maxout layer (appendix A.2.2).

Sizes: H state, E embedding, A annotation (context), M maxout units. E y is the embedding of the word y.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from nmt.layers.initialisation import initialise_matrix


class Readout(nn.Module):
    """The maxout t_i (M units) of t̃_i = U_o s_{i-1} + V_o E y_{i-1} + C_o c_i + b (2M entries).

    Unit j of t_i is the larger of entries 2j and 2j + 1 of t̃_i. `dropout` is applied to t_i.
    """

    def __init__(
        self, hidden: int, embedding: int, context: int, maxout: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.U_o = nn.Parameter(torch.empty(2 * maxout, hidden))
        self.V_o = nn.Parameter(torch.empty(2 * maxout, embedding))
        self.C_o = nn.Parameter(torch.empty(2 * maxout, context))
        self.bias = nn.Parameter(torch.empty(2 * maxout))
        self.dropout = nn.Dropout(dropout)
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        for matrix in (self.U_o, self.V_o, self.C_o):
            initialise_matrix(matrix, init)
        nn.init.zeros_(self.bias)

    def forward(self, state: Tensor, embedding: Tensor, context: Tensor) -> Tensor:
        """Returns t_i (..., M), given s_{i-1} (..., H), the embedding of y_{i-1} (..., E) and c_i (..., A)."""
        return self.maxout(state, embedding, linear(context, self.C_o))

    def maxout(self, state: Tensor, embedding: Tensor, from_context: Tensor) -> Tensor:
        """Returns t_i like `forward`, but takes the product C_o c_i (..., 2M) instead of c_i."""
        pairs = linear(state, self.U_o, self.bias) + linear(embedding, self.V_o) + from_context
        return self.dropout(torch.maximum(pairs[..., 0::2], pairs[..., 1::2]))
