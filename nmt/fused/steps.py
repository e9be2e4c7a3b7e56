"""One step of a recurrence, the likelihood of words, and their derivatives, in PyTorch operations.

`nmt.fused.gpu.kernels` offers the same functions as Triton kernels. Every function writes into
buffers that the caller owns.

B batch, H state, R rows (target words), M maxout, V vocabulary. The leading `...` is (directions, B)
or (B). A stacked tensor holds the parts of z, r, s̃ in that order.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.fused.attention import attention_steps as attention_steps
from nmt.layers.precision import accumulate_dtype

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward


def open_gates(
    state: Tensor,
    projected: Tensor,
    added: Tensor,
    gates: Tensor,
    reset: Tensor,
    real: Tensor | None,
) -> None:
    """Writes [z, r] = σ(projected + added) (..., 2H) into `gates` and r∘s (..., H) into `reset`.

    Where `real` (..., 1) is 0 the update gate is 0, which freezes the state exactly.
    """
    torch.add(projected, added, out=gates).sigmoid_()
    z, r = gates.chunk(2, -1)
    if real is not None:
        z.mul_(real)
    torch.mul(r, state, out=reset)


def next_state(
    state: Tensor,
    projected: Tensor,
    added: Tensor,
    gates: Tensor,
    candidate: Tensor,
    after: Tensor,
    copy: Tensor | None,
) -> None:
    """Writes s̃ = tanh(projected + added) into `candidate` and (1 - z)∘s + z∘s̃ into `after`.

    All are (..., H). `copy` gets a copy of the new state in the type of products.
    """
    torch.add(projected, added, out=candidate).tanh_()
    torch.lerp(state, candidate, gates.chunk(2, -1)[0], out=after)
    if copy is not None:
        copy.copy_(after)


def candidate_backward(
    grad_state: Tensor,
    term: Tensor,
    upstream: Tensor,
    gates: Tensor,
    candidate: Tensor,
    state: Tensor,
    grad: Tensor,
) -> None:
    """Completes the gradient of s', and writes those of the pre-activations of z and s̃.

    `term` and `upstream` (..., H), what reaches s' through the products of the next step and from
    outside, are added to `grad_state` in place; z and s̃ go into `grad` (..., 3H).
    """
    grad_state.add_(term).add_(upstream)
    z = gates.chunk(2, -1)[0]
    grad_z, _, grad_candidate = grad.chunk(3, -1)
    grad_candidate.copy_(tanh_backward(grad_state * z, candidate))
    grad_z.copy_(sigmoid_backward((candidate - state).mul_(grad_state), z))


def reset_backward(
    grad_state: Tensor, grad_reset: Tensor, gates: Tensor, state: Tensor, grad: Tensor
) -> None:
    """From the gradient of r∘s (..., H), `grad_reset`: writes that of r's pre-activation into `grad`.

    `grad_state`, the gradient of s', becomes what reaches s without passing U_z and U_r:
    (1 - z)∘grad_state + r∘grad_reset.
    """
    z, r = gates.chunk(2, -1)
    grad.chunk(3, -1)[1].copy_(sigmoid_backward(grad_reset * state, r))
    grad_state.addcmul_(z, grad_state, value=-1).addcmul_(r, grad_reset)


def word_nll(
    rows: Tensor,
    W_o: Tensor,
    bias: Tensor,
    words: Tensor,
    weight: Tensor | None,
    nll: Tensor,
    memory: Tensor | None,
    *,
    with_gradient: bool,
) -> Tensor | None:
    """Writes weight · -log p(word) (R) into `nll`; gives the gradient of its sum by the logits (R, V).

    Takes readouts (R, M) and W_o (V, M) in the type of products, bias (V), words (R), weights (R) or
    None for 1, and optionally memory for the logits (r, V), r >= R, in which the gradient is given.
    The gradient is in the type of products, and None without `with_gradient`.

    The logits are in the type of products as well: in bf16 one of 8 to 16 is off by up to 0.03.
    """
    word, bias = words.unsqueeze(1), bias.to(rows.dtype)
    memory = None if memory is None else memory[: len(rows)]
    logits = torch.addmm(bias, rows, W_o.t(), out=memory)
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


def aligned(rows: int, columns: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """An empty matrix whose rows begin at multiples of 16 bytes, as a GPU reads them best."""
    entries = 16 // dtype.itemsize
    memory = torch.empty(rows, -(-columns // entries) * entries, device=device, dtype=dtype)
    return memory[:, :columns]
