"""Cross-entropy over a large vocabulary in chunks: all float32 logits are never alive at once.

R rows (target words), M maxout, V vocabulary.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nmt.layers.precision import state_type

# Logits of a chunk, in entries. On a CPU a chunk is to stay near the cache, and below the size from
# which every allocation is fresh pages; on a GPU it is to be large enough to fill the device.
CHUNK = {"cpu": 2**21, "cuda": 2**26}


class Gradients(NamedTuple):
    """Derivatives of Σ_r weight_r nll_r."""

    rows: Tensor  # (R, M)
    W_o: Tensor  # (V, M)
    bias: Tensor  # (V)


def chunked(
    rows: Tensor,
    W_o: Tensor,
    bias: Tensor,
    words: Tensor,
    kind: torch.dtype,
    weight: Tensor | None,
    chunk: int | None = None,
) -> tuple[Tensor, Gradients | None]:
    """-log p(word) (R) of readouts (R, M), and with `weight` (R) the gradients of Σ weight · nll.

    `kind` is the type of the products; the softmax is in float32 at least. `chunk` is the number of
    rows handled at once.
    """
    wide = state_type(kind)
    rows, matrix, bias = rows.to(kind), W_o.to(kind), bias.to(kind)
    chunk = chunk or max(1, CHUNK.get(rows.device.type, 2**26) // W_o.shape[0])
    nll = rows.new_empty(rows.shape[0], dtype=wide)
    if weight is None:
        grads = None
    else:
        grads = Gradients(
            torch.empty_like(rows),
            torch.zeros_like(W_o, dtype=wide),
            torch.zeros_like(bias, dtype=wide),
        )
    for first in range(0, rows.shape[0], chunk):
        here = slice(first, first + chunk)
        word = words[here].unsqueeze(1)
        logits = torch.addmm(bias, rows[here], matrix.t())
        log_p = torch.log_softmax(logits, 1, dtype=wide)
        nll[here] = -log_p.gather(1, word).squeeze(1)
        if grads is not None:
            assert weight is not None
            grad = log_p.exp_()
            grad.scatter_add_(1, word, grad.new_full(word.shape, -1))
            grad *= weight[here].unsqueeze(1)
            grads.bias.add_(grad.sum(0))
            grad = grad.to(kind)
            torch.mm(grad, matrix, out=grads.rows[here])
            grads.W_o.add_(torch.mm(grad.t(), rows[here]))
    return nll, grads


class RowNLL(Function):
    """nll (R), each with a gradient of its own: the backward pass makes the logits again."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, W_o: Tensor, bias: Tensor, words: Tensor, kind: torch.dtype
    ) -> Tensor:
        ctx.save_for_backward(rows, W_o, bias, words)
        ctx.kind = kind
        with torch.autocast(rows.device.type, enabled=False):
            return chunked(rows, W_o, bias, words, kind, None)[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_nll: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(grad_nll.device.type, enabled=False):
            rows, W_o, bias, words = ctx.saved_tensors
            grads = chunked(rows, W_o, bias, words, ctx.kind, grad_nll)[1]
        assert grads is not None
        return *grads, None, None


class SummedNLL(Function):
    """(Σ nll, nll): one weight for all rows lets the forward pass make the gradients already."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, W_o: Tensor, bias: Tensor, words: Tensor, kind: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad)
        weight = rows.new_ones(rows.shape[0], dtype=state_type(kind)) if wanted else None
        with torch.autocast(rows.device.type, enabled=False):
            nll, grads = chunked(rows, W_o, bias, words, kind, weight)
        if grads is not None:
            ctx.save_for_backward(*grads)
        ctx.mark_non_differentiable(nll)
        return nll.sum(), nll

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_sum: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *(grad * grad_sum for grad in ctx.saved_tensors), None, None
