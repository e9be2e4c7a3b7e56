"""The gradient of a table of word vectors as a Triton kernel, with the same bits at each repetition.

PyTorch's own on CUDA has a race for 1,025 to 3,072 words
(https://github.com/pytorch/pytorch/issues/187687), and gives few programs all of the work.

R words of the text, V vocabulary, E embedding.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 16  # of the gradient that a program adds at once
COLUMNS = 128  # entries of a row that a program takes


@triton.jit(do_not_specialize=["count"], do_not_specialize_on_alignment=["words", "places"])
def lookup_backward_kernel(
    words, places, grad, total, count,
    SIZE: tl.constexpr, GRAD_ROW: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    # all rows of a word are summed by the program of its first place among the sorted words
    first = tl.program_id(0)
    word = tl.load(words + first)
    before = tl.load(words + first - 1, mask=first > 0, other=-1)
    if word != before:
        n = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        sums = tl.zeros((ROWS, COLUMNS), tl.float32)
        at = first
        more = True
        while more:
            i = at + tl.arange(0, ROWS)
            same = tl.load(words + i, mask=i < count, other=-1) == word
            place = tl.load(places + i, mask=same, other=0)
            here = same[:, None] & (n < SIZE)[None, :]
            row = tl.load(grad + place[:, None] * GRAD_ROW + n[None, :], mask=here, other=0)
            sums += row.to(tl.float32)
            more = tl.sum(same.to(tl.int32), 0) == ROWS
            at += ROWS
        tl.store(total + word * SIZE + n, tl.sum(sums, 0), mask=n < SIZE)


def lookup_backward(grad: Tensor, words: Tensor, vocabulary: int) -> Tensor:
    """The rows of `grad` (R, E) added up by their words (R): (V, E) in float32."""
    total = torch.zeros(vocabulary, grad.shape[1], device=grad.device)
    if not grad.numel():
        return total
    if grad.stride(1) != 1:
        grad = grad.contiguous()
    found, places = words.sort(stable=True)
    lookup_backward_kernel[(len(words), triton.cdiv(grad.shape[1], COLUMNS))](
        found, places, grad, total, len(words),
        SIZE=grad.shape[1], GRAD_ROW=grad.stride(0), ROWS=ROWS, COLUMNS=COLUMNS, num_warps=4,
    )  # fmt: skip
    return total
