"""Triton kernels of attention: a decoder step runs two in the forward pass and two in the backward pass.

After the loop, additive attention runs one more kernel for the gradients of keys and v.

A step reads the keys and the annotations once per pass. Scores, softmax and sums are float32, whereas
keys and annotations keep their dtype. A program (an instance of a kernel) computes one block of source
positions or of vector entries, for one sentence. There are no atomic additions, so results are deterministic.

Model sizes and strides are compile-time constants, so that the compiler can load 16 bytes at a time.
Batch sizes and lengths are run-time arguments. By default, Triton also compiles a variant of a kernel
for each memory alignment of a pointer. `do_not_specialize_on_alignment` prevents this for pointers whose alignment
depends on a length. `PADDED` is the source length rounded up to a power of two.

Sizes: B = batch, S = source length, T = target length, A = annotation, N = query and key.
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

# Launch settings: source positions per block, entries of a key or annotation per block, and warps per program.
# These settings are the fastest of 18 on an H200, for the paper's model and 80 sentences of 16, 32 and 52 symbols.
SCORE = {"POSITIONS": 4, "ENTRIES": 1024, "num_warps": 4}  # ENTRIES is smaller for short keys
CONTEXT = {"POSITIONS": 16, "ENTRIES": 64, "num_warps": 2}
QUERY_BACKWARD = {"POSITIONS": 16, "ENTRIES": 64, "num_warps": 2}
GRADIENTS = {"POSITIONS": 4, "ENTRIES": 128, "num_warps": 2}
MIN_PADDED = 64  # smallest value of `PADDED`


@triton.jit
def load_rows(tensor, b, j, column, source, SIZE: tl.constexpr):
    """Loads the given columns of sentence b at source positions j from a tensor (B, source, SIZE); 0 outside it."""
    inside = (j[:, None] < source) & (column[None, :] < SIZE)
    pointers = tensor + (b * source + j[:, None]) * SIZE + column[None, :]
    return tl.load(pointers, mask=inside, other=0).to(tl.float32)


@triton.jit(do_not_specialize=["source"], do_not_specialize_on_alignment=["mask", "scores"])
def score_kernel(
    query, keys, v, mask, scores, source, scale, QUERY_STRIDE: tl.constexpr,
    ALIGNMENT: tl.constexpr, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Computes additive scores if `v` is given, and dot products otherwise.

    In the backward pass, `query` is the gradient of c_i, and `keys` are the annotations h_j. Their dot
    products are the gradients of the weights α_ij.
    """
    b = tl.program_id(0)
    j = tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS)
    sums = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for first in range(0, ALIGNMENT, ENTRIES):
        n = first + tl.arange(0, ENTRIES)
        q = tl.load(query + b * QUERY_STRIDE + n, mask=n < ALIGNMENT, other=0).to(tl.float32)
        k = load_rows(keys, b, j, n, source, ALIGNMENT)
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
    SIZE: tl.constexpr, PADDED: tl.constexpr, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    b, block = tl.program_id(0), tl.program_id(1)
    all_j = tl.arange(0, PADDED)
    scores += b * source
    e = tl.load(scores + all_j, mask=all_j < source, other=float("-inf"))
    largest = tl.max(e, 0)
    e = tl.exp(e - largest)
    sum_e = tl.sum(e, 0)
    if block == 0:
        tl.store(weights + b * source + all_j, e / sum_e, mask=all_j < source)
        tl.store(log_normaliser + b, largest + tl.log(sum_e))
    a = block * ENTRIES + tl.arange(0, ENTRIES)
    sums = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for first in range(0, source, POSITIONS):
        j = first + tl.arange(0, POSITIONS)
        e_j = tl.load(scores + j, mask=j < source, other=float("-inf"))
        sums += tl.exp(e_j - largest)[:, None] * load_rows(annotations, b, j, a, source, SIZE)
    tl.store(context + b * SIZE + a, tl.sum(sums, 0) / sum_e, mask=a < SIZE)


@triton.jit(
    do_not_specialize=["source"],
    do_not_specialize_on_alignment=["grad_weights", "weights", "grad_scores"],
)
def query_backward_kernel(
    grad_weights, weights, query, keys, v, grad_scores, grad_query, source, scale,
    QUERY_STRIDE: tl.constexpr, GRAD_QUERY_STRIDE: tl.constexpr, ALIGNMENT: tl.constexpr,
    PADDED: tl.constexpr, POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    b, block = tl.program_id(0), tl.program_id(1)
    grad_weights += b * source
    weights += b * source
    all_j = tl.arange(0, PADDED)
    alpha = tl.load(weights + all_j, mask=all_j < source, other=0)
    g = tl.load(grad_weights + all_j, mask=all_j < source, other=0)
    mean = tl.sum(alpha * g, 0)
    if block == 0:
        tl.store(grad_scores + b * source + all_j, alpha * (g - mean), mask=all_j < source)
    n = block * ENTRIES + tl.arange(0, ENTRIES)
    q = tl.load(query + b * QUERY_STRIDE + n, mask=n < ALIGNMENT, other=0).to(tl.float32)
    sums = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for first in range(0, source, POSITIONS):
        j = first + tl.arange(0, POSITIONS)
        alpha_j = tl.load(weights + j, mask=j < source, other=0)
        grad_e = alpha_j * (tl.load(grad_weights + j, mask=j < source, other=0) - mean)
        k = load_rows(keys, b, j, n, source, ALIGNMENT)
        if v is not None:
            activation = tanh(q[None, :] + k)
            sums += grad_e[:, None] * (1 - activation * activation)
        else:
            sums += grad_e[:, None] * k
    total = tl.sum(sums, 0) * scale
    if v is not None:
        total *= tl.load(v + n, mask=n < ALIGNMENT, other=0)
    tl.store(grad_query + b * GRAD_QUERY_STRIDE + n, total, mask=n < ALIGNMENT)


@triton.jit(
    do_not_specialize=["length", "batch", "source"], do_not_specialize_on_alignment=["grad_scores"]
)
def additive_gradients_kernel(
    grad_scores, queries, keys, v, grad_keys, grad_v, length, batch, source,
    QUERY_STRIDE: tl.constexpr, ALIGNMENT: tl.constexpr,
    POSITIONS: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    """Computes ∂k_j = Σ_i ∂e_ij (1 - tanh²(q_i + k_j))∘v for a block of keys, and their contribution to ∂v."""
    b, block = tl.program_id(0), tl.program_id(1)
    j = block * POSITIONS + tl.arange(0, POSITIONS)
    n = tl.program_id(2) * ENTRIES + tl.arange(0, ENTRIES)
    k = load_rows(keys, b, j, n, source, ALIGNMENT)
    keys_sum = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    v_sum = tl.zeros((POSITIONS, ENTRIES), tl.float32)
    for i in range(0, length):
        row = i * batch + b
        q = tl.load(queries + row * QUERY_STRIDE + n, mask=n < ALIGNMENT, other=0).to(tl.float32)
        grad_e = tl.load(grad_scores + row * source + j, mask=j < source, other=0)[:, None]
        activation = tanh(q[None, :] + k)
        keys_sum += grad_e * (1 - activation * activation)
        v_sum += grad_e * activation
    keys_sum *= tl.load(v + n, mask=n < ALIGNMENT, other=0)[None, :]
    inside = (j[:, None] < source) & (n[None, :] < ALIGNMENT)
    pointers = grad_keys + (b * source + j[:, None]) * ALIGNMENT + n[None, :]
    tl.store(pointers, keys_sum, mask=inside)
    summand = b * tl.num_programs(1) + block
    tl.store(grad_v + summand * ALIGNMENT + n, tl.sum(v_sum, 0), mask=n < ALIGNMENT)


class AttentionSteps:
    """See `nmt.fused.attention.DotSteps` and `AdditiveSteps`."""

    def __init__(self, scoring: Any, annotations: Tensor, keys: Tensor, mask: Tensor) -> None:
        self.keys = keys.contiguous()
        self.annotations = annotations.contiguous()
        self.mask = mask.contiguous()
        self.v = scoring.v.float() if isinstance(scoring, Additive) else None
        self.scale = 1.0 if self.v is not None else scoring.scale
        self.scratch = mask.new_empty(mask.shape, dtype=torch.float32)  # (B, S)
        self.padded = max(MIN_PADDED, triton.next_power_of_2(mask.shape[1]))

    def score(self, query: Tensor, keys: Tensor, v: Any, mask: Any, scale: float) -> None:
        """Writes the scores of a query (B, N) and keys (B, S, N) to `scratch`, with -inf where `mask` is False."""
        batch, source, alignment = keys.shape
        entries = min(SCORE["ENTRIES"], triton.next_power_of_2(alignment))
        score_kernel[batch, triton.cdiv(source, SCORE["POSITIONS"])](
            query, keys, v, mask, self.scratch, source, scale, QUERY_STRIDE=query.stride(0),
            ALIGNMENT=alignment, **{**SCORE, "ENTRIES": entries},
        )  # fmt: skip

    def attend(self, query, weights, log_normaliser, context):
        self.score(query, self.keys, self.v, self.mask, self.scale)
        batch, source, size = self.annotations.shape
        context_kernel[batch, triton.cdiv(size, CONTEXT["ENTRIES"])](
            self.scratch, self.annotations, weights, log_normaliser, context, source,
            SIZE=size, PADDED=self.padded, **CONTEXT,
        )  # fmt: skip

    def backward(self, grad_context, query, weights, grad_scores, grad_query):
        self.score(grad_context, self.annotations, None, None, 1.0)
        batch, source, alignment = self.keys.shape
        query_backward_kernel[batch, triton.cdiv(alignment, QUERY_BACKWARD["ENTRIES"])](
            self.scratch, weights, query, self.keys, self.v, grad_scores, grad_query, source,
            self.scale, QUERY_STRIDE=query.stride(0), GRAD_QUERY_STRIDE=grad_query.stride(0),
            ALIGNMENT=alignment, PADDED=self.padded, **QUERY_BACKWARD,
        )  # fmt: skip

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        if self.v is None:
            dtype = self.keys.dtype
            return (dot_gradient(grad_scores.to(dtype), queries.to(dtype), self.scale),)
        batch, source, alignment = self.keys.shape
        assert queries.stride(0) == batch * queries.stride(1)
        blocks = triton.cdiv(source, GRADIENTS["POSITIONS"])
        grad_keys = torch.empty_like(self.keys)
        grad_v = self.v.new_empty(batch * blocks, alignment)
        entries = triton.cdiv(alignment, GRADIENTS["ENTRIES"])
        additive_gradients_kernel[batch, blocks, entries](
            grad_scores, queries, self.keys, self.v, grad_keys, grad_v, len(queries), batch, source,
            QUERY_STRIDE=queries.stride(1), ALIGNMENT=alignment, **GRADIENTS,
        )  # fmt: skip
        return grad_keys, grad_v.sum(0)
