"""Long short-term memory (Hochreiter and Schmidhuber, 1997; with the forget gate of Gers et al., 2000).

Bahdanau, Cho and Bengio (2015) use `nmt.layers.gated_unit.GatedUnit` instead. This LSTM has no peepholes.

Sizes: H state, A annotation (context). Stacked matrices have blocks for i, f, o and g of `LstmUnit`, in this order.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from nmt.layers.precision import accumulate_dtype
from nmt.layers.unit import Unit


class LstmUnit(Unit):
    """From h, m, a word embedding e and a context c, computes m' = f∘m + i∘g and h' = o∘tanh(m'), where

        i = σ(W_i e + U_i h + C_i c + b_i)
        f = σ(W_f e + U_f h + C_f c + b_f)
        o = σ(W_o e + U_o h + C_o c + b_o)
        g = tanh(W e + U h + C c + b)

    If the size `context` is 0, the terms in c are absent. A state is [h; m] (2H): the output h and the
    cell state m. The initial b_f is 1, so that the unit keeps m until it learns to forget (Gers et al., 2000).
    """

    parts = 4
    recurrent = (("U", 4),)

    def initialise(self, init: str) -> None:
        super().initialise(init)
        nn.init.ones_(self.bias.chunk(4)[1])

    def start(self, hidden: Tensor) -> Tensor:
        """Returns the state (..., 2H) in which h is `hidden` (..., H) and the cell state is 0."""
        return pad(hidden, (0, self.hidden))

    def output(self, state: Tensor) -> Tensor:
        """Returns h (..., H) of a state (..., 2H)."""
        return state[..., : self.hidden]

    def forward(
        self,
        state: Tensor,
        projected: Tensor,
        context: Tensor | None = None,
        real: Tensor | None = None,
    ) -> Tensor:
        """Returns the next state (..., 2H), given [h; m], the result of `project` (..., 4H) and c (..., A).

        Where `real` (..., bool) is False, the state does not change.
        """
        hidden, cell = state.chunk(2, -1)
        total = projected.to(accumulate_dtype(projected.dtype)) + linear(hidden, self.U)
        if context is not None:
            total = total + self.project_context(context)
        for_gates, for_candidate = total.split([3 * self.hidden, self.hidden], -1)
        i, f, o = torch.sigmoid(for_gates).chunk(3, -1)
        cell = f * cell + i * torch.tanh(for_candidate)
        after = torch.cat([o * torch.tanh(cell), cell], -1)
        return after if real is None else torch.where(real.unsqueeze(-1), after, state)
