"""The gated hidden unit (Cho et al. 2014; appendix A.1.1 of Bahdanau, Cho and Bengio 2015).

Unlike in `torch.nn.GRU`, the reset gate r multiplies the state s before the product with U, and
the update gate z multiplies the candidate s̃ instead of s.

Sizes: E embedding, H state, A annotation (context). Stacked matrices have blocks for z, r and s̃, in this order.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from nmt.layers.precision import accumulate_dtype
from nmt.layers.unit import Unit


class GatedUnit(Unit):
    """From a state s, a word embedding e and a context c, computes the next state s' = (1 - z)∘s + z∘s̃, where

        z = σ(W_z e + U_z s + C_z c + b_z)
        r = σ(W_r e + U_r s + C_r c + b_r)
        s̃ = tanh(W e + U (r∘s) + C c + b)

    If the size `context` is 0, the terms in c are absent. `U_gates` (2H, H) stacks U_z and U_r. `U` has the
    shape (H, H). `Unit` describes the other parameters.
    """

    parts = 3
    recurrent = (("U_gates", 2), ("U", 1))
    U_gates: nn.Parameter

    def start(self, hidden: Tensor) -> Tensor:
        """Returns the initial state, which is `hidden` (..., H) itself."""
        return hidden

    def output(self, state: Tensor) -> Tensor:
        """Returns the output, which is the state (..., H) itself."""
        return state

    def forward(
        self,
        state: Tensor,
        projected: Tensor,
        context: Tensor | None = None,
        real: Tensor | None = None,
    ) -> Tensor:
        """Returns the next state (..., H), given s (..., H), the result of `project` (..., 3H) and c (..., A).

        Where `real` (..., bool) is False, the state does not change.
        """
        projected = projected.to(accumulate_dtype(projected.dtype))  # sums and gates use this dtype
        if context is not None:
            projected = projected + self.project_context(context)
        for_gates, for_candidate = projected.split([2 * self.hidden, self.hidden], -1)
        z, r = torch.sigmoid(for_gates + linear(state, self.U_gates)).chunk(2, -1)
        candidate = torch.tanh(for_candidate + linear(r * state, self.U))
        if real is not None:
            z = z.masked_fill(~real.unsqueeze(-1), 0)
        return (1 - z) * state + z * candidate
