"""Long short-term memory (Hochreiter and Schmidhuber, 1997; with the forget gate of Gers et al., 2000).

Beyond the paper, whose unit is `nmt.layers.gated_unit.GatedUnit`. No peepholes.

E embedding, H state, A annotation (context). The four parts of a stacked matrix stand in the order
i, f, o, g.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from nmt.layers.initialisation import initialise_matrix
from nmt.layers.precision import accumulate_dtype


class LstmUnit(nn.Module):
    """m' = f∘m + i∘g and h' = o∘tanh(m') with

        i = σ(W_i e + U_i h + C_i c + b_i)
        f = σ(W_f e + U_f h + C_f c + b_f)
        o = σ(W_o e + U_o h + C_o c + b_o)
        g = tanh(W e + U h + C c + b)

    and without the terms in c where `context` is 0, as in the encoder. The matrices of one input
    are stacked: `W` (4H, E), `U` (4H, H), `C` (4H, A), `bias` (4H). A state is [h; m] of size 2H;
    its `output` is h.

    Initialisation: U_i, U_f, U_o, U orthogonal; b_f is 1 (a memory that is kept until it learns to
    forget: Gers et al., 2000) and the other biases 0; W and C as in the gated unit.
    """

    def __init__(self, embedding: int, hidden: int, context: int = 0) -> None:
        super().__init__()
        self.hidden = hidden
        self.W = nn.Parameter(torch.empty(4 * hidden, embedding))
        self.U = nn.Parameter(torch.empty(4 * hidden, hidden))
        self.C = nn.Parameter(torch.empty(4 * hidden, context)) if context else None
        self.bias = nn.Parameter(torch.empty(4 * hidden))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        for stacked in (self.W, self.C):
            for block in () if stacked is None else stacked.chunk(4):
                initialise_matrix(block, init)
        for block in self.U.chunk(4):
            nn.init.orthogonal_(block)
        nn.init.zeros_(self.bias)
        nn.init.ones_(self.bias.chunk(4)[1])

    def start(self, hidden: Tensor) -> Tensor:
        """The state (..., 2H) with h (..., H) and an empty memory."""
        return pad(hidden, (0, self.hidden))

    def output(self, state: Tensor) -> Tensor:
        """h (..., H) of a state (..., 2H)."""
        return state[..., : self.hidden]

    def project(self, words: Tensor) -> Tensor:
        """[W_i; W_f; W_o; W] e + bias (..., 4H): what depends on no state, for many words at once."""
        return linear(words, self.W, self.bias)

    def forward(
        self,
        state: Tensor,
        projected: Tensor,
        context: Tensor | None = None,
        real: Tensor | None = None,
    ) -> Tensor:
        """The next state (..., 2H) from [h; m], `project`ed words (..., 4H) and c (..., A).

        Where `real` (..., bool) is False the state stays what it was, exactly.
        """
        hidden, memory = state.chunk(2, -1)
        total = projected.to(accumulate_dtype(projected.dtype)) + linear(hidden, self.U)
        if context is not None and self.C is not None:
            total = total + linear(context, self.C)
        for_gates, for_candidate = total.split([3 * self.hidden, self.hidden], -1)
        i, f, o = torch.sigmoid(for_gates).chunk(3, -1)
        memory = f * memory + i * torch.tanh(for_candidate)
        after = torch.cat([o * torch.tanh(memory), memory], -1)
        return after if real is None else torch.where(real.unsqueeze(-1), after, state)
