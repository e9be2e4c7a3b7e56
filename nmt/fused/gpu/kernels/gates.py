"""Triton kernels of the gates: two for the forward pass and two for the backward pass.

`nmt.fused.steps` documents what each kernel computes. A program (an instance of a kernel) computes up to
`UNITS` hidden units of one sentence in one direction. Each tensor `x`, (D, B, .) or (B, .), has two stride
arguments. `x_b` is the number of entries from one row (a sentence) to the next. `x_d` is the number of rows
from one direction to the next. `x_b` is a compile-time constant, for the reason given in
`nmt.fused.gpu.kernels.attention`.

Sizes: B = batch, H = state, D = directions.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from functools import partial
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

UNITS = 256  # hidden units per program
TENSORS = (
    "state projected recurrent gates reset_state real candidate new_state copy grad_state upstream "
    "grad from_next grad_reset_state"
)
# These strides depend on the batch size, so the kernels are not specialized on their values.
STRIDES_D = [f"{name}_d" for name in TENSORS.split()]


@triton.jit
def tanh(x):  # `triton.language` has no tanh, and Triton's interpreter has no libdevice
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def at(tensor, stride_d, stride_b: tl.constexpr, batch, column):
    """Returns pointers to the given columns of the row that this program computes."""
    n = tl.program_id(0)
    return tensor + (n // batch * stride_d + n % batch) * stride_b + column


@triton.jit
def load(tensor, stride_d, stride_b: tl.constexpr, batch, column, inside):
    pointers = at(tensor, stride_d, stride_b, batch, column)
    return tl.load(pointers, mask=inside, other=0).to(tl.float32)


@triton.jit(do_not_specialize=[*STRIDES_D, "batch"], do_not_specialize_on_alignment=["real"])
def compute_gates_kernel(
    state, state_d, state_b: tl.constexpr, projected, projected_d, projected_b: tl.constexpr,
    recurrent, recurrent_d, recurrent_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    reset_state, reset_state_d, reset_state_b: tl.constexpr, real, real_d, real_b: tl.constexpr,
    batch, HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    inside = unit < HIDDEN
    z = load(projected, projected_d, projected_b, batch, unit, inside)
    z = tl.sigmoid(z + load(recurrent, recurrent_d, recurrent_b, batch, unit, inside))
    r = load(projected, projected_d, projected_b, batch, HIDDEN + unit, inside)
    r = tl.sigmoid(r + load(recurrent, recurrent_d, recurrent_b, batch, HIDDEN + unit, inside))
    if real is not None:
        z *= tl.load(at(real, real_d, real_b, batch, 0))
    s = load(state, state_d, state_b, batch, unit, inside)
    tl.store(at(gates, gates_d, gates_b, batch, unit), z, mask=inside)
    tl.store(at(gates, gates_d, gates_b, batch, HIDDEN + unit), r, mask=inside)
    tl.store(at(reset_state, reset_state_d, reset_state_b, batch, unit), r * s, mask=inside)


@triton.jit(do_not_specialize=[*STRIDES_D, "batch"])
def next_state_kernel(
    state, state_d, state_b: tl.constexpr, projected, projected_d, projected_b: tl.constexpr,
    recurrent, recurrent_d, recurrent_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    candidate, candidate_d, candidate_b: tl.constexpr,
    new_state, new_state_d, new_state_b: tl.constexpr, copy, copy_d, copy_b: tl.constexpr,
    batch, HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    inside = unit < HIDDEN
    x = load(projected, projected_d, projected_b, batch, unit, inside)
    x = tanh(x + load(recurrent, recurrent_d, recurrent_b, batch, unit, inside))
    z = load(gates, gates_d, gates_b, batch, unit, inside)
    s = load(state, state_d, state_b, batch, unit, inside)
    s += z * (x - s)
    tl.store(at(candidate, candidate_d, candidate_b, batch, unit), x, mask=inside)
    tl.store(at(new_state, new_state_d, new_state_b, batch, unit), s, mask=inside)
    if copy is not None:
        tl.store(at(copy, copy_d, copy_b, batch, unit), s, mask=inside)


@triton.jit(do_not_specialize=[*STRIDES_D, "batch"])
def candidate_backward_kernel(
    grad_state, grad_state_d, grad_state_b: tl.constexpr,
    from_next, from_next_d, from_next_b: tl.constexpr,
    upstream, upstream_d, upstream_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    candidate, candidate_d, candidate_b: tl.constexpr, state, state_d, state_b: tl.constexpr,
    grad, grad_d, grad_b: tl.constexpr, batch, HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    inside = unit < HIDDEN
    g = load(grad_state, grad_state_d, grad_state_b, batch, unit, inside)
    g += load(from_next, from_next_d, from_next_b, batch, unit, inside)
    g += load(upstream, upstream_d, upstream_b, batch, unit, inside)
    z = load(gates, gates_d, gates_b, batch, unit, inside)
    x = load(candidate, candidate_d, candidate_b, batch, unit, inside)
    s = load(state, state_d, state_b, batch, unit, inside)
    tl.store(at(grad_state, grad_state_d, grad_state_b, batch, unit), g, mask=inside)
    z_pointer = at(grad, grad_d, grad_b, batch, unit)
    tl.store(z_pointer, g * (x - s) * z * (1 - z), mask=inside)
    tl.store(z_pointer + 2 * HIDDEN, g * z * (1 - x * x), mask=inside)


@triton.jit(do_not_specialize=[*STRIDES_D, "batch"])
def reset_backward_kernel(
    grad_state, grad_state_d, grad_state_b: tl.constexpr,
    grad_reset_state, grad_reset_state_d, grad_reset_state_b: tl.constexpr,
    gates, gates_d, gates_b: tl.constexpr, state, state_d, state_b: tl.constexpr,
    grad, grad_d, grad_b: tl.constexpr, batch, HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    inside = unit < HIDDEN
    g = load(grad_state, grad_state_d, grad_state_b, batch, unit, inside)
    g_reset = load(grad_reset_state, grad_reset_state_d, grad_reset_state_b, batch, unit, inside)
    z = load(gates, gates_d, gates_b, batch, unit, inside)
    r = load(gates, gates_d, gates_b, batch, HIDDEN + unit, inside)
    s = load(state, state_d, state_b, batch, unit, inside)
    tl.store(at(grad, grad_d, grad_b, batch, HIDDEN + unit), g_reset * s * r * (1 - r), mask=inside)
    g = (1 - z) * g + r * g_reset
    tl.store(at(grad_state, grad_state_d, grad_state_b, batch, unit), g, mask=inside)


def launch(kernel: Any, *tensors: Tensor | None) -> None:
    """Launches a kernel on tensors. The first tensor, (D, B, H) or (B, H), determines the grid."""
    arguments: list[Any] = []
    for tensor in tensors:
        if tensor is None:
            arguments += [None, 0, 0]
            continue
        stride_b = tensor.stride(-2)
        stride_d, rest = divmod(tensor.stride(0), stride_b) if tensor.dim() == 3 else (0, 0)
        assert rest == 0, "directions must be a whole number of rows apart"
        arguments += [tensor, stride_d, stride_b]
    assert tensors[0] is not None
    batch, hidden = tensors[0].shape[-2:]
    grid = tensors[0].numel() // hidden, triton.cdiv(hidden, UNITS)
    kernel[grid](*arguments, batch, HIDDEN=hidden, UNITS=UNITS)


compute_gates = partial(launch, compute_gates_kernel)
next_state = partial(launch, next_state_kernel)
candidate_backward = partial(launch, candidate_backward_kernel)
reset_backward = partial(launch, reset_backward_kernel)
