"""Scoring functions: how well each source position fits a query (section A.1.2 and its relatives).

A scoring function is a pure module `(query (B, K, N), keys (B, S, N)) -> scores (B, K, S)`. It
knows nothing of masks, softmax or time. The three below share the projections of the attention (q =
W_a s, k = U_a h) and differ in the score alone.

A scoring function of one's own needs `forward` alone. With `recurrence=fused` it is faster if it
also gives its derivative:

    def backward(self, grad_scores, query, keys):
        ...  # (B, K, S), (B, K, N), (B, S, N)
        return grad_query, grad_keys, *one_gradient_a_parameter  # in the order of self.parameters()

The scoring functions here give a `scan` instead (see `nmt.layers.fused.scans`), which makes one
buffer or one product serve all steps of a sentence.

B batch, K queries a sentence, S source length, N alignment.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from nmt.layers.fused import backend
from nmt.layers.fused.scans import AdditiveScan, DotScan
from nmt.layers.precision import accumulate_dtype


class Additive(nn.Module):
    """e_ij = v_aᵀ tanh(q_i + k_j), the alignment model of the paper (section A.1.2).

    Initialisation: v_a is 0 under `paper`, so that every score starts at 0 and the weights uniform;
    v_a is then the only one of W_a, U_a, v_a with a gradient until it has left 0. Under `glorot`
    v_a is drawn as the 1 x N matrix it is, and attention forms several times sooner.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.zeros(size))

    def initialise(self, init: str) -> None:
        if init == "paper":
            nn.init.zeros_(self.v)
        else:
            nn.init.xavier_uniform_(self.v.unsqueeze(0))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores (B, K, S) of `keys` (B, S, N) for each of K projected states `query` (B, K, N)."""
        # in 16 bits tanh is several times slower on a CPU, and the sum before it has three digits
        dtype = accumulate_dtype(query.dtype)
        with torch.autocast(query.device.type, enabled=False):
            if not torch.is_grad_enabled():
                return backend.steps_for(query).additive_scores(query, keys, self.v)
            query, keys, v = query.to(dtype), keys.to(dtype), self.v.to(dtype)
            return (query.unsqueeze(2) + keys.unsqueeze(1)).tanh_() @ v

    def scan(self, keys: Tensor) -> AdditiveScan:
        return AdditiveScan(keys, self.v)


class Dot(nn.Module):
    """e_ij = q_iᵀ k_j, the product of the projected state and the projected annotation.

    It has no parameters of its own. W_a and U_a are drawn as for `Additive`, so that
    another scoring function changes the score alone. There is no v_a = 0 to silence it: the scores start
    near 0 because both factors are small under `paper` (and each is the other's gradient, so that
    neither may be 0), and spread at once under `glorot`.
    """

    scale: float

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale = 1.0

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores (B, K, S) of `keys` (B, S, N) for each of K projected states `query` (B, K, N)."""
        # in 16 bits scores of a hundred would differ by whole numbers
        dtype = accumulate_dtype(query.dtype)
        with torch.autocast(query.device.type, enabled=False):
            query, keys = query.to(dtype), keys.to(dtype)
            return torch.bmm(query * self.scale, keys.transpose(1, 2))

    def scan(self, keys: Tensor) -> DotScan:
        return DotScan(keys, self.scale)


class ScaledDot(Dot):
    """e_ij = q_iᵀ k_j / √N: `Dot` with a variance that does not grow with the size of the space.

    Initialised as `Dot` is; the scale keeps the first weights nearer to uniform under `glorot`.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.scale = 1 / math.sqrt(size)
