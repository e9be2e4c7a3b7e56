"""-log p of given words, and the gradient of the logits, for rows that are handled at once.

`nmt.fused.gpu.kernels.likelihood` offers the same functions as a Triton kernel.

R rows (target words), M maxout, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.layers.precision import accumulate_dtype

# Bytes of logits that are alive at once: on a CPU they are to stay near the cache, on a GPU they are
# to be enough to fill the device.
LOGITS = {"cpu": 2**22}
LOGITS_OF_A_GPU = 2**28


def logits_memory(rows: Tensor, vocabulary: int, most: int | None = None, least: int = 1) -> Tensor:
    """Memory for the logits (r, V) of as many rows as are to be handled at once.

    These are at most `most`, but at least `least`. Takes readouts (R, M) as `operand` gives them.
    It is used again for all rows of a batch: on a CPU a new one of this size is fresh pages each
    time, which costs a sixth of the cross-entropy.
    """
    size = LOGITS.get(rows.device.type, LOGITS_OF_A_GPU) // (vocabulary * rows.itemsize)
    return rows.new_empty(min(len(rows), max(least, most or size)), vocabulary)


def operand(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A matrix in the type of products, as they read it best."""
    return tensor.to(dtype)


def word_nll(
    rows: Tensor,
    W_o: Tensor,
    bias: Tensor,
    words: Tensor,
    weight: Tensor | None,
    nll: Tensor,
    logits: Tensor,
    *,
    with_gradient: bool,
) -> Tensor | None:
    """Writes weight · -log p(word) (R) into `nll`; gives the gradient of its sum by the logits (R, V).

    Takes readouts (R, M) and W_o (V, M) as `operand`s, bias (V), words (R), weights (R) or None for
    1, and memory for the logits (r, V), r >= R, in which the gradient may be given. The gradient is
    in the type of products, and None without `with_gradient`.

    The logits are in the type of products as well: in bf16 one of 8 to 16 is off by up to 0.03.
    """
    word, logits = words.unsqueeze(1), logits[: len(rows)]
    bias = bias.to(rows.dtype)
    torch.addmm(bias, rows, W_o.t(), out=logits)
    grad = None
    if not with_gradient or logits.is_cuda:
        nll.copy_(surprisal(logits, word))
    if with_gradient:
        grad = torch.softmax(logits, 1, out=logits)
        if not logits.is_cuda:
            # a second pass over the logits would cost as much as the product that made them: the
            # softmax is taken at its word, except where p is so small that log p is not exact
            p = grad.gather(1, word).to(nll.dtype).squeeze(1)
            torch.neg(p.log(), out=nll)
            if (lost := p < 1e-30).any():
                nll[lost] = surprisal(torch.addmm(bias, rows[lost], W_o.t()), word[lost])
        # p - 1 of the right word, as exact as its NLL; 16 bits could not tell p from 1 near there
        # (`scatter_` would copy all logits twice)
        every = torch.arange(len(words), device=words.device)
        grad[every, words] = torch.expm1(-nll).to(grad.dtype)
        if weight is not None:
            grad *= weight.unsqueeze(1)
    if weight is not None:
        nll.mul_(weight)
    return grad


def surprisal(logits: Tensor, word: Tensor) -> Tensor:
    """-log p(word) (R) from logits (R, V) and words (R, 1), in float32 at least."""
    logits = logits.to(accumulate_dtype(logits.dtype))
    return (logits.logsumexp(1, keepdim=True) - logits.gather(1, word)).squeeze(1)


def accumulate_product(total: Tensor, left: Tensor, right: Tensor, *, first: bool) -> None:
    """Adds left · right to `total`; where it is the `first` product, `total` may hold anything."""
    if total.dtype == left.dtype:
        total.addmm_(left, right, beta=0 if first else 1)
        return
    product = torch.mm(left, right)
    total.copy_(product) if first else total.add_(product)


def accumulate_columns(total: Tensor, rows: Tensor, *, first: bool) -> None:
    """The same for the sum of the rows of a matrix."""
    columns = rows.sum(0)
    total.copy_(columns) if first else total.add_(columns)
