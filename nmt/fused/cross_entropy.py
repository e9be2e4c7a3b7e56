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
from torch.nn.functional import pad

from nmt.fused.gpu import backend
from nmt.layers.precision import accumulate_dtype

# On a CPU the rows of 16-bit products are padded to a multiple of this number. oneDNN compiles a
# product for each new number of rows, and the number of words differs from batch to batch: to compile
# the three products of 700 rows and 3,000 words takes as long as to compute them.
GRANULE = 32


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

    `weight` is (R), or None for 1. `dtype` is the type of the products. `chunk` is the largest number
    of rows that are handled at once, but at least `GRANULE`.
    """
    steps = backend.steps_for(rows)
    accumulate = accumulate_dtype(dtype)
    matrix = steps.operand(W_o, dtype)
    granule = GRANULE if rows.device.type == "cpu" and dtype.itemsize == 2 else 1
    count = len(rows)
    if extra := -count % granule:
        rows, words = pad(rows, (0, 0, 0, extra)), pad(words, (0, extra))
        weight = None if weight is None else pad(weight, (0, extra))
    rows = steps.operand(rows, dtype)
    nll = rows.new_empty(len(rows), dtype=accumulate)
    grads = None
    if with_gradients:
        empty = torch.empty if len(rows) else torch.zeros
        grads = Gradients(
            torch.empty_like(rows),
            empty(W_o.shape, dtype=accumulate, device=rows.device),
            empty(bias.shape, dtype=accumulate, device=rows.device),
        )
    first = True
    logits = steps.logits_memory(rows, W_o.shape[0], chunk, granule)
    for here in chunks(len(rows), len(logits), granule):
        grad = steps.word_nll(
            rows[here], matrix, bias, words[here], None if weight is None else weight[here],
            nll[here], logits, with_gradient=with_gradients,
        )  # fmt: skip
        if grads is None:
            continue
        if here.stop > count:
            grad[count - here.start :] = 0
        torch.mm(grad, matrix, out=grads.rows[here])
        steps.accumulate_product(grads.W_o, grad.t(), rows[here], first=first)
        steps.accumulate_columns(grads.bias, grad, first=first)
        first = False
    if extra:
        nll, grads = nll[:count], grads and grads._replace(rows=grads.rows[:count])
    return nll, grads


def chunks(rows: int, most: int, granule: int = 1) -> Iterator[slice]:
    """The smallest number of slices of at most `most` rows; their sizes differ by a granule at most.

    `rows` and the size of each slice are multiples of `granule`.
    """
    units, most = rows // granule, most // granule
    count = -(-units // most) if units else 0
    for i in range(count):
        yield slice(units * i // count * granule, units * (i + 1) // count * granule)


class SummedNLL(Function):
    """Σ weight · nll, (). The forward pass computes the gradients; backward only scales them."""

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
        with_gradients = any(ctx.needs_input_grad)
        with torch.autocast(rows.device.type, enabled=False):
            nll, grads = chunked_nll(
                rows, W_o, bias, words, dtype, with_gradients=with_gradients, weight=weight
            )
        if grads is not None:
            ctx.save_for_backward(*grads)
        return nll.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_sum: Tensor) -> tuple[Tensor | None, ...]:
        return *(grad * grad_sum for grad in ctx.saved_tensors), None, None, None
