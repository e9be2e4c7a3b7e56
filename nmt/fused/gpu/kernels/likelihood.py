"""-log p of given words, and the gradient of the logits, as a Triton kernel.

A program computes a row, with so many threads that the rows of all programs (two to a multiprocessor,
32 MB at 30,000 words) fit the L2 cache of an H100, from which they are read for the second time.
Products of 16 bits are written in float32, so that the softmax loses nothing.

R rows (target words), M maxout, V vocabulary.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import torch
import triton
import triton.language as tl

from nmt.fused.steps import aligned

WORDS = 4096  # words of the vocabulary that a program takes at once
WARPS = 16 if torch.version.hip else 32  # 1,024 threads, as many as a program can have


@triton.jit(do_not_specialize_on_alignment=["words", "weight", "nll"])
def word_nll_kernel(
    logits, bias, words, weight, nll, grad,
    VOCABULARY: tl.constexpr, LOGITS_ROW: tl.constexpr, GRAD_ROW: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    logits += row.to(tl.int64) * LOGITS_ROW
    # each lane has a largest logit and a sum of its own; finite, as exp(-inf + inf) would be no number
    largest = tl.full((WORDS,), -3e38, tl.float32)
    sums = tl.zeros((WORDS,), tl.float32)
    # the masks of loads and stores end where a row's memory does, at a multiple of 16 bytes
    for first in range(0, VOCABULARY, WORDS):
        n = first + tl.arange(0, WORDS)
        x = tl.load(logits + n, mask=n < LOGITS_ROW, other=0)
        x += tl.load(bias + n, mask=n < VOCABULARY, other=0)
        x = tl.where(n < VOCABULARY, x, float("-inf"))
        larger = tl.maximum(largest, x)
        sums = sums * tl.exp(largest - larger) + tl.exp(x - larger)
        largest = larger
    of_all = tl.max(largest, 0)
    log_sum = of_all + tl.log(tl.sum(sums * tl.exp(largest - of_all), 0))
    word = tl.load(words + row)
    surprisal = log_sum - (tl.load(logits + word) + tl.load(bias + word))
    factor = 1.0
    if weight is not None:
        factor = tl.load(weight + row)
    tl.store(nll + row, surprisal * factor)
    if grad is not None:
        tl.debug_barrier()  # the gradient may lie where the logit of the right word was read
        grad += row.to(tl.int64) * GRAD_ROW
        # of the right word p - 1, as exact as its NLL
        for first in range(0, VOCABULARY, WORDS):
            n = first + tl.arange(0, WORDS)
            x = tl.load(logits + n, mask=n < LOGITS_ROW, other=0)
            x += tl.load(bias + n, mask=n < VOCABULARY, other=0)
            x = tl.where(n < VOCABULARY, x, float("-inf"))
            p = tl.exp(x - log_sum)
            p = tl.where(n == word, p - 1, p)
            tl.store(grad + n, p * factor, mask=n < GRAD_ROW)


def word_nll(rows, W_o, bias, words, weight, nll, memory, *, with_gradient):
    """See `nmt.fused.steps.word_nll`; the logits are in float32, in memory of their own."""
    logits = aligned(len(rows), len(W_o), rows.device, torch.float32)
    if rows.is_cuda:
        torch.mm(rows, W_o.t(), out_dtype=torch.float32, out=logits)
    else:  # where the kernel is interpreted
        torch.mm(rows.float(), W_o.t().float(), out=logits)
    grad = None
    if with_gradient:  # in the memory of the logits where their type is that of products
        same = rows.dtype == torch.float32
        grad = logits if same else aligned(len(rows), len(W_o), rows.device, rows.dtype)
    word_nll_kernel[(len(rows),)](
        logits, bias.float(), words, weight, nll, grad, VOCABULARY=len(W_o),
        LOGITS_ROW=logits.stride(0), GRAD_ROW=0 if grad is None else grad.stride(0),
        WORDS=WORDS, num_warps=WARPS,
    )  # fmt: skip
    return grad
