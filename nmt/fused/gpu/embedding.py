"""Embedding look-up with a deterministic Triton kernel for the gradient, where there is one.

B batch, S length, V vocabulary, E embedding.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding

from nmt.fused.gpu import backend


def look_up(table: nn.Embedding, words: Tensor) -> Tensor:
    """`table(words)` (B, S, E) of words (B, S).

    The gradient has the same bits at each repetition with a kernel (of the table's float32 on
    CUDA); elsewhere, and for a table with options of its own or hooks, it is PyTorch's.
    """
    lookup_backward = getattr(backend.steps_for(table.weight), "lookup_backward", None)
    if lookup_backward is None or not is_plain(table):
        return table(words)
    return Lookup.apply(words, table.weight, lookup_backward)


def is_plain(table: nn.Embedding) -> bool:
    """Whether the table does nothing but look its words up."""
    return (
        type(table) is nn.Embedding
        and table.padding_idx is None
        and table.max_norm is None
        and not (table.scale_grad_by_freq or table.sparse)
        and not (table._forward_hooks or table._forward_pre_hooks)
        and not (table._backward_hooks or table._backward_pre_hooks)
    )


class Lookup(Function):
    """See `look_up`."""

    @staticmethod
    def forward(ctx: Any, words: Tensor, weight: Tensor, backward: Any) -> Tensor:
        ctx.save_for_backward(words)
        ctx.vocabulary, ctx.backward_of_rows = len(weight), backward
        return embedding(words, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (words,) = ctx.saved_tensors
        rows = grad.reshape(-1, grad.shape[-1])
        return None, ctx.backward_of_rows(rows, words.reshape(-1), ctx.vocabulary), None
