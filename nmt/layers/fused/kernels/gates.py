"""The gates of a step as Triton kernels, two each way; see `nmt.layers.fused.steps` for what they do.

A program handles one sentence (of one direction) and one block of hidden units.

B batch, H state, D directions.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

UNITS = 256  # hidden units of a program


@triton.jit
def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def tanh(x):
    return 2 / (1 + tl.exp(-2 * x)) - 1


@triton.jit
def open_gates_kernel(
    projected, projected_d, projected_b, product, product_d, product_b, state, state_d, state_b,
    gates, gates_d, gates_b, reset, reset_d, reset_b, real, real_d, real_b,
    hidden, UNITS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    b, d = tl.program_id(0), tl.program_id(2)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < hidden
    projected += d * projected_d + b * projected_b + unit
    product += d * product_d + b * product_b + unit
    gates += d * gates_d + b * gates_b + unit
    z = sigmoid(
        tl.load(projected, mask=here, other=0).to(tl.float32)
        + tl.load(product, mask=here, other=0).to(tl.float32)
    )
    r = sigmoid(
        tl.load(projected + hidden, mask=here, other=0).to(tl.float32)
        + tl.load(product + hidden, mask=here, other=0).to(tl.float32)
    )
    if MASKED:
        z *= tl.load(real + d * real_d + b * real_b)
    s = tl.load(state + d * state_d + b * state_b + unit, mask=here, other=0)
    tl.store(gates, z, mask=here)
    tl.store(gates + hidden, r, mask=here)
    tl.store(reset + d * reset_d + b * reset_b + unit, r * s, mask=here)


@triton.jit
def next_state_kernel(
    projected, projected_d, projected_b, product, product_d, product_b, state, state_d, state_b,
    gates, gates_d, gates_b, candidate, candidate_d, candidate_b, after, after_d, after_b,
    compute_copy, compute_copy_d, compute_copy_b, hidden, UNITS: tl.constexpr, COPIED: tl.constexpr,
):  # fmt: skip
    b, d = tl.program_id(0), tl.program_id(2)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < hidden
    x = tanh(
        tl.load(projected + d * projected_d + b * projected_b + unit, mask=here, other=0).to(
            tl.float32
        )
        + tl.load(product + d * product_d + b * product_b + unit, mask=here, other=0).to(tl.float32)
    )
    z = tl.load(gates + d * gates_d + b * gates_b + unit, mask=here, other=0)
    s = tl.load(state + d * state_d + b * state_b + unit, mask=here, other=0)
    s += z * (x - s)  # exactly s where z is 0
    tl.store(candidate + d * candidate_d + b * candidate_b + unit, x, mask=here)
    tl.store(after + d * after_d + b * after_b + unit, s, mask=here)
    if COPIED:
        tl.store(compute_copy + d * compute_copy_d + b * compute_copy_b + unit, s, mask=here)


@triton.jit
def candidate_backward_kernel(
    grad_state, grad_state_d, grad_state_b, product, product_d, product_b,
    upstream, upstream_d, upstream_b, gates, gates_d, gates_b,
    candidate, candidate_d, candidate_b, state, state_d, state_b, grad, grad_d, grad_b,
    hidden, UNITS: tl.constexpr,
):  # fmt: skip
    b, d = tl.program_id(0), tl.program_id(2)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < hidden
    grad_state += d * grad_state_d + b * grad_state_b + unit
    grad += d * grad_d + b * grad_b + unit
    g = tl.load(grad_state, mask=here, other=0)
    g += tl.load(product + d * product_d + b * product_b + unit, mask=here, other=0).to(tl.float32)
    g += tl.load(upstream + d * upstream_d + b * upstream_b + unit, mask=here, other=0).to(
        tl.float32
    )
    z = tl.load(gates + d * gates_d + b * gates_b + unit, mask=here, other=0)
    x = tl.load(candidate + d * candidate_d + b * candidate_b + unit, mask=here, other=0)
    s = tl.load(state + d * state_d + b * state_b + unit, mask=here, other=0)
    tl.store(grad_state, g, mask=here)
    tl.store(grad, g * (x - s) * z * (1 - z), mask=here)
    tl.store(grad + 2 * hidden, g * z * (1 - x * x), mask=here)


@triton.jit
def reset_backward_kernel(
    grad_state, grad_state_d, grad_state_b, grad_reset, grad_reset_d, grad_reset_b,
    gates, gates_d, gates_b, state, state_d, state_b, grad, grad_d, grad_b,
    hidden, UNITS: tl.constexpr,
):  # fmt: skip
    b, d = tl.program_id(0), tl.program_id(2)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < hidden
    grad_state += d * grad_state_d + b * grad_state_b + unit
    gates += d * gates_d + b * gates_b + unit
    g = tl.load(grad_state, mask=here, other=0)
    from_reset = tl.load(
        grad_reset + d * grad_reset_d + b * grad_reset_b + unit, mask=here, other=0
    ).to(tl.float32)
    z = tl.load(gates, mask=here, other=0)
    r = tl.load(gates + hidden, mask=here, other=0)
    s = tl.load(state + d * state_d + b * state_b + unit, mask=here, other=0)
    grad_r = from_reset * s * r * (1 - r)
    tl.store(grad + d * grad_d + b * grad_b + hidden + unit, grad_r, mask=here)
    tl.store(grad_state, (1 - z) * g + r * from_reset, mask=here)


def rows(*tensors: Tensor) -> list[Any]:
    """Each tensor (D, B, .) or (B, .) followed by its strides over directions and batch."""
    found: list[Any] = []
    for tensor in tensors:
        assert tensor.stride(-1) == 1 or tensor.shape[-1] == 1
        found += [tensor, tensor.stride(0) if tensor.dim() == 3 else 0, tensor.stride(-2)]
    return found


def grid(state: Tensor) -> tuple[int, int, int]:
    """Programs for the gates of states (D, B, H) or (B, H)."""
    directions = state.shape[0] if state.dim() == 3 else 1
    return state.shape[-2], triton.cdiv(state.shape[-1], UNITS), directions


def open_gates(
    projected: Tensor,
    product: Tensor,
    state: Tensor,
    gates: Tensor,
    reset: Tensor,
    real: Tensor | None = None,
) -> None:
    """See `nmt.layers.fused.steps.open_gates`."""
    open_gates_kernel[grid(state)](
        *rows(projected, product, state, gates, reset, state if real is None else real),
        state.shape[-1], UNITS=UNITS, MASKED=real is not None,
    )  # fmt: skip


def next_state(
    projected: Tensor,
    product: Tensor,
    state: Tensor,
    gates: Tensor,
    candidate: Tensor,
    after: Tensor,
    compute_copy: Tensor | None = None,
) -> None:
    """See `nmt.layers.fused.steps.next_state`."""
    next_state_kernel[grid(state)](
        *rows(
            projected, product, state, gates, candidate, after, after if compute_copy is None else compute_copy
        ),
        state.shape[-1], UNITS=UNITS, COPIED=compute_copy is not None,
    )  # fmt: skip


def candidate_backward(
    grad_state: Tensor,
    product: Tensor,
    upstream: Tensor,
    gates: Tensor,
    candidate: Tensor,
    state: Tensor,
    grad: Tensor,
) -> None:
    """See `nmt.layers.fused.steps.candidate_backward`."""
    candidate_backward_kernel[grid(state)](
        *rows(grad_state, product, upstream, gates, candidate, state, grad),
        state.shape[-1], UNITS=UNITS,
    )  # fmt: skip


def reset_backward(
    grad_state: Tensor, grad_reset: Tensor, gates: Tensor, state: Tensor, grad: Tensor
) -> None:
    """See `nmt.layers.fused.steps.reset_backward`."""
    reset_backward_kernel[grid(state)](
        *rows(grad_state, grad_reset, gates, state, grad), state.shape[-1], UNITS=UNITS
    )
