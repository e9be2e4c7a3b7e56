"""An update of Adadelta as a Triton kernel: all tensors in one launch, each read and written once.

A block of parameters that its gradient leaves where they are is not read at all.

Importing this module imports Triton. As with `nmt.fused.gpu.kernels`, the interpreter runs the
kernel on CPU tensors. It finds the tensors by a table of their addresses, and a program handles one
block of entries of one of them.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from nmt.utils.devices import queued

ENTRIES = 2048  # of a tensor, that a program takes
ROW = 6  # of the table: four addresses, the number of entries, the number of the first block


@triton.jit
def address(table, column: tl.constexpr, ALIGNED: tl.constexpr):
    """Where a tensor of float32 begins; only if that is a multiple of 16 bytes are loads as wide."""
    number = tl.load(table + column)
    if ALIGNED:
        number = tl.multiple_of(number, 16)
    pointer = number.to(tl.pointer_type(tl.float32))
    if ALIGNED:
        pointer = tl.multiple_of(pointer, 16)
    return pointer


@triton.jit
def stepped(p, g, v, u, lr, rho, rest, eps, weight_decay, factor):
    """Parameter, average of squared gradients and of squared steps after an update."""
    g = g * factor + weight_decay * p
    v = rho * v + rest * g * g
    step = tl.sqrt(u + eps) / tl.sqrt(v + eps) * g
    return p - lr * step, v, rho * u + rest * step * step


@triton.jit(do_not_specialize=["lr", "rho", "rest", "eps", "weight_decay"])
def adadelta_kernel(
    table, tensor_of_block, clip, lr, rho, rest, eps, weight_decay,
    ROW: tl.constexpr, CLIPPED: tl.constexpr, ALIGNED: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    table += tl.load(tensor_of_block + block) * ROW
    first = (block - tl.load(table + 5)) * ENTRIES
    left = tl.load(table + 4) - first
    p_at = address(table, 0, ALIGNED) + first
    g_at = address(table, 1, ALIGNED) + first
    v_at = address(table, 2, ALIGNED) + first
    u_at = address(table, 3, ALIGNED) + first
    factor = 1.0
    if CLIPPED:
        factor = tl.load(clip)
    i = tl.arange(0, ENTRIES)
    if left >= ENTRIES:  # a mask that ends anywhere would make loads narrow
        g, v, u = tl.load(g_at + i), tl.load(v_at + i), tl.load(u_at + i)
        moved = tl.sum((g * factor != 0).to(tl.int32), 0) > 0  # also by what is no number
        if moved | (weight_decay != 0):
            p, v, u = stepped(tl.load(p_at + i), g, v, u, lr, rho, rest, eps, weight_decay, factor)
            tl.store(p_at + i, p)
        else:  # vectors of words that are not in the batch: most of a table
            v, u = rho * v, rho * u
        tl.store(v_at + i, v)
        tl.store(u_at + i, u)
    else:
        here = i < left
        p, v, u = stepped(
            tl.load(p_at + i, mask=here, other=0), tl.load(g_at + i, mask=here, other=0),
            tl.load(v_at + i, mask=here, other=0), tl.load(u_at + i, mask=here, other=0),
            lr, rho, rest, eps, weight_decay, factor,
        )  # fmt: skip
        tl.store(p_at + i, p, mask=here)
        tl.store(v_at + i, v, mask=here)
        tl.store(u_at + i, u, mask=here)


def tensors_of_blocks(sizes: Sequence[int], device: torch.device) -> Tensor:
    """The number of the tensor that each block is of, given the entries of every tensor."""
    numbers = [i for i, size in enumerate(sizes) for _ in range(triton.cdiv(size, ENTRIES))]
    return queued(torch.tensor(numbers, dtype=torch.int32, device="cpu"), device)


def move(
    tensors: Sequence[Sequence[Tensor]],
    tensor_of_block: Tensor,
    clip: Tensor | None,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
) -> None:
    """Updates parameters and averages in place; the CPU waits for nothing.

    Args:
        tensors: parameter, gradient, average of squared gradients and average of squared steps of
            each; contiguous float32 tensors of one device, the same size in each four.
        tensor_of_block: of `tensors_of_blocks`, on that device.
        clip: a scalar there by which gradients are multiplied.
    """
    device = tensor_of_block.device
    table: list[int] = []
    first, aligned = 0, True
    for four in tensors:
        begin = [tensor.data_ptr() for tensor in four]
        aligned = aligned and not any(place % 16 for place in begin)
        table += [*begin, four[0].numel(), first]
        first += triton.cdiv(four[0].numel(), ENTRIES)
    addresses = queued(torch.tensor(table, dtype=torch.int64, device="cpu"), device)
    adadelta_kernel[(len(tensor_of_block),)](
        addresses, tensor_of_block, tensor_of_block if clip is None else clip,
        lr, rho, 1 - rho, eps, weight_decay,
        ROW=ROW, CLIPPED=clip is not None, ALIGNED=aligned, ENTRIES=ENTRIES, num_warps=8,
    )  # fmt: skip
