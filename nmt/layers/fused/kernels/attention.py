"""Attention as Triton kernels, two each way a step, and one for the gradient of the keys.

Keys and annotations are read once a step, in the type of products; scores, softmax and sums are in
float32. A program handles one sentence and one block of positions or entries. Sums over programs
are never made by atomic additions, so that results do not depend on their order.

B batch, S source length, T target length, A annotation, N alignment.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from nmt.layers.fused import steps
from nmt.layers.fused.kernels.gates import tanh
from nmt.layers.fused.scans import AdditiveScan, DotScan, scan_of

POSITIONS = 16  # source positions that a program takes at once
ENTRIES = 128  # entries of the alignment space or of annotations that it takes at once


@triton.jit
def score_kernel(
    query, query_b, keys, v, mask, scores, source, alignment, scale,
    ADDITIVE: tl.constexpr, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0)
    j = tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS)
    keys += (b * source + j[:, None]) * alignment
    total = tl.zeros((POSITIONS,), tl.float32)
    for first in range(0, alignment, ENTRIES):
        n = first + tl.arange(0, ENTRIES)
        here = (j[:, None] < source) & (n[None, :] < alignment)
        q = tl.load(query + b * query_b + n, mask=n < alignment, other=0).to(tl.float32)
        k = tl.load(keys + n[None, :], mask=here, other=0).to(tl.float32)
        if ADDITIVE:
            factor = tl.load(v + n, mask=n < alignment, other=0)
            total += tl.sum(tanh(q[None, :] + k) * factor[None, :], 1)
        else:
            total += tl.sum(q[None, :] * k, 1)
    if not ADDITIVE:
        total *= scale
    real = tl.load(mask + b * source + j, mask=j < source, other=0)
    total = tl.where(real != 0, total, float("-inf"))
    tl.store(scores + b * source + j, total, mask=j < source)


@triton.jit
def context_kernel(
    scores, annotations, weights, log_normaliser, context, source, size,
    WHOLE: tl.constexpr, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
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
    total = tl.zeros((ENTRIES,), tl.float32)
    for first in range(0, source, POSITIONS):
        j = first + tl.arange(0, POSITIONS)
        here = (j[:, None] < source) & (a[None, :] < size)
        h = tl.load(
            annotations + (b * source + j[:, None]) * size + a[None, :], mask=here, other=0
        ).to(tl.float32)
        e = tl.load(scores + j, mask=j < source, other=float("-inf"))
        total += tl.sum(tl.exp(e - largest)[:, None] * h, 0)
    tl.store(context + b * size + a, total / sum_e, mask=a < size)


@triton.jit
def weights_backward_kernel(
    grad_context, annotations, grad_weights, source, size,
    POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0)
    j = tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS)
    total = tl.zeros((POSITIONS,), tl.float32)
    for first in range(0, size, ENTRIES):
        a = first + tl.arange(0, ENTRIES)
        here = (j[:, None] < source) & (a[None, :] < size)
        g = tl.load(grad_context + b * size + a, mask=a < size, other=0).to(tl.float32)
        h = tl.load(
            annotations + (b * source + j[:, None]) * size + a[None, :], mask=here, other=0
        ).to(tl.float32)
        total += tl.sum(g[None, :] * h, 1)
    tl.store(grad_weights + b * source + j, total, mask=j < source)


@triton.jit
def query_backward_kernel(
    grad_weights, weights, query, query_b, keys, v, grad_scores, grad_query, grad_query_b,
    source, alignment, scale,
    ADDITIVE: tl.constexpr, WHOLE: tl.constexpr, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
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
    q = tl.load(query + b * query_b + n, mask=n < alignment, other=0).to(tl.float32)
    total = tl.zeros((ENTRIES,), tl.float32)
    for first in range(0, source, POSITIONS):
        j = first + tl.arange(0, POSITIONS)
        alpha_j = tl.load(weights + j, mask=j < source, other=0)
        grad_e = alpha_j * (tl.load(grad_weights + j, mask=j < source, other=0) - mean)
        here = (j[:, None] < source) & (n[None, :] < alignment)
        k = tl.load(
            keys + (b * source + j[:, None]) * alignment + n[None, :], mask=here, other=0
        ).to(tl.float32)
        if ADDITIVE:
            curve = tanh(q[None, :] + k)
            total += tl.sum(grad_e[:, None] * (1 - curve * curve), 0)
        else:
            total += tl.sum(grad_e[:, None] * k, 0)
    if ADDITIVE:
        total *= tl.load(v + n, mask=n < alignment, other=0)
    else:
        total *= scale
    tl.store(grad_query + b * grad_query_b + n, total, mask=n < alignment)


@triton.jit
def additive_gradients_kernel(
    grad_scores, queries, queries_t, queries_b, keys, v, grad_keys, grad_v,
    length, batch, source, alignment, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """∂k_j = Σ_i ∂e_ij (1 - tanh²(q_i + k_j))∘v, and a program's share of ∂v."""
    b, block = tl.program_id(0), tl.program_id(1)
    j = block * POSITIONS + tl.arange(0, POSITIONS)
    n = tl.program_id(2) * ENTRIES + tl.arange(0, ENTRIES)
    here = (j[:, None] < source) & (n[None, :] < alignment)
    place = (b * source + j[:, None]) * alignment + n[None, :]
    k = tl.load(keys + place, mask=here, other=0).to(tl.float32)
    for_keys = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for_v = tl.zeros((ENTRIES,), tl.float32)
    queries += b * queries_b + n
    grad_scores += b * source + j
    for _ in range(0, length):
        q = tl.load(queries, mask=n < alignment, other=0).to(tl.float32)
        grad_e = tl.load(grad_scores, mask=j < source, other=0)
        curve = tanh(q[None, :] + k)
        for_keys += grad_e[:, None] * (1 - curve * curve)
        for_v += tl.sum(grad_e[:, None] * curve, 0)
        queries += queries_t
        grad_scores += batch * source
    for_keys *= tl.load(v + n, mask=n < alignment, other=0)[None, :]
    tl.store(grad_keys + place, for_keys, mask=here)
    share = b * tl.num_programs(1) + block
    tl.store(grad_v + share * alignment + n, for_v, mask=n < alignment)


def attention_steps(scoring: nn.Module, keys: Tensor, annotations: Tensor, mask: Tensor) -> Any:
    """See `nmt.layers.fused.steps.attention_steps`; in kernels for the scores of `nmt.layers.scoring`."""
    scan = scan_of(scoring, keys)
    if isinstance(scan, AdditiveScan | DotScan):
        return AttentionSteps(scan, annotations, mask)
    return steps.attention_steps(scoring, keys, annotations, mask)


class AttentionSteps:
    """See `nmt.layers.fused.steps.AttentionSteps`."""

    def __init__(self, scan: AdditiveScan | DotScan, annotations: Tensor, mask: Tensor) -> None:
        self.additive = isinstance(scan, AdditiveScan)
        self.keys = scan.keys.contiguous()
        self.annotations = annotations.contiguous()
        self.mask = mask.contiguous()
        self.v = scan.v.float() if isinstance(scan, AdditiveScan) else self.keys
        self.scale = scan.scale if isinstance(scan, DotScan) else 1.0
        self.sizes = self.keys.shape
        self.row = self.mask.new_empty(self.sizes[:2], dtype=torch.float32)  # (B, S)
        self.blocks = {"POSITIONS": POSITIONS, "ENTRIES": ENTRIES}
        self.whole = triton.next_power_of_2(self.sizes[1])

    def attend(
        self, query: Tensor, weights: Tensor, log_normaliser: Tensor, context: Tensor
    ) -> None:
        batch, source, alignment = self.sizes
        size = self.annotations.shape[2]
        score_kernel[batch, triton.cdiv(source, POSITIONS)](
            query, query.stride(0), self.keys, self.v, self.mask, self.row, source, alignment,
            self.scale, ADDITIVE=self.additive, **self.blocks,
        )  # fmt: skip
        context_kernel[batch, triton.cdiv(size, ENTRIES)](
            self.row, self.annotations, weights, log_normaliser, context, source, size,
            WHOLE=self.whole, **self.blocks,
        )  # fmt: skip

    def backward(
        self,
        grad_context: Tensor,
        query: Tensor,
        weights: Tensor,
        grad_scores: Tensor,
        grad_query: Tensor,
    ) -> None:
        batch, source, alignment = self.sizes
        weights_backward_kernel[batch, triton.cdiv(source, POSITIONS)](
            grad_context, self.annotations, self.row, source, self.annotations.shape[2],
            **self.blocks,
        )  # fmt: skip
        query_backward_kernel[batch, triton.cdiv(alignment, ENTRIES)](
            self.row, weights, query, query.stride(0), self.keys, self.v, grad_scores, grad_query,
            grad_query.stride(0), source, alignment, self.scale, ADDITIVE=self.additive,
            WHOLE=self.whole, **self.blocks,
        )  # fmt: skip

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        if not self.additive:
            scan = DotScan(self.keys, self.scale)
            return scan.gradients(grad_scores.to(self.keys.dtype), queries)
        batch, source, alignment = self.sizes
        shares = triton.cdiv(source, POSITIONS)
        grad_keys = torch.empty_like(self.keys)
        grad_v = self.v.new_empty(batch * shares, alignment)
        additive_gradients_kernel[batch, shares, triton.cdiv(alignment, ENTRIES)](
            grad_scores, queries, queries.stride(0), queries.stride(1), self.keys, self.v,
            grad_keys, grad_v, len(queries), batch, source, alignment, **self.blocks,
        )  # fmt: skip
        return grad_keys, grad_v.sum(0)
