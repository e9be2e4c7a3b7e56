"""The gates of a step as Triton kernels, two each way; see `nmt.fused.steps` for what they do.

A program handles some sentences (of one direction) and one block of hidden units. In 16 bits, and up
to `SENTENCES` sentences, it makes the matrix products of its entries, too, and adds them up in
float32: a launch for a product and a launch for what follows it are one, and the product is never
written to memory. Beyond that products are large enough for tiles of their own, and in float32 a
product in a kernel would not be the one that `torch.set_float32_matmul_precision` asks for.

Each tensor comes with the number of rows from one direction to the next, and with the entries of a
row, which is a compile-time constant (see `nmt.fused.gpu.kernels.attention`).

B batch, H state, D directions.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from nmt.fused.steps import Product, total

SENTENCES = 128  # the most whose products a kernel makes itself
UNITS = 256  # hidden units of a program that makes no product; it handles one sentence
TILE = 16  # hidden units of a program that makes products: 2 x 63 programs for 80 sentences, 1000 units
DEPTH = 128  # entries of a product that it takes at once
INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)
BETWEEN = [  # rows between directions, which depend on the batch
    f"{name}_d"
    for name in (
        "projected", "addend", "state", "gates", "reset", "real", "candidate", "after",
        "compute_copy", "grad_state", "upstream", "grad", "left", "left_2",
    )
]  # fmt: skip


@triton.jit
def sigmoid(x):
    return 1 / (1 + tl.exp(-x))


@triton.jit
def tanh(x):
    return 2 / (1 + tl.exp(-2 * x)) - 1


@triton.jit
def entries(tensor, between, row: tl.constexpr, d, b, column):
    """Pointers to some columns of the rows of some sentences (B, column)."""
    return tensor + (d * between + b)[:, None] * row + column[None, :]


@triton.jit
def load(tensor, between, row: tl.constexpr, d, b, column, here):
    place = entries(tensor, between, row, d, b, column)
    return tl.load(place, mask=here, other=0).to(tl.float32)


@triton.jit
def add_product(
    sums, left, left_d, left_b: tl.constexpr, right, right_d: tl.constexpr, right_k: tl.constexpr,
    right_n: tl.constexpr, d, b, real_b, column, real_column, SIZE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """`sums` (B, column) with those entries of left (B, SIZE) times right (SIZE, .) added."""
    if SIZE > 0:
        right += d * right_d
        for first in range(0, SIZE, DEPTH):
            k = first + tl.arange(0, DEPTH)
            x = tl.load(
                entries(left, left_d, left_b, d, b, k),
                mask=real_b[:, None] & (k < SIZE)[None, :], other=0,
            )  # fmt: skip
            w = tl.load(
                right + k[:, None] * right_k + column[None, :] * right_n,
                mask=(k < SIZE)[:, None] & real_column[None, :], other=0,
            )  # fmt: skip
            if INTERPRETED:  # it keeps bf16 as integers, and would multiply these
                x, w = x.to(tl.float32), w.to(tl.float32)
            sums = tl.dot(x, w, sums)
    return sums


@triton.jit
def added(
    addend, addend_d, addend_b: tl.constexpr, left, left_d, left_b: tl.constexpr,
    right, right_d: tl.constexpr, right_k: tl.constexpr, right_n: tl.constexpr,
    d, b, real_b, column, real_column,
    ADDEND: tl.constexpr, SIZE: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tensor and a product (B, column), or one of them."""
    sums = tl.zeros((b.shape[0], column.shape[0]), tl.float32)
    sums = add_product(
        sums, left, left_d, left_b, right, right_d, right_k, right_n,
        d, b, real_b, column, real_column, SIZE, DEPTH,
    )  # fmt: skip
    if ADDEND:
        here = real_b[:, None] & real_column[None, :]
        sums += load(addend, addend_d, addend_b, d, b, column, here)
    return sums


@triton.jit(do_not_specialize=[*BETWEEN, "batch"], do_not_specialize_on_alignment=["real"])
def open_gates_kernel(
    projected, projected_d, projected_b: tl.constexpr,
    state, state_d, state_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    reset, reset_d, reset_b: tl.constexpr, real, real_d, real_b: tl.constexpr,
    addend, addend_d, addend_b: tl.constexpr, left, left_d, left_b: tl.constexpr,
    right, right_d: tl.constexpr, right_k: tl.constexpr, right_n: tl.constexpr, batch,
    HIDDEN: tl.constexpr, SIZE: tl.constexpr, ADDEND: tl.constexpr, MASKED: tl.constexpr,
    ROWS: tl.constexpr, UNITS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A program's columns are its units of z and then its units of r."""
    d = tl.program_id(2)
    b = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    both = tl.arange(0, 2 * UNITS)
    is_r = both // UNITS
    unit = tl.program_id(1) * UNITS + both % UNITS
    column = is_r * HIDDEN + unit
    x = added(
        addend, addend_d, addend_b, left, left_d, left_b, right, right_d, right_k, right_n,
        d, b, b < batch, column, unit < HIDDEN, ADDEND, SIZE, DEPTH,
    )  # fmt: skip
    here = (b < batch)[:, None] & (unit < HIDDEN)[None, :]
    x += load(projected, projected_d, projected_b, d, b, column, here)
    x = sigmoid(x)
    if MASKED:
        mask = tl.load(real + (d * real_d + b) * real_b, mask=b < batch, other=0)
        x = tl.where(is_r[None, :] == 0, x * mask[:, None], x)
    tl.store(entries(gates, gates_d, gates_b, d, b, column), x, mask=here)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = (b < batch)[:, None] & (unit < HIDDEN)[None, :]
    _, r = tl.split(tl.permute(tl.reshape(x, (ROWS, 2, UNITS)), (0, 2, 1)))
    s = load(state, state_d, state_b, d, b, unit, here)
    tl.store(entries(reset, reset_d, reset_b, d, b, unit), r * s, mask=here)


@triton.jit(do_not_specialize=[*BETWEEN, "batch"])
def next_state_kernel(
    projected, projected_d, projected_b: tl.constexpr,
    state, state_d, state_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    candidate, candidate_d, candidate_b: tl.constexpr, after, after_d, after_b: tl.constexpr,
    compute_copy, compute_copy_d, compute_copy_b: tl.constexpr,
    addend, addend_d, addend_b: tl.constexpr, left, left_d, left_b: tl.constexpr,
    right, right_d: tl.constexpr, right_k: tl.constexpr, right_n: tl.constexpr,
    left_2, left_2_d, left_2_b: tl.constexpr,
    right_2, right_2_d: tl.constexpr, right_2_k: tl.constexpr, right_2_n: tl.constexpr, batch,
    HIDDEN: tl.constexpr, SIZE: tl.constexpr, SIZE_2: tl.constexpr, ADDEND: tl.constexpr,
    COPIED: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    d = tl.program_id(2)
    b = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = (b < batch)[:, None] & (unit < HIDDEN)[None, :]
    x = added(
        addend, addend_d, addend_b, left, left_d, left_b, right, right_d, right_k, right_n,
        d, b, b < batch, unit, unit < HIDDEN, ADDEND, SIZE, DEPTH,
    )  # fmt: skip
    x = add_product(
        x, left_2, left_2_d, left_2_b, right_2, right_2_d, right_2_k, right_2_n,
        d, b, b < batch, unit, unit < HIDDEN, SIZE_2, DEPTH,
    )  # fmt: skip
    x += load(projected, projected_d, projected_b, d, b, unit, here)
    x = tanh(x)
    z = load(gates, gates_d, gates_b, d, b, unit, here)
    s = load(state, state_d, state_b, d, b, unit, here)
    s += z * (x - s)  # exactly s where z is 0
    tl.store(entries(candidate, candidate_d, candidate_b, d, b, unit), x, mask=here)
    tl.store(entries(after, after_d, after_b, d, b, unit), s, mask=here)
    if COPIED:
        place = entries(compute_copy, compute_copy_d, compute_copy_b, d, b, unit)
        tl.store(place, s, mask=here)


@triton.jit(do_not_specialize=[*BETWEEN, "batch"])
def candidate_backward_kernel(
    grad_state, grad_state_d, grad_state_b: tl.constexpr,
    upstream, upstream_d, upstream_b: tl.constexpr, gates, gates_d, gates_b: tl.constexpr,
    candidate, candidate_d, candidate_b: tl.constexpr, state, state_d, state_b: tl.constexpr,
    grad, grad_d, grad_b: tl.constexpr,
    addend, addend_d, addend_b: tl.constexpr, left, left_d, left_b: tl.constexpr,
    right, right_d: tl.constexpr, right_k: tl.constexpr, right_n: tl.constexpr, batch,
    HIDDEN: tl.constexpr, SIZE: tl.constexpr, ADDEND: tl.constexpr,
    ROWS: tl.constexpr, UNITS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    d = tl.program_id(2)
    b = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = (b < batch)[:, None] & (unit < HIDDEN)[None, :]
    g = added(
        addend, addend_d, addend_b, left, left_d, left_b, right, right_d, right_k, right_n,
        d, b, b < batch, unit, unit < HIDDEN, ADDEND, SIZE, DEPTH,
    )  # fmt: skip
    grad_place = entries(grad_state, grad_state_d, grad_state_b, d, b, unit)
    g += tl.load(grad_place, mask=here, other=0)
    g += load(upstream, upstream_d, upstream_b, d, b, unit, here)
    z = load(gates, gates_d, gates_b, d, b, unit, here)
    x = load(candidate, candidate_d, candidate_b, d, b, unit, here)
    s = load(state, state_d, state_b, d, b, unit, here)
    tl.store(grad_place, g, mask=here)
    place = entries(grad, grad_d, grad_b, d, b, unit)
    tl.store(place, g * (x - s) * z * (1 - z), mask=here)
    tl.store(place + 2 * HIDDEN, g * z * (1 - x * x), mask=here)


@triton.jit(do_not_specialize=[*BETWEEN, "batch"])
def reset_backward_kernel(
    grad_state, grad_state_d, grad_state_b: tl.constexpr,
    gates, gates_d, gates_b: tl.constexpr, state, state_d, state_b: tl.constexpr,
    grad, grad_d, grad_b: tl.constexpr,
    addend, addend_d, addend_b: tl.constexpr, left, left_d, left_b: tl.constexpr,
    right, right_d: tl.constexpr, right_k: tl.constexpr, right_n: tl.constexpr, batch,
    HIDDEN: tl.constexpr, SIZE: tl.constexpr, ADDEND: tl.constexpr,
    ROWS: tl.constexpr, UNITS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    d = tl.program_id(2)
    b = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    here = (b < batch)[:, None] & (unit < HIDDEN)[None, :]
    from_reset = added(
        addend, addend_d, addend_b, left, left_d, left_b, right, right_d, right_k, right_n,
        d, b, b < batch, unit, unit < HIDDEN, ADDEND, SIZE, DEPTH,
    )  # fmt: skip
    grad_place = entries(grad_state, grad_state_d, grad_state_b, d, b, unit)
    gate_place = entries(gates, gates_d, gates_b, d, b, unit)
    g = tl.load(grad_place, mask=here, other=0)
    z = tl.load(gate_place, mask=here, other=0)
    r = tl.load(gate_place + HIDDEN, mask=here, other=0)
    s = load(state, state_d, state_b, d, b, unit, here)
    place = entries(grad, grad_d, grad_b, d, b, unit) + HIDDEN
    tl.store(place, from_reset * s * r * (1 - r), mask=here)
    tl.store(grad_place, (1 - z) * g + r * from_reset, mask=here)


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


def matrix(tensor: Tensor) -> list[Any]:
    """A matrix ([D, ]K, N) and the entries between its directions, its rows and its columns."""
    return [tensor, tensor.stride(0) if tensor.dim() == 3 else 0, *tensor.stride()[-2:]]


def split_terms(terms: Sequence[Tensor | Product]) -> tuple[Tensor | None, list[Product]]:
    """What a kernel reads and the products that it makes, of terms as `steps.total` takes them."""
    products = [term for term in terms if isinstance(term, Product)]
    if not products or products[0].left.dtype == torch.float32:
        return total(terms), []
    if products[0].left.shape[-2] > SENTENCES:
        return total(terms), []
    return terms[0] if isinstance(terms[0], Tensor) else None, products


def arguments_of(
    terms: Sequence[Tensor | Product], state: Tensor, most: int = 1
) -> tuple[list[Any], dict[str, Any]]:
    """A kernel's arguments from `addend` on, and its compile-time constants.

    Args:
        terms: which it adds up; see `nmt.fused.steps.total`.
        state: (D, B, H) or (B, H); also stands where there is no tensor or no product.
        most: products that the kernel takes.
    """
    addend, products = split_terms(terms)
    arguments = rows(state if addend is None else addend)
    options = {"HIDDEN": state.shape[-1], "ADDEND": addend is not None}
    for i, size in enumerate(("SIZE", "SIZE_2")[:most]):
        if i < len(products):
            left, right = products[i]
            arguments += [*rows(left), *matrix(right)]
            options[size] = left.shape[-1]
        else:
            arguments += [*rows(state), state, 0, 0, 0]
            options[size] = 0
    options |= {"ROWS": 1, "UNITS": UNITS, "DEPTH": 0}
    if products:
        least = max(16, triton.next_power_of_2(state.shape[-2]))
        options |= {"ROWS": min(64, least), "UNITS": TILE, "DEPTH": DEPTH, "num_stages": 3}
    return [*arguments, state.shape[-2]], options


def grid(state: Tensor, options: dict[str, Any]) -> tuple[int, int, int]:
    """Programs for states (D, B, H) or (B, H)."""
    directions = state.shape[0] if state.dim() == 3 else 1
    batch, hidden = state.shape[-2:]
    return triton.cdiv(batch, options["ROWS"]), triton.cdiv(hidden, options["UNITS"]), directions


def open_gates(
    projected: Tensor,
    terms: Sequence[Tensor | Product],
    state: Tensor,
    gates: Tensor,
    reset: Tensor,
    real: Tensor | None = None,
) -> None:
    """See `nmt.fused.steps.open_gates`."""
    arguments, options = arguments_of(terms, state)
    open_gates_kernel[grid(state, options)](
        *rows(projected, state, gates, reset, state if real is None else real), *arguments,
        MASKED=real is not None, **options,
    )  # fmt: skip


def next_state(
    projected: Tensor,
    terms: Sequence[Tensor | Product],
    state: Tensor,
    gates: Tensor,
    candidate: Tensor,
    after: Tensor,
    compute_copy: Tensor | None = None,
) -> None:
    """See `nmt.fused.steps.next_state`."""
    arguments, options = arguments_of(terms, state, 2)
    copy = after if compute_copy is None else compute_copy
    next_state_kernel[grid(state, options)](
        *rows(projected, state, gates, candidate, after, copy), *arguments,
        COPIED=compute_copy is not None, **options,
    )  # fmt: skip


def candidate_backward(
    grad_state: Tensor,
    term: Tensor | Product,
    upstream: Tensor,
    gates: Tensor,
    candidate: Tensor,
    state: Tensor,
    grad: Tensor,
) -> None:
    """See `nmt.fused.steps.candidate_backward`."""
    arguments, options = arguments_of([term], state)
    candidate_backward_kernel[grid(state, options)](
        *rows(grad_state, upstream, gates, candidate, state, grad), *arguments, **options
    )


def reset_backward(
    grad_state: Tensor, term: Tensor | Product, gates: Tensor, state: Tensor, grad: Tensor
) -> None:
    """See `nmt.fused.steps.reset_backward`."""
    arguments, options = arguments_of([term], state)
    reset_backward_kernel[grid(state, options)](
        *rows(grad_state, gates, state, grad), *arguments, **options
    )
