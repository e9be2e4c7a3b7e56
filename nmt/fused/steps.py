"""PyTorch implementation of a recurrent step, the likelihood of words, and their derivatives.

`nmt.fused.gpu.kernels` implements the same functions in Triton. The step functions write into
buffers that the caller provides.

Sizes: B = batch, H = state, R = rows (target words), M = maxout units, V = vocabulary. A leading `...` is
(directions, B) or (B). Stacked tensors contain z, r and s̃ in this order.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from nmt.fused.attention import attention_steps as attention_steps
from nmt.layers.precision import accumulate_dtype

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


def compute_gates(
    state: Tensor,
    projected: Tensor,
    recurrent: Tensor,
    gates: Tensor,
    reset_state: Tensor,
    real: Tensor | None,
) -> None:
    """Writes [z, r] = σ(projected + recurrent) (..., 2H) to `gates` and r∘s (..., H) to `reset_state`.

    Where `real` (..., 1) is 0 (padding), the update gate is 0, so the state does not change.
    """
    torch.add(projected, recurrent, out=gates).sigmoid_()
    z, r = gates.chunk(2, -1)
    if real is not None:
        z.mul_(real)
    torch.mul(r, state, out=reset_state)


def next_state(
    state: Tensor,
    projected: Tensor,
    recurrent: Tensor,
    gates: Tensor,
    candidate: Tensor,
    new_state: Tensor,
    copy: Tensor | None,
) -> None:
    """Writes s̃ = tanh(projected + recurrent) to `candidate` and s' = (1 - z)∘s + z∘s̃ to `new_state`.

    All tensors are (..., H), except `gates` (..., 2H). `copy` receives s' in the compute dtype.
    """
    torch.add(projected, recurrent, out=candidate).tanh_()
    torch.lerp(state, candidate, gates.chunk(2, -1)[0], out=new_state)
    if copy is not None:
        copy.copy_(new_state)


def candidate_backward(
    grad_state: Tensor,
    from_next: Tensor,
    upstream: Tensor,
    gates: Tensor,
    candidate: Tensor,
    state: Tensor,
    grad: Tensor,
) -> None:
    """Adds `from_next` and `upstream` to `grad_state` (..., H), the gradient of s'.

    `from_next` is the gradient through the matrix products of the next step. `upstream` is the gradient
    from outside the loop. Writes the pre-activation gradients of z and s̃ to `grad` (..., 3H).
    """
    grad_state.add_(from_next).add_(upstream)
    z = gates.chunk(2, -1)[0]
    grad_z, _, grad_candidate = grad.chunk(3, -1)
    grad_candidate.copy_(tanh_backward(grad_state * z, candidate))
    grad_z.copy_(sigmoid_backward((candidate - state).mul_(grad_state), z))


def reset_backward(
    grad_state: Tensor, grad_reset_state: Tensor, gates: Tensor, state: Tensor, grad: Tensor
) -> None:
    """Writes the gradient of the pre-activation of r to `grad`.

    `grad_reset_state` (..., H) is the gradient of r∘s. `grad_state` is the gradient of s'. `grad_state`
    becomes the sum (1 - z)∘grad_state + r∘grad_reset_state, which is one part of the gradient of s.
    The caller adds the other parts, which pass through U_z, U_r and the attention.
    """
    z, r = gates.chunk(2, -1)
    grad.chunk(3, -1)[1].copy_(sigmoid_backward(grad_reset_state * state, r))
    grad_state.addcmul_(z, grad_state, value=-1).addcmul_(r, grad_reset_state)


def word_nll(
    rows: Tensor,
    W_o: Tensor,
    bias: Tensor,
    words: Tensor,
    weight: Tensor | None,
    nll: Tensor,
    buffer: Tensor | None,
    *,
    with_gradient: bool,
) -> Tensor | None:
    """Writes weight · -log p(word) (R) to `nll`.

    Takes readouts `rows` (R, M), W_o (V, M), bias (V), words (R) and `weight` (R), which is None if all weights are 1.
    `buffer` is memory for at least R x V logits. The gradient overwrites the logits. If `with_gradient`,
    returns the gradient of the sum of `nll` with respect to the logits (R, V).

    Readouts, W_o, logits and gradient have the compute dtype. A bf16 logit between 8 and 16 has an error of up to 0.03.
    """
    word = words.unsqueeze(1)
    bias = bias.to(rows.dtype)
    buffer = None if buffer is None else buffer[: len(rows)]
    logits = torch.addmm(bias, rows, W_o.t(), out=buffer)
    grad = None
    if not with_gradient or logits.is_cuda:
        nll.copy_(negative_log_likelihood(logits, word))
    if with_gradient:
        grad = torch.softmax(logits, 1, out=logits)
        if not logits.is_cuda:
            # The NLL comes from the softmax, because a second pass over the logits would take as long
            # as the matrix product that computes them. If p is tiny, the NLL is recomputed from logits.
            p = grad.gather(1, word).to(nll.dtype).squeeze(1)
            torch.neg(p.log(), out=nll)
            if (tiny := p < 1e-30).any():
                recomputed = torch.addmm(bias, rows[tiny], W_o.t())
                nll[tiny] = negative_log_likelihood(recomputed, word[tiny])
        # The gradient of the target word's logit is p - 1. In 16 bits, a p near 1 is rounded to 1. On
        # a GPU, p - 1 is therefore computed from the float32 NLL, which comes from the logits. On a
        # CPU, the NLL comes from p, so p - 1 is 0 if p was rounded to 1.
        # assigns by index, because `scatter_` would copy all logits twice
        row = torch.arange(len(words), device=words.device)
        grad[row, words] = torch.expm1(-nll).to(grad.dtype)
        if weight is not None:
            grad *= weight.unsqueeze(1)
    if weight is not None:
        nll.mul_(weight)
    return grad


def negative_log_likelihood(logits: Tensor, word: Tensor) -> Tensor:
    """Returns -log p(word) (R) for logits (R, V) and words (R, 1), in at least float32."""
    logits = logits.to(accumulate_dtype(logits.dtype))
    return (logits.logsumexp(1, keepdim=True) - logits.gather(1, word)).squeeze(1)


def pad_sizes(factor: Tensor, *, rows: bool = False) -> Tensor:
    """Pads dimension N of a matrix (..., M, N) with zeros, and also dimension M if `rows` is True.

    The padded sizes are multiples of `size_multiple`.
    """
    multiple = size_multiple(factor.device)
    columns, below = -factor.shape[-1] % multiple, rows * (-factor.shape[-2] % multiple)
    return pad(factor, (0, columns, 0, below)) if columns or below else factor


def size_multiple(device: torch.device) -> int:
    """Returns the number that matrix sizes should be a multiple of: 8 on a GPU, 1 on a CPU.

    cuBLAS has its fastest 16-bit kernels only for multiples of 8. Of the paper's sizes, 500 maxout units,
    620 entries of an embedding and 30,002 words are not multiples of 8.
    """
    return 1 if device.type == "cpu" else 8
