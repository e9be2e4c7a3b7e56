"""The context c_i of the decoder: global attention over the annotations, or one fixed vector.

B batch, K queries a sentence, S source length, H state, A annotation, Q query, N key.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from nmt.layers.fused.decoder import DecoderTrace, run_with_attention, run_with_fixed_context
from nmt.layers.fused.graphs import GraphCache
from nmt.layers.gated_unit import GatedUnit
from nmt.layers.memory import Memory
from nmt.layers.scoring import compared_sizes, projections_of


class AttentionOutput(NamedTuple):
    """The context of one step, or its products, with the attention weights."""

    context: Tensor | None  # (B, K, A) c_i; None where `products` take its place
    weights: Tensor | None  # (B, K, S) α_ij; None for a fixed context
    log_normaliser: Tensor | None  # (B, K) log Z_i, with e_ij = log α_ij + log Z_i
    products: Tensor | None = None  # (B, K, P) [C; C_o] c_i, made of those in the memory

    @classmethod
    def weighted(
        cls,
        weights: Tensor,
        log_normaliser: Tensor | None,
        values: Tensor,
        products: Tensor | None = None,
    ) -> Self:
        """c_i = Σ_j α_ij h_j, or Σ_j α_ij [C; C_o] h_j = [C; C_o] c_i where these products are given."""
        if products is None:
            return cls(torch.bmm(weights, values), weights, log_normaliser)
        return cls(None, weights, log_normaliser, torch.bmm(weights, products))


def softmax_where(scores: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (B, K, S) over the positions that `seen` marks, 0 elsewhere, and log Z (B, K)."""
    scores = scores.masked_fill(~seen, -torch.inf)
    log_normaliser = scores.logsumexp(2)
    return torch.exp(scores - log_normaliser.unsqueeze(2)), log_normaliser


def normalise_rows(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (..., S) divided by the sum of their row, and these sums (..., 1); rows of 0 stay 0."""
    total = weights.sum(-1, keepdim=True)
    total = total.clamp(min=torch.finfo(total.dtype).tiny)  # no division by 0, no logarithm of it
    return weights / total, total


class Attention(nn.Module):
    """c_i = Σ_j α_ij h_j, α_i = softmax over real j of score(W_a s_{i-1}, U_a h_j) (section 3.1).

    No biases. Initialisation: `paper` draws W_a and U_a from N(0, 0.001²) (appendix B.1), whatever
    the scoring function; `glorot` by Glorot's rule, with which attention forms within a few hundred
    updates. Of the two matrices there are those that the scoring function names in its
    `projections` (see `nmt.layers.scoring`); without one, states or annotations are compared.

    Two exponents change their scale with the number N of entries that are compared: what is drawn is
    multiplied by N^init_exponent, and their learning rate by N^lr_exponent (`lr_factor`).

    `forward` is the definition, of one step; `run_fused` runs a whole target sentence, and `values`
    lets a search multiply annotations before it sums them (`Decoder.precompute`). Raises ValueError
    for an exponent where there is nothing to scale.
    """

    W_a: nn.Parameter | None
    U_a: nn.Parameter | None
    normalised = True  # whether the weights of a step sum to 1; see `Decoder.forward`

    def __init__(
        self,
        hidden: int,
        annotation: int,
        alignment: int,
        scoring: nn.Module,
        *,
        init_exponent: float = 0.0,
        lr_exponent: float = 0.0,
    ) -> None:
        super().__init__()
        projected = projections_of(scoring)
        if not projected and (init_exponent or lr_exponent):
            raise ValueError(f"{type(scoring).__name__} takes no projections that could be scaled")
        query_size, key_size = compared_sizes(scoring, hidden, annotation, alignment)
        self.size = annotation
        self.init_factor = key_size**init_exponent
        self.lr_factor = key_size**lr_exponent
        W_a, U_a = torch.empty(query_size, hidden), torch.empty(key_size, annotation)
        self.W_a = nn.Parameter(W_a) if "query" in projected else None
        self.U_a = nn.Parameter(U_a) if "keys" in projected else None
        self.scoring = scoring
        self.initialise("paper")

    def initialise(self, init: str) -> None:
        for matrix in self.projections():
            if init == "paper":
                nn.init.normal_(matrix, std=0.001)
            else:
                nn.init.xavier_uniform_(matrix)
            if self.init_factor != 1:
                matrix.data.mul_(self.init_factor)

    def projections(self) -> list[nn.Parameter]:
        """Those of W_a and U_a that there are."""
        return [matrix for matrix in (self.W_a, self.U_a) if matrix is not None]

    def queries(self, state: Tensor) -> Tensor:
        """W_a s for K states a sentence: (B, K, H) -> (B, K, Q)."""
        return state if self.W_a is None else nn.functional.linear(state, self.W_a)

    def keys(self, annotations: Tensor) -> Tensor:
        """U_a h_j for every position: (B, S, A) -> (B, S, N)."""
        return annotations if self.U_a is None else nn.functional.linear(annotations, self.U_a)

    def forward(self, state: Tensor, memory: Memory) -> AttentionOutput:
        """Attends with K states a sentence (B, K, H); annotations are never copied."""
        weights, log_normaliser = softmax_where(
            self.scores(state, memory), memory.mask.unsqueeze(1)
        )
        return AttentionOutput.weighted(
            weights, log_normaliser, self.values(memory), memory.products
        )

    def values(self, memory: Memory) -> Tensor:
        """h_j (B, S, A): what every c_i is a weighted sum of."""
        return memory.annotations

    def scores(self, state: Tensor, memory: Memory) -> Tensor:
        """e_ij (B, K, S), in float32 at least, for K states a sentence (B, K, H)."""
        assert memory.keys is not None
        scores: Tensor = self.scoring(self.queries(state), memory.keys)
        return scores.to(torch.promote_types(scores.dtype, torch.float32))

    def run_fused(
        self,
        projected: Tensor,
        initial: Tensor,
        memory: Memory,
        unit: GatedUnit,
        graph_cache: GraphCache | None,
    ) -> DecoderTrace:
        """All steps of a decoder: see `nmt.layers.fused.decoder.run_with_attention`."""
        W_a: Tensor | None = self.W_a
        if W_a is None:
            W_a = torch.eye(unit.hidden, dtype=unit.U.dtype, device=unit.U.device)
        memory = memory._replace(annotations=self.values(memory))
        return run_with_attention(projected, initial, memory, W_a, self.scoring, unit, graph_cache)


class FixedContext(nn.Module):
    """c_i = →h_Tx for every i: the model without attention (section 2.1, appendix A.2.1)."""

    scoring = None

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def keys(self, annotations: Tensor) -> None:
        """None: a fixed vector is not searched."""

    def forward(self, state: Tensor, memory: Memory) -> AttentionOutput:
        """The same context (B, K, A) for each of K states (B, K, H); no weights, no scores."""
        if memory.products is not None:
            products = memory.products.expand(-1, state.shape[1], -1)
            return AttentionOutput(None, None, None, products)
        context = self.values(memory).expand(-1, state.shape[1], -1)  # (B, K, A)
        return AttentionOutput(context, None, None)

    def values(self, memory: Memory) -> Tensor:
        """→h_Tx (B, 1, A): all that every c_i is made of."""
        return memory.summary.unsqueeze(1)

    def run_fused(
        self,
        projected: Tensor,
        initial: Tensor,
        memory: Memory,
        unit: GatedUnit,
        graph_cache: GraphCache | None,
    ) -> DecoderTrace:
        """All steps of a decoder: see `nmt.layers.fused.decoder.run_with_fixed_context`."""
        return run_with_fixed_context(projected, initial, memory, unit, graph_cache)
