"""Cross-entropy over a large vocabulary in chunks: all float32 logits are never alive at once.

R rows (target words), M maxout, V vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nmt.layers.precision import accumulate_dtype

# Logits of a chunk, in entries. On a CPU a chunk is to stay near the cache, and below the size from
# which every allocation is fresh pages; on a GPU it is to be large enough to fill the device.
CHUNK = {"cpu": 2**21, "cuda": 2**26}


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
    rows handled at once.
    """
    accumulate = accumulate_dtype(dtype)
    rows, matrix, bias = rows.to(dtype), W_o.to(dtype), bias.to(dtype)
    chunk = chunk or max(1, CHUNK.get(rows.device.type, 2**26) // W_o.shape[0])
    nll = rows.new_empty(rows.shape[0], dtype=accumulate)
    numbers = torch.arange(min(chunk, rows.shape[0]), device=rows.device)
    grads = None
    if with_gradients:
        grads = Gradients(
            torch.empty_like(rows),
            torch.zeros_like(W_o, dtype=accumulate),
            torch.zeros_like(bias, dtype=accumulate),
        )
    for first in range(0, rows.shape[0], chunk):
        here = slice(first, first + chunk)
        word = words[here].unsqueeze(1)
        logits = torch.addmm(bias, rows[here], matrix.t())
        if grads is None:
            nll[here] = surprisal(logits, word, accumulate)
            continue
        grad = torch.softmax(logits, 1)
        nll[here] = surprisal(logits, word, accumulate, grad)
        # p - 1 of the right word, as exact as its NLL; 16 bits could not tell p from 1 near there
        grad[numbers[: len(grad)], words[here]] = torch.expm1(-nll[here]).to(dtype)
        if weight is not None:
            grad *= weight[here].unsqueeze(1)
        torch.mm(grad, matrix, out=grads.rows[here])
        grads.W_o.add_(torch.mm(grad.t(), rows[here]))
        grads.bias.add_(grad.sum(0))
    return nll if weight is None else nll.mul_(weight), grads


def surprisal(
    logits: Tensor, word: Tensor, accumulate: torch.dtype, probability: Tensor | None = None
) -> Tensor:
    """-log p(word) (R) from logits (R, V) and words (R, 1), in the type `accumulate`.

    On a CPU, where a second pass over the logits costs as much as the product that made them, the
    softmax is taken at its word if it is given, except where p is so small that log p is not exact.
    """
    if probability is None or logits.is_cuda:
        logits = logits.to(accumulate)
        return (logits.logsumexp(1, keepdim=True) - logits.gather(1, word)).squeeze(1)
    p = probability.gather(1, word).to(accumulate).squeeze(1)
    nll = -p.log()
    lost = p < 1e-30
    if lost.any():
        nll[lost] = surprisal(logits[lost], word[lost], accumulate)
    return nll


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
