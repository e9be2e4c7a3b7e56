"""Scoring functions, which compute how well each annotation matches a query (the paper's A.1.2, and other papers).

A scoring function is a module `(query (B, K, Q), keys (B, S, N)) -> scores (B, K, S)`. Its
constructor takes the sizes Q and N. It needs only the method `forward`, which gets no mask. The class
attribute `projections` says which inputs `Attention` projects before it calls the module:

    projections = ("query", "keys")    the default: q = W_a s, k = U_a h, both of size `alignment`
    projections = ("query",)           q = W_a s (size of an annotation), k = h
    projections = ("keys",)            q = s, k = U_a h (size of a state)
    projections = ()                   q = s, k = h

`Additive`, `Dot`, `ScaledDot` and `Cosine` use both projections and differ only in the score.
Queries and keys are float32 or float64, and autocast is off.

Sizes: B batch, K queries per sentence, S source length, Q query, N key, H state, A annotation.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

BOTH = ("query", "keys")


def projections_of(scoring: object) -> tuple[str, ...]:
    """Returns the `projections` of a scoring function, given as a module or as its class."""
    return tuple(getattr(scoring, "projections", BOTH))


def query_and_key_sizes(
    scoring: object, hidden: int, annotation: int, alignment: int
) -> tuple[int, int]:
    """Returns the sizes Q and N for a scoring function, given as a module or as its class.

    Args:
        hidden: size of a state (H).
        annotation: size of an annotation (A).
        alignment: size of a query and of a key, if both are projected.
    """
    projected = projections_of(scoring)
    if projected == BOTH:
        return alignment, alignment
    query = annotation if "query" in projected else hidden
    return query, (hidden if "keys" in projected else annotation)


class Additive(nn.Module):
    """e_ij = v_aᵀ tanh(q_i + k_j), the alignment model of the paper (section A.1.2).

    Initialisation: `paper` sets v_a to 0. Then all scores are 0, all weights are equal, and the
    gradient of W_a and U_a is 0 until v_a changes. `glorot` and `wide` initialise v_a
    like a 1 × N matrix, by `xavier_uniform_`. Both learn alignments in several times fewer updates than `paper`.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.zeros(key_size))

    def initialise(self, init: str) -> None:
        if init == "paper":
            nn.init.zeros_(self.v)
        else:
            nn.init.xavier_uniform_(self.v.unsqueeze(0))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Returns the scores (B, K, S) of the projected states `query` (B, K, N) and of `keys` (B, S, N)."""
        return torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ self.v.to(query.dtype)


class Dot(nn.Module):
    """e_ij = q_iᵀ k_j, the product of the projected state and the projected annotation.

    It has no parameters. W_a and U_a of `Attention` are initialised as for `Additive`. With `paper`,
    both matrices are small, so the first scores are small, too. If both matrices started at 0, they
    would stay 0, because the gradient of each matrix has the other matrix as a factor.

    Since q_iᵀ k_j = s_{i-1}ᵀ (W_aᵀ U_a) h_j, `Dot` is `General` with a matrix of rank at most N.
    """

    scale: float

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.scale = 1.0

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Returns the scores (B, K, S) of the projected states `query` (B, K, N) and of `keys` (B, S, N)."""
        return torch.bmm(query * self.scale, keys.transpose(1, 2))


class ScaledDot(Dot):
    """e_ij = q_iᵀ k_j / √N: `Dot`, scaled so that the variance of the scores does not grow with N.

    `Dot` can learn the same scores with smaller W_a and U_a. But the division by √N changes the initial
    scores and the size of updates. If the initial values and the learning rate of W_a and U_a are
    multiplied by N^(-1/4), `Dot` trains like `ScaledDot`. This holds for Adam with ε = 0 and
    without weight decay or gradient clipping.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(query_size, key_size)
        self.scale = 1 / math.sqrt(key_size)


class General(Dot):
    """e_ij = s_{i-1}ᵀ W h_j (Luong, Pham and Manning, 2015, section 3.1, `general`).

    W is the transpose of W_a (A, H), which projects the state to the size of an annotation:
    q_i = W_a s_{i-1}, k_j = h_j. The argument `alignment` of `Attention` has no effect.
    """

    projections = ("query",)


class Cosine(nn.Module):
    """e_ij = cos(q_i, k_j) / τ, where log 1/τ is a learnt parameter.

    The scale of W_a and U_a does not change the cosine, so small W_a and U_a have large gradients. So
    choose the initialisation `glorot` instead of `paper`, which makes W_a and U_a small. With the initial
    value τ = 1/√N, the scores of random vectors have variance 1.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.size = key_size
        self.log_scale = nn.Parameter(torch.empty(1))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        nn.init.constant_(self.log_scale, math.log(self.size) / 2)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Returns the scores (B, K, S) of the projected states `query` (B, K, N) and of `keys` (B, S, N)."""
        cosine = torch.bmm(normalize(query, dim=2), normalize(keys, dim=2).transpose(1, 2))
        return cosine * self.log_scale.exp()
