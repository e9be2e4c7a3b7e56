"""Attention as Triton kernels, two each way a step, and one for the gradient of the keys.

Keys and annotations are read once a step, in their own type; scores, softmax and sums are in float32.
A program computes one sentence and one block of positions or entries. Programs add nothing up
atomically, so that results do not depend on their order.

Sizes of the model and distances between rows are compile-time constants: only then the compiler loads
16 bytes at a time. Sizes of a batch are not, and addresses that depend on them are not specialised on
their alignment, or every new length would be compiled.

B batch, S source length, T target length, A annotation, N alignment.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from nmt.fused.attention import dot_gradient
from nmt.fused.gpu.kernels.gates import tanh
from nmt.layers import Additive

POSITIONS = 8  # source positions that a program takes at once
ENTRIES = 256  # entries of the alignment space or of annotations that it takes at once
WHOLE = 64  # the least number of positions that a softmax is compiled for


@triton.jit
def rows_of(tensor, b, j, column, source, SIZE: tl.constexpr):
    """Some columns of rows j of sentence b of a tensor (B, source, SIZE), 0 outside."""
    here = (j[:, None] < source) & (column[None, :] < SIZE)
    places = tensor + (b * source + j[:, None]) * SIZE + column[None, :]
    return tl.load(places, mask=here, other=0).to(tl.float32)


@triton.jit(do_not_specialize=["source"], do_not_specialize_on_alignment=["mask", "scores"])
def score_kernel(
    query, keys, v, mask, scores, source, scale, QUERY_ROW: tl.constexpr, ALIGNMENT: tl.constexpr,
    POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Without `v` these are products, also of a context's gradient with the annotations."""
    b = tl.program_id(0)
    j = tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS)
    sums = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for first in range(0, ALIGNMENT, ENTRIES):
        n = first + tl.arange(0, ENTRIES)
        q = tl.load(query + b * QUERY_ROW + n, mask=n < ALIGNMENT, other=0).to(tl.float32)
        k = rows_of(keys, b, j, n, source, ALIGNMENT)
        if v is not None:
            factor = tl.load(v + n, mask=n < ALIGNMENT, other=0)
            sums += tanh(q[None, :] + k) * factor[None, :]
        else:
            sums += q[None, :] * k
    e = tl.sum(sums, 1) * scale
    if mask is not None:
        real = tl.load(mask + b * source + j, mask=j < source, other=0)
        e = tl.where(real != 0, e, float("-inf"))
    tl.store(scores + b * source + j, e, mask=j < source)


@triton.jit(
    do_not_specialize=["source"],
    do_not_specialize_on_alignment=["scores", "weights", "log_normaliser"],
)
def context_kernel(
    scores, annotations, weights, log_normaliser, context, source,
    SIZE: tl.constexpr, WHOLE: tl.constexpr, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    b, block = tl.program_id(0), tl.program_id(1)
    whole = tl.arange(0, WHOLE)
    scores += b * source
    e = tl.load(scores + whole, mask=whole < source, other=float("-inf"))
    largest = tl.max(e, 0)
    e = tl.exp(e - largest)
    sum_e = tl.sum(e, 0)
    if block == 0:
        tl.store(weights + b * source + whole, e / sum_e, mask=whole < source)
        tl.store(log_normaliser + b, largest + tl.log(sum_e))
    a = block * ENTRIES + tl.arange(0, ENTRIES)
    sums = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for first in range(0, source, POSITIONS):
        j = first + tl.arange(0, POSITIONS)
        e_j = tl.load(scores + j, mask=j < source, other=float("-inf"))
        sums += tl.exp(e_j - largest)[:, None] * rows_of(annotations, b, j, a, source, SIZE)
    tl.store(context + b * SIZE + a, tl.sum(sums, 0) / sum_e, mask=a < SIZE)


@triton.jit(
    do_not_specialize=["source"],
    do_not_specialize_on_alignment=["grad_weights", "weights", "grad_scores"],
)
def query_backward_kernel(
    grad_weights, weights, query, keys, v, grad_scores, grad_query, source, scale,
    QUERY_ROW: tl.constexpr, GRAD_QUERY_ROW: tl.constexpr, ALIGNMENT: tl.constexpr,
    WHOLE: tl.constexpr, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    b, block = tl.program_id(0), tl.program_id(1)
    grad_weights += b * source
    weights += b * source
    whole = tl.arange(0, WHOLE)
    alpha = tl.load(weights + whole, mask=whole < source, other=0)
    g = tl.load(grad_weights + whole, mask=whole < source, other=0)
    mean = tl.sum(alpha * g, 0)
    if block == 0:
        tl.store(grad_scores + b * source + whole, alpha * (g - mean), mask=whole < source)
    n = block * ENTRIES + tl.arange(0, ENTRIES)
    q = tl.load(query + b * QUERY_ROW + n, mask=n < ALIGNMENT, other=0).to(tl.float32)
    sums = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for first in range(0, source, POSITIONS):
        j = first + tl.arange(0, POSITIONS)
        alpha_j = tl.load(weights + j, mask=j < source, other=0)
        grad_e = alpha_j * (tl.load(grad_weights + j, mask=j < source, other=0) - mean)
        k = rows_of(keys, b, j, n, source, ALIGNMENT)
        if v is not None:
            curve = tanh(q[None, :] + k)
            sums += grad_e[:, None] * (1 - curve * curve)
        else:
            sums += grad_e[:, None] * k
    total = tl.sum(sums, 0) * scale
    if v is not None:
        total *= tl.load(v + n, mask=n < ALIGNMENT, other=0)
    tl.store(grad_query + b * GRAD_QUERY_ROW + n, total, mask=n < ALIGNMENT)


@triton.jit(
    do_not_specialize=["length", "batch", "source"], do_not_specialize_on_alignment=["grad_scores"]
)
def additive_gradients_kernel(
    grad_scores, queries, keys, v, grad_keys, grad_v, length, batch, source,
    QUERY_ROW: tl.constexpr, ALIGNMENT: tl.constexpr,
    POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """∂k_j = Σ_i ∂e_ij (1 - tanh²(q_i + k_j))∘v, and a program's share of ∂v."""
    b, block = tl.program_id(0), tl.program_id(1)
    j = block * POSITIONS + tl.arange(0, POSITIONS)
    n = tl.program_id(2) * ENTRIES + tl.arange(0, ENTRIES)
    k = rows_of(keys, b, j, n, source, ALIGNMENT)
    for_keys = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for_v = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for i in range(0, length):
        row = i * batch + b
        q = tl.load(queries + row * QUERY_ROW + n, mask=n < ALIGNMENT, other=0).to(tl.float32)
        grad_e = tl.load(grad_scores + row * source + j, mask=j < source, other=0)[:, None]
        curve = tanh(q[None, :] + k)
        for_keys += grad_e * (1 - curve * curve)
        for_v += grad_e * curve
    for_keys *= tl.load(v + n, mask=n < ALIGNMENT, other=0)[None, :]
    here = (j[:, None] < source) & (n[None, :] < ALIGNMENT)
    place = (b * source + j[:, None]) * ALIGNMENT + n[None, :]
    tl.store(grad_keys + place, for_keys, mask=here)
    share = b * tl.num_programs(1) + block
    tl.store(grad_v + share * ALIGNMENT + n, tl.sum(for_v, 0), mask=n < ALIGNMENT)


class AttentionSteps:
    """See `nmt.fused.attention.DotSteps` and `AdditiveSteps`."""

    def __init__(self, scoring: Any, annotations: Tensor, keys: Tensor, mask: Tensor) -> None:
        self.keys = keys.contiguous()
        self.annotations = annotations.contiguous()
        self.mask = mask.contiguous()
        self.v = scoring.v.float() if isinstance(scoring, Additive) else None
        self.scale = 1.0 if self.v is not None else scoring.scale
        self.row = mask.new_empty(mask.shape, dtype=torch.float32)  # (B, S)
        self.blocks = {"POSITIONS": POSITIONS, "ENTRIES": ENTRIES}
        self.whole = max(WHOLE, triton.next_power_of_2(mask.shape[1]))

    def score(self, query: Tensor, keys: Tensor, v: Any, mask: Any, scale: float) -> None:
        """Writes the scores of a query (B, N) and keys (B, S, N), -inf outside a mask."""
        batch, source, alignment = keys.shape
        score_kernel[batch, triton.cdiv(source, POSITIONS)](
            query, keys, v, mask, self.row, source, scale, QUERY_ROW=query.stride(0),
            ALIGNMENT=alignment, **self.blocks,
        )  # fmt: skip

    def attend(self, query, weights, log_normaliser, context):
        self.score(query, self.keys, self.v, self.mask, self.scale)
        batch, source, size = self.annotations.shape
        context_kernel[batch, triton.cdiv(size, ENTRIES)](
            self.row, self.annotations, weights, log_normaliser, context, source,
            SIZE=size, WHOLE=self.whole, **self.blocks,
        )  # fmt: skip

    def backward(self, grad_context, query, weights, grad_scores, grad_query):
        self.score(grad_context, self.annotations, None, None, 1.0)
        batch, source, alignment = self.keys.shape
        query_backward_kernel[batch, triton.cdiv(alignment, ENTRIES)](
            self.row, weights, query, self.keys, self.v, grad_scores, grad_query, source,
            self.scale, QUERY_ROW=query.stride(0), GRAD_QUERY_ROW=grad_query.stride(0),
            ALIGNMENT=alignment, WHOLE=self.whole, **self.blocks,
        )  # fmt: skip

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        if self.v is None:
            dtype = self.keys.dtype
            return (dot_gradient(grad_scores.to(dtype), queries.to(dtype), self.scale),)
        batch, source, alignment = self.keys.shape
        assert queries.stride(0) == batch * queries.stride(1)
        shares = triton.cdiv(source, POSITIONS)
        grad_keys = torch.empty_like(self.keys)
        grad_v = self.v.new_empty(batch * shares, alignment)
        additive_gradients_kernel[batch, shares, triton.cdiv(alignment, ENTRIES)](
            grad_scores, queries, self.keys, self.v, grad_keys, grad_v, len(queries), batch, source,
            QUERY_ROW=queries.stride(1), ALIGNMENT=alignment, **self.blocks,
        )  # fmt: skip
        return grad_keys, grad_v.sum(0)
