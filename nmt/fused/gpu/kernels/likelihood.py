"""A Triton kernel for -log p of given words and the gradient of the logits.

Each program (an instance of the kernel) handles the logits of one target word. It has 1,024 threads, so an H100
runs only two programs per multiprocessor. The logits of all running programs (32 MB with 30,000 words in the
vocabulary) then stay in the L2 cache until the gradient is computed. Logits are float32 even for 16-bit inputs.

Sizes: R = rows (target words), M = maxout units, V = vocabulary.
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import torch
import triton
import triton.language as tl

WORDS = 4096  # number of vocabulary words that a program handles per iteration
WARPS = 16 if torch.version.hip else 32  # 1,024 threads, the maximum of a program


@triton.jit(do_not_specialize_on_alignment=["words", "weight", "nll"])
def word_nll_kernel(
    logits, bias, words, weight, nll, grad, VOCABULARY: tl.constexpr, WORDS: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    logits += row.to(tl.int64) * VOCABULARY
    # Each of the `WORDS` lanes computes a maximum and a sum, which are combined after the loop. The
    # initial maximum is finite, because exp(-inf + inf) would be NaN.
    maximum = tl.full((WORDS,), -3e38, tl.float32)
    sums = tl.zeros((WORDS,), tl.float32)
    for first in range(0, VOCABULARY, WORDS):
        n = first + tl.arange(0, WORDS)
        x = tl.load(logits + n, mask=n < VOCABULARY, other=0)
        x += tl.load(bias + n, mask=n < VOCABULARY, other=0)
        x = tl.where(n < VOCABULARY, x, float("-inf"))
        new_maximum = tl.maximum(maximum, x)
        sums = sums * tl.exp(maximum - new_maximum) + tl.exp(x - new_maximum)
        maximum = new_maximum
    row_maximum = tl.max(maximum, 0)
    log_sum = row_maximum + tl.log(tl.sum(sums * tl.exp(maximum - row_maximum), 0))
    word = tl.load(words + row)
    row_nll = log_sum - (tl.load(logits + word) + tl.load(bias + word))
    factor = 1.0
    if weight is not None:
        factor = tl.load(weight + row)
    tl.store(nll + row, row_nll * factor)
    if grad is not None:
        # all threads must read the target's logit first, because `grad` can be the same buffer as `logits`
        tl.debug_barrier()
        grad += row.to(tl.int64) * VOCABULARY
        for first in range(0, VOCABULARY, WORDS):
            n = first + tl.arange(0, WORDS)
            x = tl.load(logits + n, mask=n < VOCABULARY, other=0)
            x += tl.load(bias + n, mask=n < VOCABULARY, other=0)
            x = tl.where(n < VOCABULARY, x, float("-inf"))
            p = tl.exp(x - log_sum)
            p = tl.where(n == word, p - 1, p)
            tl.store(grad + n, p * factor, mask=n < VOCABULARY)


def word_nll(rows, W_o, bias, words, weight, nll, buffer, *, with_gradient):
    """See `nmt.fused.steps.word_nll`. Does not use `buffer`, because the logits are always float32 here."""
    logits = rows.new_empty(len(rows), len(W_o), dtype=torch.float32)
    if rows.is_cuda:
        torch.mm(rows, W_o.t(), out_dtype=torch.float32, out=logits)
    else:  # Triton's interpreter
        torch.mm(rows.float(), W_o.t().float(), out=logits)
    grad = None
    if with_gradient:
        is_float32 = rows.dtype == torch.float32  # if so, the gradient overwrites the logits
        grad = logits if is_float32 else torch.empty_like(logits, dtype=rows.dtype)
    word_nll_kernel[(len(rows),)](
        logits, bias.float(), words, weight, nll, grad, VOCABULARY=len(W_o), WORDS=WORDS,
        num_warps=WARPS,
    )  # fmt: skip
    return grad
