"""The gated hidden unit (Cho et al. 2014; appendix A.1.1 of Bahdanau, Cho and Bengio 2015).

Not `torch.nn.GRU`: r multiplies s before U does, and z multiplies the candidate, not the old state.

E embedding size, H state size, A annotation (context) size. Stacked matrices hold blocks z, r, s̃.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from nmt.layers.initialisation import initialise_matrix
from nmt.layers.precision import accumulate_dtype


class Unit(nn.Module):
    """The base class of recurrent units. Stacked matrices compute all gates in one product.

    `parts` is the number of blocks of H rows: one per gate, and one for the candidate state. `W`
    (parts · H, E) multiplies words, and `bias` (parts · H) is added. `C` (parts · H, A) multiplies the
    context; it is None if the size of the context is 0, as in the encoder. `recurrent` lists the
    matrices that multiply the state, each with its number of blocks of H rows.

    Initialisation: see `nmt.layers.initialisation`. Each H-row block is drawn as a matrix of its own.
    """

    parts: int
    recurrent: tuple[tuple[str, int], ...]
    U: nn.Parameter

    def __init__(self, embedding: int, hidden: int, context: int = 0) -> None:
        super().__init__()
        self.hidden = hidden
        rows = self.parts * hidden
        self.W = nn.Parameter(torch.empty(rows, embedding))
        for name, parts in self.recurrent:
            self.register_parameter(name, nn.Parameter(torch.empty(parts * hidden, hidden)))
        self.C = nn.Parameter(torch.empty(rows, context)) if context else None
        self.bias = nn.Parameter(torch.empty(rows))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        for stacked in (self.W, self.C):
            for block in () if stacked is None else stacked.split(self.hidden):
                initialise_matrix(block, init)
        for name, _ in self.recurrent:
            for block in self.get_parameter(name).split(self.hidden):
                nn.init.orthogonal_(block)
        nn.init.zeros_(self.bias)

    def project(self, words: Tensor) -> Tensor:
        """Returns W e + bias (..., parts · H) for embeddings e (..., E), at all positions at once."""
        return linear(words, self.W, self.bias)

    def project_context(self, context: Tensor) -> Tensor:
        """Returns C c (..., parts · H) for c (..., A). `forward` adds it to the result of `project`."""
        assert self.C is not None
        return linear(context, self.C)


class GatedUnit(Unit):
    """s' = (1 - z)∘s + z∘s̃, where

        z = σ(W_z e + U_z s + C_z c + b_z)
        r = σ(W_r e + U_r s + C_r c + b_r)
        s̃ = tanh(W e + U (r∘s) + C c + b)

    The terms in c are absent if `context` is 0. `U_gates` (2H, H) stacks U_z and U_r, `U` is (H, H).
    `Unit` describes the other parameters.
    """

    parts = 3
    recurrent = (("U_gates", 2), ("U", 1))
    U_gates: nn.Parameter

    def start(self, hidden: Tensor) -> Tensor:
        """Returns the initial state for h (..., H): h itself."""
        return hidden

    def output(self, state: Tensor) -> Tensor:
        """Returns the output of a state (..., H): the state itself."""
        return state

    def forward(
        self,
        state: Tensor,
        projected: Tensor,
        context: Tensor | None = None,
        real: Tensor | None = None,
    ) -> Tensor:
        """Returns the next state (..., H) from s (..., H), `project`ed words (..., 3H) and c (..., A).

        Where `real` (..., bool) is False, the state keeps its exact value.
        """
        projected = projected.to(accumulate_dtype(projected.dtype))  # for sums and gates
        if context is not None:
            projected = projected + self.project_context(context)
        for_gates, for_candidate = projected.split([2 * self.hidden, self.hidden], -1)
        z, r = torch.sigmoid(for_gates + linear(state, self.U_gates)).chunk(2, -1)
        candidate = torch.tanh(for_candidate + linear(r * state, self.U))
        if real is not None:
            z = z.masked_fill(~real.unsqueeze(-1), 0)
        return (1 - z) * state + z * candidate
