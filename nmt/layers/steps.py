"""One step of a recurrence and its derivative, without autograd: what a kernel would replace.

Every function writes into buffers that the caller owns. Matrix products stay with the caller,
because they differ between a batch of directions (encoder) and one network (decoder).

B batch, S source length, H state. The leading `...` is (directions, B) or (B).
"""

from __future__ import annotations

import torch
from torch import Tensor

sigmoid_backward = torch.ops.aten.sigmoid_backward
tanh_backward = torch.ops.aten.tanh_backward
softmax_backward = torch.ops.aten._softmax_backward_data


def open_gates(gates: Tensor, state: Tensor, reset: Tensor, real: Tensor | None = None) -> None:
    """Turns pre-activations into gates [z, r] (..., 2H) in place; writes r∘s into `reset` (..., H).

    Where `real` (..., 1) is 0 the update gate is 0, which freezes the state exactly.
    """
    gates.sigmoid_()
    z, r = gates.chunk(2, -1)
    if real is not None:
        z.mul_(real)
    reset.copy_(r * state) if reset.dtype != state.dtype else torch.mul(r, state, out=reset)


def next_state(gates: Tensor, candidate: Tensor, state: Tensor, out: Tensor) -> None:
    """Turns the pre-activation of s̃ into s̃ in place; writes (1 - z)∘s + z∘s̃ into `out` (..., H)."""
    torch.lerp(state, candidate.tanh_(), gates.chunk(2, -1)[0], out=out)


def candidate_backward(
    grad_state: Tensor, gates: Tensor, candidate: Tensor, state: Tensor, grad: Tensor
) -> None:
    """Writes the gradients before the nonlinearity of z and s̃ into `grad` (..., 3H) = [z, r, s̃]."""
    z = gates.chunk(2, -1)[0]
    grad_z, _, grad_candidate = grad.chunk(3, -1)
    grad_candidate.copy_(tanh_backward(grad_state * z, candidate))
    grad_z.copy_(sigmoid_backward((candidate - state).mul_(grad_state), z))


def reset_backward(
    grad_reset: Tensor, grad_state: Tensor, gates: Tensor, state: Tensor, grad: Tensor
) -> Tensor:
    """From the gradient of r∘s: writes the one of r's pre-activation into `grad` (..., 3H).

    Returns the gradient that reaches s without passing U_z and U_r: (1 - z)∘grad_state +
    r∘grad_reset.
    """
    z, r = gates.chunk(2, -1)
    grad.chunk(3, -1)[1].copy_(sigmoid_backward(grad_reset * state, r))
    return torch.addcmul(grad_state, z, grad_state, value=-1).addcmul_(r, grad_reset)


def attend(
    scores: Tensor, padding: Tensor, annotations: Tensor, weights: Tensor, context: Tensor
) -> None:
    """Masks scores (B, S) in place; writes softmax to `weights` and c to `context` (B, A)."""
    scores.masked_fill_(padding, -torch.inf)
    torch.softmax(scores, 1, out=weights)
    torch.bmm(weights.to(annotations.dtype).unsqueeze(1), annotations, out=context.unsqueeze(1))


def attend_backward(grad_context: Tensor, annotations: Tensor, weights: Tensor) -> Tensor:
    """The gradient of the scores (B, S) from the one of the context (B, A)."""
    grad_weights = torch.bmm(annotations, grad_context.unsqueeze(2)).squeeze(2)
    return softmax_backward(grad_weights.to(weights.dtype), weights, 1, weights.dtype)
