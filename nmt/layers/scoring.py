"""Scoring functions of attention: how well each annotation matches a query (section A.1.2 and others).

A scoring function is a pure module `(query (B, K, Q), keys (B, S, N)) -> scores (B, K, S)`, made
with the sizes Q and N. It knows nothing of masks, softmax or time; `forward` is all it needs. A
class attribute says which of the two `Attention` projects for it:

    projections = ("query", "keys")    q = W_a s, k = U_a h, both of `alignment` entries (default)
    projections = ("query",)           q = W_a s of the size of an annotation, k = h
    projections = ("keys",)            q = s, k = U_a h of the size of a state
    projections = ()                   q = s, k = h

`Additive`, `Dot`, `ScaledDot` and `Cosine` share both projections and differ in the score alone.
Scores are computed in float32 at least: in 16 bits, scores of a hundred differ by whole numbers, and
tanh is several times slower on a CPU.

B batch, K queries a sentence, S source length, Q query, N key, H state, A annotation.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from nmt.layers.precision import accumulate_dtype

BOTH = ("query", "keys")


def projections_of(scoring: object) -> tuple[str, ...]:
    """What `Attention` projects for a scoring function, or a class of one: see above."""
    return tuple(getattr(scoring, "projections", BOTH))


def compared_sizes(
    scoring: object, hidden: int, annotation: int, alignment: int
) -> tuple[int, int]:
    """Entries of the queries and of the keys that a scoring function, or a class of one, is given.

    Takes the sizes H of a state, A of an annotation, and of the space that both are projected to.
    """
    projected = projections_of(scoring)
    if projected == BOTH:
        return alignment, alignment
    query = annotation if "query" in projected else hidden
    return query, (hidden if "keys" in projected else annotation)


class Additive(nn.Module):
    """e_ij = v_aᵀ tanh(q_i + k_j), the alignment model of the paper (section A.1.2).

    Initialisation: v_a is 0 under `paper`, so that every score starts at 0 and the weights uniform;
    v_a is then the only one of W_a, U_a, v_a with a gradient until it has left 0. Under `glorot`
    v_a is drawn as the 1 x N matrix it is, and attention forms several times sooner.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.v = nn.Parameter(torch.zeros(equal(query_size, key_size)))

    def initialise(self, init: str) -> None:
        if init == "paper":
            nn.init.zeros_(self.v)
        else:
            nn.init.xavier_uniform_(self.v.unsqueeze(0))

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores (B, K, S) of `keys` (B, S, N) for each of K projected states `query` (B, K, N)."""
        dtype = accumulate_dtype(query.dtype)
        with torch.autocast(query.device.type, enabled=False):
            query, keys = query.to(dtype).unsqueeze(2), keys.to(dtype).unsqueeze(1)
            return torch.tanh(query + keys) @ self.v.to(dtype)


class Dot(nn.Module):
    """e_ij = q_iᵀ k_j, the product of the projected state and the projected annotation.

    It has no parameters of its own. W_a and U_a are drawn as for `Additive`, so that
    another scoring function changes the score alone. There is no v_a = 0 to silence it: the scores start
    near 0 because both factors are small under `paper` (and each is the other's gradient, so that
    neither may be 0), and spread at once under `glorot`.

    q_iᵀ k_j = s_{i-1}ᵀ (W_aᵀ U_a) h_j: `Dot` is `General` with a matrix of rank N at most.
    """

    scale: float

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        equal(query_size, key_size)
        self.scale = 1.0

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores (B, K, S) of `keys` (B, S, N) for each of K projected states `query` (B, K, N)."""
        dtype = accumulate_dtype(query.dtype)
        with torch.autocast(query.device.type, enabled=False):
            query, keys = query.to(dtype), keys.to(dtype)
            return torch.bmm(query * self.scale, keys.transpose(1, 2))


class ScaledDot(Dot):
    """e_ij = q_iᵀ k_j / √N: `Dot` with a variance that does not grow with the size of the space.

    Initialised as `Dot` is; the scale keeps the first weights nearer to uniform under `glorot`.

    As W_a and U_a are learnt, both score with the same functions. What the division changes is
    where training starts and how far a step of it goes: under Adam, `Dot` with W_a and U_a drawn
    N^(-1/4) times as large and moved at N^(-1/4) times the learning rate makes the same updates.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__(query_size, key_size)
        self.scale = 1 / math.sqrt(key_size)


class General(Dot):
    """e_ij = s_{i-1}ᵀ W h_j (Luong, Pham and Manning, 2015, section 3.1, `general`).

    The matrix is the transpose of W_a (A, H), which projects the query to the size of an annotation:
    q_i = W_a s_{i-1}, k_j = h_j. Its rank is bounded by the sizes of state and annotation alone; the
    size of the alignment space plays no part.
    """

    projections = ("query",)


class Cosine(nn.Module):
    """e_ij = cos(q_i, k_j) / τ, with a temperature τ that is learnt, as log 1/τ.

    Lengths of W_a s and U_a h play no part, so their gradients are orthogonal to them and the
    larger, the smaller the matrices: choose `glorot` rather than `paper`. τ begins as 1/√N, with
    which the scores of random vectors have a variance of 1.
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.size = equal(query_size, key_size)
        self.log_scale = nn.Parameter(torch.empty(1))
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        nn.init.constant_(self.log_scale, math.log(self.size) / 2)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """Scores (B, K, S) of `keys` (B, S, N) for each of K projected states `query` (B, K, N)."""
        dtype = accumulate_dtype(query.dtype)
        with torch.autocast(query.device.type, enabled=False):
            query, keys = (normalize(x.to(dtype), dim=2) for x in (query, keys))
            return torch.bmm(query, keys.transpose(1, 2)) * self.log_scale.to(dtype).exp()


def equal(query_size: int, key_size: int) -> int:
    """The size that queries and keys share; raises ValueError where they do not."""
    if query_size != key_size:
        raise ValueError(f"queries of {query_size} entries cannot meet keys of {key_size}")
    return key_size
