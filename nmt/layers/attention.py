"""The context c_i of the decoder: global attention over the annotations, or one fixed vector.

Sizes: B batch, K queries per sentence, S source length, H state, A annotation, Q query, N key.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.layers.memory import Memory
from nmt.layers.precision import accumulate_dtype
from nmt.layers.scoring import projections_of, query_and_key_sizes


class AttentionOutput(NamedTuple):
    """Context and weights of one decoder step. In `Attention`, the score e_ij is log α_ij + log Z_i."""

    context: Tensor  # (B, K, A) c_i
    weights: Tensor | None  # (B, K, S) α_ij, sums over S are 1; None for a fixed context
    log_normaliser: Tensor | None  # (B, K) log Z_i of the softmax; None for a fixed context


def masked_softmax(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the softmax (B, K, S) of `scores` over positions where `mask` is True (0 elsewhere), and log Z (B, K)."""
    scores = scores.masked_fill(~mask, -torch.inf)
    log_normaliser = scores.logsumexp(2)
    return torch.exp(scores - log_normaliser.unsqueeze(2)), log_normaliser


class Attention(nn.Module):
    """c_i = Σ_j α_ij h_j, α_i = softmax of score(W_a s_{i-1}, U_a h_j) over unpadded positions j (section 3.1).

    There are no biases. The `projections` of the scoring function (see `nmt.layers.scoring`) decide
    whether W_a and U_a exist. If W_a is None, the queries are the states. If U_a is None, the keys are
    the annotations.

    Initialisation: `paper` draws W_a and U_a from N(0, 0.001²) (appendix B.1). `glorot` and `wide`
    use `xavier_uniform_`, so that useful alignments are learnt in a few hundred updates.
    """

    W_a: nn.Parameter | None  # (Q, H)
    U_a: nn.Parameter | None  # (N, A)

    def __init__(self, hidden: int, annotation: int, alignment: int, scoring: nn.Module) -> None:
        super().__init__()
        projected = projections_of(scoring)
        query_size, key_size = query_and_key_sizes(scoring, hidden, annotation, alignment)
        self.size = annotation
        W_a, U_a = torch.empty(query_size, hidden), torch.empty(key_size, annotation)
        self.W_a = nn.Parameter(W_a) if "query" in projected else None
        self.U_a = nn.Parameter(U_a) if "keys" in projected else None
        self.scoring = scoring
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        for matrix in (self.W_a, self.U_a):
            if matrix is not None and init == "paper":
                nn.init.normal_(matrix, std=0.001)
            elif matrix is not None:
                nn.init.xavier_uniform_(matrix)

    def keys(self, annotations: Tensor) -> Tensor:
        """Returns U_a h_j for every position: (B, S, A) -> (B, S, N)."""
        return annotations if self.U_a is None else nn.functional.linear(annotations, self.U_a)

    def forward(self, state: Tensor, memory: Memory) -> AttentionOutput:
        """Computes the contexts and weights for `state` (B, K, H), which has K states per sentence."""
        scores = self.scores(state, memory.keys)
        weights, log_normaliser = masked_softmax(scores, memory.mask.unsqueeze(1))
        return AttentionOutput(torch.bmm(weights, memory.annotations), weights, log_normaliser)

    def scores(self, state: Tensor, keys: Tensor | None) -> Tensor:
        """Returns the scores e_ij (B, K, S) for `state` (B, K, H) and `keys` (B, S, N).

        Scores are computed in float32 or float64. In bfloat16, scores near 100 would be rounded to
        multiples of 0.5, and tanh would be several times slower on a CPU. Raises ValueError if the
        scores do not have the shape (B, K, S).
        """
        assert keys is not None
        query = state if self.W_a is None else nn.functional.linear(state, self.W_a)
        dtype = accumulate_dtype(query.dtype)
        with torch.autocast(query.device.type, enabled=False):
            scores: Tensor = self.scoring(query.to(dtype), keys.to(dtype))
        shape = (len(query), query.shape[1], keys.shape[1])
        if scores.shape != shape:
            name = type(self.scoring).__name__
            raise ValueError(f"{name}: scores have the shape {tuple(scores.shape)}, not {shape}")
        return scores


class FixedContext(nn.Module):
    """Uses the encoder's summary as every context c_i. In RNNencdec the summary is →h_Tx (section 2.1, A.2.1)."""

    scoring = None

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def keys(self, annotations: Tensor) -> None:
        """Returns None: there are no keys to compare with a state."""

    def forward(self, state: Tensor, memory: Memory) -> AttentionOutput:
        """Returns the same context for all K states of a sentence, and no weights. `state` has the shape (B, K, H)."""
        context = memory.summary.unsqueeze(1).expand(-1, state.shape[1], -1)
        return AttentionOutput(context, None, None)
