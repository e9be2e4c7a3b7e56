"""Scoring functions of attention: how well each annotation matches a query (section A.1.2 and others).

A scoring function is a module `(query (B, K, Q), keys (B, S, N)) -> scores (B, K, S)`. Its
constructor takes the sizes Q and N. It needs no other method than `forward`, and sees no mask. A
class attribute names what `Attention` projects before it calls the function:

    projections = ("query", "keys")    q = W_a s, k = U_a h, both of `alignment` entries (default)
    projections = ("query",)           q = W_a s of the size of an annotation, k = h
    projections = ("keys",)            q = s, k = U_a h of the size of a state
    projections = ()                   q = s, k = h

`Additive`, `Dot`, `ScaledDot` and `Cosine` share both projections and differ in the score alone.
Queries and keys come in float32 at least, and autocast is off.

B batch, K queries a sentence, S source length, Q query, N key, H state, A annotation.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

BOTH = ("query", "keys")


def projections_of(scoring: object) -> tuple[str, ...]:
    """The `projections` of a scoring function or of its class."""
    return tuple(getattr(scoring, "projections", BOTH))


def query_and_key_sizes(
    scoring: object, hidden: int, annotation: int, alignment: int
) -> tuple[int, int]:
    """The sizes Q and N of a scoring function, given as a module or as its class.

    Args:
        hidden: entries of a state (H).
        annotation: entries of an annotation (A).
        alignment: entries of the space that both are projected to.
    """
    projected = projections_of(scoring)
    if projected == BOTH:
        return alignment, alignment
    query = annotation if "query" in projected else hidden
    return query, (hidden if "keys" in projected else annotation)


class Additive(nn.Module):
    """e_ij = v_aᵀ tanh(q_i + k_j), the alignment model of the paper (section A.1.2).

    Initialisation: under `paper` v_a is 0. Every score is then 0 and all weights are equal, and W_a
    and U_a have no gradient until v_a has left 0. Under `glorot` v_a is drawn as a matrix of 1 x N,
    and attention forms several times sooner.
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
        """Scores (B, K, S) of `keys` (B, S, N) for each of K projected states `query` (B, K, N)."""
        return torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) @ self.v.to(query.dtype)


class Dot(nn.Module):
    """e_ij = q_iᵀ k_j, the product of the projected state and the projected annotation.

    It has no parameters. W_a and U_a are drawn as for `Additive`. Under `paper` both are small, and
    so are the first scores; neither matrix may be 0, since each is a factor of the other's gradient.

    q_iᵀ k_j = s_{i-1}ᵀ (W_aᵀ U_a) h_j: `Dot` is `General` with a matrix of rank N at most.
    """

    scale: float

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.scale = 1.0

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores (B, K, S) of `keys` (B, S, N) for each of K projected states `query` (B, K, N)."""
        return torch.bmm(query * self.scale, keys.transpose(1, 2))


class ScaledDot(Dot):
    """e_ij = q_iᵀ k_j / √N: `Dot` with a variance that does not grow with the size of the space.

    Since W_a and U_a are learnt, `Dot` can compute the same scores. The division changes where
    training starts and how large its steps are: under Adam, `Dot` makes the same updates if W_a and
    U_a are drawn N^(-1/4) times as large and have N^(-1/4) times the learning rate.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(query_size, key_size)
        self.scale = 1 / math.sqrt(key_size)


class General(Dot):
    """e_ij = s_{i-1}ᵀ W h_j (Luong, Pham and Manning, 2015, section 3.1, `general`).

    W is the transpose of W_a (A, H), which projects the query to the size of an annotation:
    q_i = W_a s_{i-1}, k_j = h_j. The size of the alignment space plays no part.
    """

    projections = ("query",)


class Cosine(nn.Module):
    """e_ij = cos(q_i, k_j) / τ. The temperature τ is learnt, as log 1/τ.

    The smaller the matrices, the larger are their gradients: choose `glorot` rather than `paper`.
    τ begins as 1/√N, with which the scores of random vectors have a variance of 1.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.size = key_size
        self.log_scale = nn.Parameter(torch.empty(1))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        nn.init.constant_(self.log_scale, math.log(self.size) / 2)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores (B, K, S) of `keys` (B, S, N) for each of K projected states `query` (B, K, N)."""
        cosine = torch.bmm(normalize(query, dim=2), normalize(keys, dim=2).transpose(1, 2))
        return cosine * self.log_scale.exp()
