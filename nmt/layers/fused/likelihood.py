"""-log p of given words, and the gradient of the logits, for rows that are handled at once.

`nmt.layers.fused.kernels.likelihood` offers the same functions as a Triton kernel.

R rows (target words), M maxout, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.layers.precision import accumulate_dtype

# Logits that are alive at once. On a CPU they are to stay near the cache, and below the size from
# which every allocation is fresh pages; on a GPU they are to be enough to fill the device.
LOGITS = {"cpu": 2**21}
LOGITS_OF_A_GPU = 2**26


def rows_at_once(device: torch.device, vocabulary: int) -> int:
    """The most rows whose logits are to be alive at once."""
    return max(1, LOGITS.get(device.type, LOGITS_OF_A_GPU) // vocabulary)


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
    *,
    with_gradient: bool,
) -> Tensor | None:
    """Writes weight · -log p(word) (R) into `nll`; gives the gradient of its sum by the logits (R, V).

    Takes readouts (R, M) and W_o (V, M) as `operand`s, bias (V), words (R), and weights (R) or None
    for 1. The gradient is in the type of products, and None without `with_gradient`.

    The logits are in the type of products as well: in bf16 one of 8 to 16 is off by up to 0.03.
    """
    accumulate, word = accumulate_dtype(rows.dtype), words.unsqueeze(1)
    logits = torch.addmm(bias.to(rows.dtype), rows, W_o.t())
    grad = None
    if with_gradient:
        grad = torch.softmax(logits, 1)
    nll.copy_(surprisal(logits, word, accumulate, grad))
    if grad is not None:
        # p - 1 of the right word, as exact as its NLL; 16 bits could not tell p from 1 near there
        grad.scatter_(1, word, torch.expm1(-nll).to(grad.dtype).unsqueeze(1))
        if weight is not None:
            grad *= weight.unsqueeze(1)
    if weight is not None:
        nll.mul_(weight)
    return grad


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
