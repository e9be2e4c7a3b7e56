"""Attention as Triton kernels, two each way a step, and one for the gradient of the keys.

Keys and annotations are read once a step, in the type that they have; scores, softmax and sums are
in float32. A program handles one sentence and one block of positions or entries. Sums over programs
are never made by atomic additions, so that results do not depend on their order.

Sizes of the model and distances between rows are compile-time constants: only then does the compiler
know that neighbouring entries may be loaded 16 bytes at a time. Sizes of a batch are none, and what
is addressed by them is not specialised on its alignment, or every new length would compile anew.

B batch, K queries a sentence, S source length, T target length, A annotation, N alignment.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from nmt.fused import steps
from nmt.fused.gpu.kernels.gates import tanh
from nmt.fused.scans import AdditiveScan, DotScan, scan_of

POSITIONS = 8  # source positions that a program takes at once
ENTRIES = 256  # entries of the alignment space or of annotations that it takes at once
WHOLE = 64  # the least number of positions that a softmax is compiled for


@triton.jit(
    do_not_specialize=["queries", "source"], do_not_specialize_on_alignment=["mask", "scores"]
)
def score_kernel(
    query, keys, v, mask, scores, queries, source, scale,
    QUERY_ROW: tl.constexpr, ALIGNMENT: tl.constexpr, ADDITIVE: tl.constexpr, MASKED: tl.constexpr,
    POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """All queries of a sentence against one block of its keys, which stays near for the next one."""
    b = tl.program_id(0)
    j = tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS)
    keys += (b * source + j[:, None]) * ALIGNMENT
    for i in range(0, queries):
        row = b * queries + i
        sums = tl.zeros((POSITIONS, ENTRIES), tl.float32)
        for first in range(0, ALIGNMENT, ENTRIES):
            n = first + tl.arange(0, ENTRIES)
            here = (j[:, None] < source) & (n[None, :] < ALIGNMENT)
            q = tl.load(query + row * QUERY_ROW + n, mask=n < ALIGNMENT, other=0).to(tl.float32)
            k = tl.load(keys + n[None, :], mask=here, other=0).to(tl.float32)
            if ADDITIVE:
                factor = tl.load(v + n, mask=n < ALIGNMENT, other=0)
                sums += tanh(q[None, :] + k) * factor[None, :]
            else:
                sums += q[None, :] * k
        e = tl.sum(sums, 1)
        if not ADDITIVE:
            e *= scale
        if MASKED:
            real = tl.load(mask + b * source + j, mask=j < source, other=0)
            e = tl.where(real != 0, e, float("-inf"))
        tl.store(scores + row * source + j, e, mask=j < source)


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
        here = (j[:, None] < source) & (a[None, :] < SIZE)
        h = tl.load(
            annotations + (b * source + j[:, None]) * SIZE + a[None, :], mask=here, other=0
        ).to(tl.float32)
        e_j = tl.load(scores + j, mask=j < source, other=float("-inf"))
        sums += tl.exp(e_j - largest)[:, None] * h
    tl.store(context + b * SIZE + a, tl.sum(sums, 0) / sum_e, mask=a < SIZE)


@triton.jit(do_not_specialize=["source"], do_not_specialize_on_alignment=["grad_weights"])
def weights_backward_kernel(
    grad_context, annotations, grad_weights, source,
    SIZE: tl.constexpr, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0)
    j = tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS)
    sums = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for first in range(0, SIZE, ENTRIES):
        a = first + tl.arange(0, ENTRIES)
        here = (j[:, None] < source) & (a[None, :] < SIZE)
        g = tl.load(grad_context + b * SIZE + a, mask=a < SIZE, other=0).to(tl.float32)
        h = tl.load(
            annotations + (b * source + j[:, None]) * SIZE + a[None, :], mask=here, other=0
        ).to(tl.float32)
        sums += g[None, :] * h
    tl.store(grad_weights + b * source + j, tl.sum(sums, 1), mask=j < source)


@triton.jit(
    do_not_specialize=["source"],
    do_not_specialize_on_alignment=["grad_weights", "weights", "grad_scores"],
)
def query_backward_kernel(
    grad_weights, weights, query, keys, v, grad_scores, grad_query, source, scale,
    QUERY_ROW: tl.constexpr, GRAD_QUERY_ROW: tl.constexpr, ALIGNMENT: tl.constexpr,
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
    q = tl.load(query + b * QUERY_ROW + n, mask=n < ALIGNMENT, other=0).to(tl.float32)
    sums = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for first in range(0, source, POSITIONS):
        j = first + tl.arange(0, POSITIONS)
        alpha_j = tl.load(weights + j, mask=j < source, other=0)
        grad_e = alpha_j * (tl.load(grad_weights + j, mask=j < source, other=0) - mean)
        here = (j[:, None] < source) & (n[None, :] < ALIGNMENT)
        k = tl.load(
            keys + (b * source + j[:, None]) * ALIGNMENT + n[None, :], mask=here, other=0
        ).to(tl.float32)
        if ADDITIVE:
            curve = tanh(q[None, :] + k)
            sums += grad_e[:, None] * (1 - curve * curve)
        else:
            sums += grad_e[:, None] * k
    total = tl.sum(sums, 0)
    if ADDITIVE:
        total *= tl.load(v + n, mask=n < ALIGNMENT, other=0)
    else:
        total *= scale
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
    here = (j[:, None] < source) & (n[None, :] < ALIGNMENT)
    place = (b * source + j[:, None]) * ALIGNMENT + n[None, :]
    k = tl.load(keys + place, mask=here, other=0).to(tl.float32)
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
    tl.store(grad_keys + place, for_keys, mask=here)
    share = b * tl.num_programs(1) + block
    tl.store(grad_v + share * ALIGNMENT + n, tl.sum(for_v, 0), mask=n < ALIGNMENT)


def additive_scores(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """See `nmt.fused.steps.additive_scores`; nothing of size B x K x S x N is made."""
    batch, source, alignment = keys.shape
    query, keys = query.contiguous(), keys.contiguous()
    scores = query.new_empty(batch, query.shape[1], source, dtype=torch.float32)
    score_kernel[batch, triton.cdiv(source, POSITIONS)](
        query, keys, v.float(), scores, scores, query.shape[1], source, 1.0, QUERY_ROW=alignment,
        ALIGNMENT=alignment, ADDITIVE=True, MASKED=False, POSITIONS=POSITIONS, ENTRIES=ENTRIES,
    )  # fmt: skip
    return scores


def attention_steps(scoring: nn.Module, keys: Tensor, annotations: Tensor, mask: Tensor) -> Any:
    """See `nmt.fused.steps.attention_steps`; in kernels for the scores of `nmt.layers.scoring`."""
    scan = scan_of(scoring, keys)
    if isinstance(scan, AdditiveScan | DotScan):
        return AttentionSteps(scan, annotations, mask)
    return steps.attention_steps(scoring, keys, annotations, mask)


class AttentionSteps:
    """See `nmt.fused.steps.AttentionSteps`."""

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
        self.whole = max(WHOLE, triton.next_power_of_2(self.sizes[1]))

    def attend(
        self, query: Tensor, weights: Tensor, log_normaliser: Tensor, context: Tensor
    ) -> None:
        batch, source, alignment = self.sizes
        size = self.annotations.shape[2]
        score_kernel[batch, triton.cdiv(source, POSITIONS)](
            query, self.keys, self.v, self.mask, self.row, 1, source, self.scale,
            QUERY_ROW=query.stride(0), ALIGNMENT=alignment, ADDITIVE=self.additive, MASKED=True,
            **self.blocks,
        )  # fmt: skip
        context_kernel[batch, triton.cdiv(size, ENTRIES)](
            self.row, self.annotations, weights, log_normaliser, context, source,
            SIZE=size, WHOLE=self.whole, **self.blocks,
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
            grad_context, self.annotations, self.row, source, SIZE=self.annotations.shape[2],
            **self.blocks,
        )  # fmt: skip
        query_backward_kernel[batch, triton.cdiv(alignment, ENTRIES)](
            self.row, weights, query, self.keys, self.v, grad_scores, grad_query, source,
            self.scale, QUERY_ROW=query.stride(0), GRAD_QUERY_ROW=grad_query.stride(0),
            ALIGNMENT=alignment, ADDITIVE=self.additive, WHOLE=self.whole, **self.blocks,
        )  # fmt: skip

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        if not self.additive:
            scan, dtype = DotScan(self.keys, self.scale), self.keys.dtype
            return scan.gradients(grad_scores.to(dtype), queries.to(dtype))
        batch, source, alignment = self.sizes
        assert queries.stride(0) == batch * queries.stride(1)
        shares = triton.cdiv(source, POSITIONS)
        grad_keys = torch.empty_like(self.keys)
        grad_v = self.v.new_empty(batch * shares, alignment)
        additive_gradients_kernel[batch, shares, triton.cdiv(alignment, ENTRIES)](
            grad_scores, queries, self.keys, self.v, grad_keys, grad_v, len(queries), batch, source,
            QUERY_ROW=queries.stride(1), ALIGNMENT=alignment, **self.blocks,
        )  # fmt: skip
        return grad_keys, grad_v.sum(0)
