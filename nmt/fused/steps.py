"""One step of a recurrence and its derivative in PyTorch operations, without autograd.

`nmt.fused.gpu.kernels` offers the same functions as Triton kernels. Every function writes into
buffers that the caller owns.

B batch, S source length, H state, A annotation, N alignment. The leading `...` is (directions, B)
or (B). A stacked tensor holds the parts of z, r, s̃ in that order.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.fused.likelihood import (
    accumulate_columns,
    accumulate_product,
    logits_memory,
    operand,
    word_nll,
)
from nmt.fused.scans import ScoringScan, additive_scores, scan_of
from nmt.layers.precision import accumulate_dtype

__all__ = [
    "accumulate_columns",
    "accumulate_product",
    "additive_scores",
    "attention_steps",
    "candidate_backward",
    "logits_memory",
    "next_state",
    "open_gates",
    "operand",
    "reset_backward",
    "word_nll",
]

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward
softmax_backward = torch.ops.aten._softmax_backward_data


def by_step(*tensors: Tensor, dim: int = 0) -> list[tuple[Tensor, ...]]:
    """A view of each step of each tensor, which has its steps in dimension `dim`.

    All are made at once: to index a tensor takes as long as an operation on a few hundred entries.
    """
    return [tensor.unbind(dim) for tensor in tensors]


def open_gates(
    projected: Tensor,
    added: Tensor,
    state: Tensor,
    gates: Tensor,
    reset: Tensor,
    real: Tensor | None = None,
) -> None:
    """Writes [z, r] = σ(projected + added) (..., 2H) into `gates` and r∘s (..., H) into `reset`.

    Where `real` (..., 1) is 0 the update gate is 0, which freezes the state exactly.
    """
    torch.add(projected, added, out=gates).sigmoid_()
    z, r = gates.chunk(2, -1)
    if real is not None:
        z.mul_(real)
    torch.mul(r, state, out=reset)


def next_state(
    projected: Tensor,
    added: Tensor,
    state: Tensor,
    gates: Tensor,
    candidate: Tensor,
    after: Tensor,
    compute_copy: Tensor | None = None,
) -> None:
    """Writes s̃ = tanh(projected + added) into `candidate` and (1 - z)∘s + z∘s̃ into `after`.

    All are (..., H). `compute_copy` gets a copy of the new state in the type of products.
    """
    torch.add(projected, added, out=candidate).tanh_()
    torch.lerp(state, candidate, gates.chunk(2, -1)[0], out=after)
    if compute_copy is not None:
        compute_copy.copy_(after)


def candidate_backward(
    grad_state: Tensor,
    term: Tensor,
    upstream: Tensor,
    gates: Tensor,
    candidate: Tensor,
    state: Tensor,
    grad: Tensor,
) -> None:
    """Completes the gradient of s', and writes those of the pre-activations of z and s̃.

    `term` and `upstream` (..., H), what reaches s' through the products of the next step and from
    outside, are added to `grad_state` in place; z and s̃ go into `grad` (..., 3H).
    """
    grad_state.add_(term).add_(upstream)
    z = gates.chunk(2, -1)[0]
    grad_z, _, grad_candidate = grad.chunk(3, -1)
    grad_candidate.copy_(tanh_backward(grad_state * z, candidate))
    grad_z.copy_(sigmoid_backward((candidate - state).mul_(grad_state), z))


def reset_backward(
    grad_state: Tensor, grad_reset: Tensor, gates: Tensor, state: Tensor, grad: Tensor
) -> None:
    """From the gradient of r∘s (..., H), `grad_reset`: writes that of r's pre-activation into `grad`.

    `grad_state`, the gradient of s', becomes what reaches s without passing U_z and U_r:
    (1 - z)∘grad_state + r∘grad_reset.
    """
    z, r = gates.chunk(2, -1)
    grad.chunk(3, -1)[1].copy_(sigmoid_backward(grad_reset * state, r))
    grad_state.addcmul_(z, grad_state, value=-1).addcmul_(r, grad_reset)


def attention_steps(
    scoring: nn.Module, keys: Tensor, annotations: Tensor, mask: Tensor
) -> AttentionSteps:
    """Attention over annotations (B, S, A) with keys (B, S, N) where `mask` (B, S) is True."""
    # in 16 bits tanh is several times slower on a CPU, and the sum before it has three digits
    keys = keys.to(accumulate_dtype(keys.dtype))
    return AttentionSteps(scan_of(scoring, keys), keys, annotations, ~mask)


class AttentionSteps:
    """Attention over the annotations of one batch, step by step, and its derivative."""

    def __init__(
        self, scan: ScoringScan, keys: Tensor, annotations: Tensor, padding: Tensor
    ) -> None:
        self.scan = scan
        self.keys = keys
        self.annotations = annotations
        self.padding = padding

    def attend(
        self, query: Tensor, weights: Tensor, log_normaliser: Tensor, context: Tensor
    ) -> None:
        """Writes α (B, S), log Z (B) and c (B, A) for a query (B, N)."""
        scores = self.scan.scores(query.to(self.keys.dtype))
        scores = scores.masked_fill(self.padding, -torch.inf)  # they may be the module's own memory
        torch.logsumexp(scores, 1, out=log_normaliser)
        torch.softmax(scores, 1, out=weights)
        alpha = weights.to(self.annotations.dtype).unsqueeze(1)
        torch.bmm(alpha, self.annotations, out=context.unsqueeze(1))

    def backward(
        self,
        grad_context: Tensor,
        query: Tensor,
        weights: Tensor,
        grad_scores: Tensor,
        grad_query: Tensor,
    ) -> None:
        """Writes the gradients of scores (B, S) and query (B, N) from that of the context."""
        # a row vector times a matrix is ten times as fast on a CPU as a matrix times a column
        grad_weights = torch.bmm(grad_context.unsqueeze(1), self.annotations.transpose(1, 2))
        grad_weights = grad_weights.squeeze(1)
        dtype = weights.dtype
        grad_scores.copy_(softmax_backward(grad_weights.to(dtype), weights, 1, dtype))
        grad_query.copy_(self.scan.backward(grad_scores, query.to(dtype)))

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        """Those of keys (B, S, N) and the score's parameters, from all steps (T, B, S | N)."""
        return self.scan.gradients(grad_scores, queries.to(self.keys.dtype))
