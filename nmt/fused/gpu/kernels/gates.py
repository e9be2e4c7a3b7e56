"""The gates of a step as Triton kernels, two each way; see `nmt.fused.steps` for what they compute.

A program computes some units of one sentence in one direction. Each tensor (D, B, .) or (B, .) comes
with the number of rows between its directions and with the entries of a row. The latter are
compile-time constants (see `nmt.fused.gpu.kernels.attention`).

B batch, H state, D directions.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from functools import partial
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

UNITS = 256  # hidden units of a program
TENSORS = (
    "state projected added gates reset real candidate after copy grad_state upstream grad term "
    "grad_reset"
)
BETWEEN = [f"{name}_d" for name in TENSORS.split()]  # rows, which depend on the batch


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def at(tensor, between, row: tl.constexpr, batch, column):
    """Pointers to some columns of the row of this program."""
    n = tl.program_id(0)
    return tensor + (n // batch * between + n % batch) * row + column


@triton.jit
def load(tensor, between, row: tl.constexpr, batch, column, here):
    return tl.load(at(tensor, between, row, batch, column), mask=here, other=0).to(tl.float32)


@triton.jit(do_not_specialize=[*BETWEEN, "batch"], do_not_specialize_on_alignment=["real"])
def open_gates_kernel(
    state, state_d, state_b: tl.constexpr, projected, projected_d, projected_b: tl.constexpr,
    added, added_d, added_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    reset, reset_d, reset_b: tl.constexpr, real, real_d, real_b: tl.constexpr,
    batch, HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < HIDDEN
    z = load(projected, projected_d, projected_b, batch, unit, here)
    z = tl.sigmoid(z + load(added, added_d, added_b, batch, unit, here))
    r = load(projected, projected_d, projected_b, batch, HIDDEN + unit, here)
    r = tl.sigmoid(r + load(added, added_d, added_b, batch, HIDDEN + unit, here))
    if real is not None:
        z *= tl.load(at(real, real_d, real_b, batch, 0))
    s = load(state, state_d, state_b, batch, unit, here)
    tl.store(at(gates, gates_d, gates_b, batch, unit), z, mask=here)
    tl.store(at(gates, gates_d, gates_b, batch, HIDDEN + unit), r, mask=here)
    tl.store(at(reset, reset_d, reset_b, batch, unit), r * s, mask=here)


@triton.jit(do_not_specialize=[*BETWEEN, "batch"])
def next_state_kernel(
    state, state_d, state_b: tl.constexpr, projected, projected_d, projected_b: tl.constexpr,
    added, added_d, added_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    candidate, candidate_d, candidate_b: tl.constexpr, after, after_d, after_b: tl.constexpr,
    copy, copy_d, copy_b: tl.constexpr, batch, HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < HIDDEN
    x = load(projected, projected_d, projected_b, batch, unit, here)
    x = tanh(x + load(added, added_d, added_b, batch, unit, here))
    z = load(gates, gates_d, gates_b, batch, unit, here)
    s = load(state, state_d, state_b, batch, unit, here)
    s += z * (x - s)
    tl.store(at(candidate, candidate_d, candidate_b, batch, unit), x, mask=here)
    tl.store(at(after, after_d, after_b, batch, unit), s, mask=here)
    if copy is not None:
        tl.store(at(copy, copy_d, copy_b, batch, unit), s, mask=here)


@triton.jit(do_not_specialize=[*BETWEEN, "batch"])
def candidate_backward_kernel(
    grad_state, grad_state_d, grad_state_b: tl.constexpr, term, term_d, term_b: tl.constexpr,
    upstream, upstream_d, upstream_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    candidate, candidate_d, candidate_b: tl.constexpr, state, state_d, state_b: tl.constexpr,
    grad, grad_d, grad_b: tl.constexpr, batch, HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < HIDDEN
    g = load(grad_state, grad_state_d, grad_state_b, batch, unit, here)
    g += load(term, term_d, term_b, batch, unit, here)
    g += load(upstream, upstream_d, upstream_b, batch, unit, here)
    z = load(gates, gates_d, gates_b, batch, unit, here)
    x = load(candidate, candidate_d, candidate_b, batch, unit, here)
    s = load(state, state_d, state_b, batch, unit, here)
    tl.store(at(grad_state, grad_state_d, grad_state_b, batch, unit), g, mask=here)
    place = at(grad, grad_d, grad_b, batch, unit)
    tl.store(place, g * (x - s) * z * (1 - z), mask=here)
    tl.store(place + 2 * HIDDEN, g * z * (1 - x * x), mask=here)


@triton.jit(do_not_specialize=[*BETWEEN, "batch"])
def reset_backward_kernel(
    grad_state, grad_state_d, grad_state_b: tl.constexpr,
    grad_reset, grad_reset_d, grad_reset_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    state, state_d, state_b: tl.constexpr, grad, grad_d, grad_b: tl.constexpr, batch,
    HIDDEN: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = unit < HIDDEN
    g = load(grad_state, grad_state_d, grad_state_b, batch, unit, here)
    from_reset = load(grad_reset, grad_reset_d, grad_reset_b, batch, unit, here)
    z = load(gates, gates_d, gates_b, batch, unit, here)
    r = load(gates, gates_d, gates_b, batch, HIDDEN + unit, here)
    s = load(state, state_d, state_b, batch, unit, here)
    tl.store(
        at(grad, grad_d, grad_b, batch, HIDDEN + unit), from_reset * s * r * (1 - r), mask=here
    )
    g = (1 - z) * g + r * from_reset
    tl.store(at(grad_state, grad_state_d, grad_state_b, batch, unit), g, mask=here)


def launch(kernel: Any, *tensors: Tensor | None) -> None:
    """Runs a kernel over these tensors, for all units of the first one (D, B, H) or (B, H)."""
    arguments: list[Any] = []
    for tensor in tensors:
        if tensor is None:
            arguments += [None, 0, 0]
            continue
        row = tensor.stride(-2)
        between, rest = divmod(tensor.stride(0), row) if tensor.dim() == 3 else (0, 0)
        assert rest == 0
        arguments += [tensor, between, row]
    assert tensors[0] is not None
    batch, hidden = tensors[0].shape[-2:]
    grid = tensors[0].numel() // hidden, triton.cdiv(hidden, UNITS)
    kernel[grid](*arguments, batch, HIDDEN=hidden, UNITS=UNITS)


open_gates = partial(launch, open_gates_kernel)
next_state = partial(launch, next_state_kernel)
candidate_backward = partial(launch, candidate_backward_kernel)
reset_backward = partial(launch, reset_backward_kernel)
