"""Attention in a window around a predicted position (Luong, Pham and Manning, 2015, section 3.2).

Bahdanau, Cho and Bengio (2015) attend to all positions, as in `nmt.layers.attention.Attention`.

Sizes: B batch, K queries per sentence, S source length, H state, N alignment space.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from nmt.layers.attention import Attention, AttentionOutput, masked_softmax
from nmt.layers.initialisation import initialise_matrix
from nmt.layers.memory import Memory
from nmt.layers.precision import accumulate_dtype


class LocalAttention(Attention):
    """Local-p attention: c_i = Σ_j a_ij h_j over the positions j of the window |j - p_i| ≤ D, where

        p_i = T_x sigmoid(v_pᵀ tanh(W_p s_{i-1})),  a_ij = softmax_j(e_ij) exp(-2 (j - p_i)² / D²)

    Positions j are counted from 1. T_x includes `</s>`. The standard deviation of the Gaussian is D / 2.
    The softmax is over the positions in the window. As in Luong et al., c_i is computed from the a_ij
    without normalisation. Σ_j a_ij is between e^-2 and 1. Only the returned weights are normalised:
    α_ij = a_ij / Σ_j a_ij. The returned log Z_i satisfies log α_ij + log Z_i = e_ij - 2 (j - p_i)² / D².

    W_p (N, H) and v_p (N) get their gradients through the Gaussian. The initialisation `paper` draws
    W_p and v_p from N(0, 0.01²); `glorot` and `wide` use `xavier_uniform_`. These values are small, so the
    sigmoid is near 1/2, and every window is at first centred near the middle of the sentence. Raises
    ValueError if `window` (D) is less than 1.
    """

    def __init__(
        self, hidden: int, annotation: int, alignment: int, scoring: nn.Module, *, window: int = 10
    ) -> None:
        if window < 1:
            raise ValueError(f"window is {window}; it must be at least 1")
        super().__init__(hidden, annotation, alignment, scoring)
        self.window = window
        self.W_p = nn.Parameter(torch.empty(alignment, hidden))
        self.v_p = nn.Parameter(torch.empty(alignment))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        super().initialise(init)
        if hasattr(self, "v_p"):  # `Attention.__init__` calls this method before `v_p` exists
            initialise_matrix(self.W_p, init)
            initialise_matrix(self.v_p.unsqueeze(0), init)

    def centre(self, state: Tensor, mask: Tensor) -> Tensor:
        """Returns p_i (B, K) between 0 and T_x, for `state` (B, K, H) and the source mask (B, S)."""
        dtype = accumulate_dtype(state.dtype)  # bfloat16 has steps of 0.25 for positions near 50
        with torch.autocast(state.device.type, enabled=False):
            features = torch.tanh(linear(state.to(dtype), self.W_p.to(dtype)))
            return mask.sum(1, keepdim=True) * torch.sigmoid(features @ self.v_p.to(dtype))

    def forward(self, state: Tensor, memory: Memory) -> AttentionOutput:
        """Computes the contexts and weights for `state` (B, K, H), which has K states per sentence."""
        scores = self.scores(state, memory.keys)  # (B, K, S)
        centre = self.centre(state, memory.mask).to(scores.dtype).unsqueeze(2)
        distance = torch.arange(1, scores.shape[2] + 1, device=scores.device) - centre
        in_window = memory.mask.unsqueeze(1) & (distance.abs() <= self.window)
        weights, log_normaliser = masked_softmax(scores, in_window)
        weights = weights * torch.exp(-2 * (distance / self.window).square())  # σ = D / 2
        context = torch.bmm(weights, memory.annotations)
        total = weights.sum(2, keepdim=True)
        return AttentionOutput(context, weights / total, log_normaliser + total.squeeze(2).log())
