"""The gates of a step as Triton kernels, two each way; see `nmt.layers.fused.steps` for what they do.

A program handles one sentence (of one direction) and one block of hidden units. Each tensor comes
with the number of rows from one direction to the next, and with the entries of a row, which is a
compile-time constant (see `nmt.layers.fused.kernels.attention`).

B batch, H state, D directions.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

UNITS = 256  # hidden units of a program
BETWEEN = [  # rows between directions, which depend on the batch
    f"{name}_d"
    for name in (
        "projected", "product", "extra", "state", "gates", "reset", "real", "candidate", "after",
        "compute_copy", "grad_state", "upstream", "grad", "grad_reset",
    )
]  # fmt: skip


@triton.jit
def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def tanh(x):
    return 2 / (1 + tl.exp(-2 * x)) - 1


@triton.jit(do_not_specialize=BETWEEN, do_not_specialize_on_alignment=["real"])
def open_gates_kernel(
    projected, projected_d, projected_b: tl.constexpr, product, product_d, product_b: tl.constexpr,
    extra, extra_d, extra_b: tl.constexpr, state, state_d, state_b: tl.constexpr,
    gates, gates_d, gates_b: tl.constexpr, reset, reset_d, reset_b: tl.constexpr,
    real, real_d, real_b: tl.constexpr,
    HIDDEN: tl.constexpr, UNITS: tl.constexpr, EXTRA: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    b, d = tl.program_id(0), tl.program_id(2)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < HIDDEN
    projected += (d * projected_d + b) * projected_b + unit
    product += (d * product_d + b) * product_b + unit
    gates += (d * gates_d + b) * gates_b + unit
    z = tl.load(projected, mask=here, other=0).to(tl.float32)
    z += tl.load(product, mask=here, other=0).to(tl.float32)
    r = tl.load(projected + HIDDEN, mask=here, other=0).to(tl.float32)
    r += tl.load(product + HIDDEN, mask=here, other=0).to(tl.float32)
    if EXTRA:
        extra += (d * extra_d + b) * extra_b + unit
        z += tl.load(extra, mask=here, other=0).to(tl.float32)
        r += tl.load(extra + HIDDEN, mask=here, other=0).to(tl.float32)
    z = sigmoid(z)
    r = sigmoid(r)
    if MASKED:
        z *= tl.load(real + (d * real_d + b) * real_b)
    s = tl.load(state + (d * state_d + b) * state_b + unit, mask=here, other=0)
    tl.store(gates, z, mask=here)
    tl.store(gates + HIDDEN, r, mask=here)
    tl.store(reset + (d * reset_d + b) * reset_b + unit, r * s, mask=here)


@triton.jit(do_not_specialize=BETWEEN)
def next_state_kernel(
    projected, projected_d, projected_b: tl.constexpr, product, product_d, product_b: tl.constexpr,
    extra, extra_d, extra_b: tl.constexpr, state, state_d, state_b: tl.constexpr,
    gates, gates_d, gates_b: tl.constexpr, candidate, candidate_d, candidate_b: tl.constexpr,
    after, after_d, after_b: tl.constexpr, compute_copy, compute_copy_d, compute_copy_b: tl.constexpr,
    HIDDEN: tl.constexpr, UNITS: tl.constexpr, EXTRA: tl.constexpr, COPIED: tl.constexpr,
):  # fmt: skip
    b, d = tl.program_id(0), tl.program_id(2)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < HIDDEN
    projected += (d * projected_d + b) * projected_b + unit
    product += (d * product_d + b) * product_b + unit
    x = tl.load(projected, mask=here, other=0).to(tl.float32)
    x += tl.load(product, mask=here, other=0).to(tl.float32)
    if EXTRA:
        extra += (d * extra_d + b) * extra_b + unit
        x += tl.load(extra, mask=here, other=0).to(tl.float32)
    x = tanh(x)
    z = tl.load(gates + (d * gates_d + b) * gates_b + unit, mask=here, other=0)
    s = tl.load(state + (d * state_d + b) * state_b + unit, mask=here, other=0)
    s += z * (x - s)  # exactly s where z is 0
    tl.store(candidate + (d * candidate_d + b) * candidate_b + unit, x, mask=here)
    tl.store(after + (d * after_d + b) * after_b + unit, s, mask=here)
    if COPIED:
        tl.store(compute_copy + (d * compute_copy_d + b) * compute_copy_b + unit, s, mask=here)


@triton.jit(do_not_specialize=BETWEEN)
def candidate_backward_kernel(
    grad_state, grad_state_d, grad_state_b: tl.constexpr,
    product, product_d, product_b: tl.constexpr, upstream, upstream_d, upstream_b: tl.constexpr,
    gates, gates_d, gates_b: tl.constexpr, candidate, candidate_d, candidate_b: tl.constexpr,
    state, state_d, state_b: tl.constexpr, grad, grad_d, grad_b: tl.constexpr,
    HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    b, d = tl.program_id(0), tl.program_id(2)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < HIDDEN
    grad_state += (d * grad_state_d + b) * grad_state_b + unit
    product += (d * product_d + b) * product_b + unit
    upstream += (d * upstream_d + b) * upstream_b + unit
    grad += (d * grad_d + b) * grad_b + unit
    g = tl.load(grad_state, mask=here, other=0)
    g += tl.load(product, mask=here, other=0).to(tl.float32)
    g += tl.load(upstream, mask=here, other=0).to(tl.float32)
    z = tl.load(gates + (d * gates_d + b) * gates_b + unit, mask=here, other=0)
    x = tl.load(candidate + (d * candidate_d + b) * candidate_b + unit, mask=here, other=0)
    s = tl.load(state + (d * state_d + b) * state_b + unit, mask=here, other=0)
    tl.store(grad_state, g, mask=here)
    tl.store(grad, g * (x - s) * z * (1 - z), mask=here)
    tl.store(grad + 2 * HIDDEN, g * z * (1 - x * x), mask=here)


@triton.jit(do_not_specialize=BETWEEN)
def reset_backward_kernel(
    grad_state, grad_state_d, grad_state_b: tl.constexpr,
    grad_reset, grad_reset_d, grad_reset_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    state, state_d, state_b: tl.constexpr, grad, grad_d, grad_b: tl.constexpr,
    HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    b, d = tl.program_id(0), tl.program_id(2)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < HIDDEN
    grad_state += (d * grad_state_d + b) * grad_state_b + unit
    grad_reset += (d * grad_reset_d + b) * grad_reset_b + unit
    gates += (d * gates_d + b) * gates_b + unit
    g = tl.load(grad_state, mask=here, other=0)
    from_reset = tl.load(grad_reset, mask=here, other=0).to(tl.float32)
    z = tl.load(gates, mask=here, other=0)
    r = tl.load(gates + HIDDEN, mask=here, other=0)
    s = tl.load(state + (d * state_d + b) * state_b + unit, mask=here, other=0)
    grad_r = from_reset * s * r * (1 - r)
    tl.store(grad + (d * grad_d + b) * grad_b + HIDDEN + unit, grad_r, mask=here)
    tl.store(grad_state, (1 - z) * g + r * from_reset, mask=here)


def rows(*tensors: Tensor) -> list[Any]:
    """Each tensor (D, B, .) or (B, .), the rows between its directions, and the entries of a row."""
    found: list[Any] = []
    for tensor in tensors:
        assert tensor.stride(-1) == 1 or tensor.shape[-1] == 1
        row = tensor.stride(-2)
        between, rest = divmod(tensor.stride(0), row) if tensor.dim() == 3 else (0, 0)
        assert rest == 0
        found += [tensor, between, row]
    return found


def grid(state: Tensor) -> tuple[int, int, int]:
    """Programs for the gates of states (D, B, H) or (B, H)."""
    directions = state.shape[0] if state.dim() == 3 else 1
    return state.shape[-2], triton.cdiv(state.shape[-1], UNITS), directions


def context_terms(projected: Tensor, context: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    """See `nmt.layers.fused.steps.context_terms`; the kernels of the gates add the two."""
    return projected, torch.mm(context, C.t())


def open_gates(
    projected: Tensor,
    product: Tensor,
    state: Tensor,
    gates: Tensor,
    reset: Tensor,
    real: Tensor | None = None,
    extra: Tensor | None = None,
) -> None:
    """See `nmt.layers.fused.steps.open_gates`."""
    open_gates_kernel[grid(state)](
        *rows(
            projected, product, product if extra is None else extra, state, gates, reset,
            state if real is None else real,
        ),
        HIDDEN=state.shape[-1], UNITS=UNITS, EXTRA=extra is not None, MASKED=real is not None,
    )  # fmt: skip


def next_state(
    projected: Tensor,
    product: Tensor,
    state: Tensor,
    gates: Tensor,
    candidate: Tensor,
    after: Tensor,
    compute_copy: Tensor | None = None,
    extra: Tensor | None = None,
) -> None:
    """See `nmt.layers.fused.steps.next_state`."""
    next_state_kernel[grid(state)](
        *rows(
            projected, product, product if extra is None else extra, state, gates, candidate, after,
            after if compute_copy is None else compute_copy,
        ),
        HIDDEN=state.shape[-1], UNITS=UNITS, EXTRA=extra is not None,
        COPIED=compute_copy is not None,
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
        HIDDEN=state.shape[-1], UNITS=UNITS,
    )  # fmt: skip


def reset_backward(
    grad_state: Tensor, grad_reset: Tensor, gates: Tensor, state: Tensor, grad: Tensor
) -> None:
    """See `nmt.layers.fused.steps.reset_backward`."""
    reset_backward_kernel[grid(state)](
        *rows(grad_state, grad_reset, gates, state, grad), HIDDEN=state.shape[-1], UNITS=UNITS
    )
