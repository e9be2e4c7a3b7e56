"""Cross-entropy over a large vocabulary in chunks: all logits are never alive at once.

R rows (target words), M maxout, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nmt.layers.fused import backend
from nmt.layers.precision import accumulate_dtype


class Gradients(NamedTuple):
    """Derivatives of Σ_r weight_r nll_r."""

    rows: Tensor  # (R, M)
    W_o: Tensor  # (V, M)
    bias: Tensor  # (V)


def chunked_nll(
    rows: Tensor,
    W_o: Tensor,
    bias: Tensor,
    words: Tensor,
    dtype: torch.dtype,
    *,
    with_gradients: bool = False,
    weight: Tensor | None = None,
    chunk: int | None = None,
) -> tuple[Tensor, Gradients | None]:
    """weight · -log p(word) (R) of readouts (R, M); with `with_gradients` also the gradients of its sum.

    `weight` is (R), or None for 1; `dtype` is the type of the products; `chunk` is the number of
    rows handled at once, at most: all chunks are as good as equal, so that none is too small to be
    worth its products.
    """
    steps = backend.steps_for(rows)
    accumulate = accumulate_dtype(dtype)
    rows, matrix = steps.operand(rows, dtype), steps.operand(W_o, dtype)
    nll = rows.new_empty(rows.shape[0], dtype=accumulate)
    grads = None
    if with_gradients:
        empty = torch.empty if len(rows) else torch.zeros
        grads = Gradients(
            torch.empty_like(rows),
            empty(W_o.shape, dtype=accumulate, device=rows.device),
            empty(bias.shape, dtype=accumulate, device=rows.device),
        )
    first = True
    logits = steps.logits_memory(rows, W_o.shape[0], chunk)
    for here in chunks(len(rows), len(logits)):
        grad = steps.word_nll(
            rows[here], matrix, bias, words[here], None if weight is None else weight[here],
            nll[here], logits, with_gradient=with_gradients,
        )  # fmt: skip
        if grads is None:
            continue
        torch.mm(grad, matrix, out=grads.rows[here])
        steps.accumulate_product(grads.W_o, grad.t(), rows[here], first=first)
        steps.accumulate_columns(grads.bias, grad, first=first)
        first = False
    return nll, grads


def chunks(rows: int, most: int) -> Iterator[slice]:
    """As few slices of at most `most` rows as will do, none more than one row larger than another."""
    count = -(-rows // most) if rows else 0
    for i in range(count):
        yield slice(rows * i // count, rows * (i + 1) // count)


class RowNLL(Function):
    """weight · nll (R), each with a gradient of its own: the backward pass makes the logits again."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        W_o: Tensor,
        bias: Tensor,
        words: Tensor,
        dtype: torch.dtype,
        weight: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(rows, W_o, bias, words, weight)
        ctx.dtype = dtype
        with torch.autocast(rows.device.type, enabled=False):
            return chunked_nll(rows, W_o, bias, words, dtype, weight=weight)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(grad_nll.device.type, enabled=False):
            rows, W_o, bias, words, weight = ctx.saved_tensors
            if weight is not None:
                grad_nll = grad_nll * weight
            grads = chunked_nll(
                rows, W_o, bias, words, ctx.dtype, with_gradients=True, weight=grad_nll
            )[1]
        assert grads is not None
        return *grads, None, None, None


class SummedNLL(Function):
    """(Σ weight · nll, weight · nll): only a factor of the sum is left for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        W_o: Tensor,
        bias: Tensor,
        words: Tensor,
        dtype: torch.dtype,
        weight: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        with_gradients = any(ctx.needs_input_grad)
        with torch.autocast(rows.device.type, enabled=False):
            nll, grads = chunked_nll(
                rows, W_o, bias, words, dtype, with_gradients=with_gradients, weight=weight
            )
        if grads is not None:
            ctx.save_for_backward(*grads)
        ctx.mark_non_differentiable(nll)
        return nll.sum(), nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_sum: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *(grad * grad_sum for grad in ctx.saved_tensors), None, None, None
