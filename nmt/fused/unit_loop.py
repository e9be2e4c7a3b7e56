"""The gated unit over a whole sentence with a backward of its own (`recurrence=fused`).

The loop back carries the gradient of the state alone; each weight gradient is one product after it.

D directions, S steps, B batch, H state.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nmt.fused.gpu import backend
from nmt.fused.steps import by_step
from nmt.layers.precision import accumulate_dtype

Tensors = tuple[Tensor, ...]


def run_units(
    projected: Tensor,
    initial: Tensor,
    U_gates: Tensor,
    U: Tensor,
    real: Tensor | None,
    dtype: torch.dtype,
) -> Tensor:
    """The states after each step (D, S, B, H) of D gated units run side by side.

    Takes the terms that depend on no state (D, S, B, 3H), the first states (D, B, H), the stacked
    matrices `U_gates` (D, 2H, H) and `U` (D, H, H), optionally 1 at real and 0 at padded positions
    (D, S, B, 1), and the type of products.
    """
    states: Tensor = UnitLoop.apply(projected, initial, U_gates, U, real, dtype)
    return states


class UnitLoop(Function):
    """See `run_units`."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        initial: Tensor,
        U_gates: Tensor,
        U: Tensor,
        real: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor:
        with torch.autocast(projected.device.type, enabled=False):
            (states,), saved = run_forward(
                projected.to(dtype), initial, U_gates.to(dtype), U.to(dtype), real
            )
        ctx.save_for_backward(*saved)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_states: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(grad_states.device.type, enabled=False):
            grads = run_backward(ctx.saved_tensors, (grad_states,))
        return *grads, None, None


def run_forward(
    projected: Tensor, initial: Tensor, U_gates: Tensor, U: Tensor, real: Tensor | None
) -> tuple[Tensors, Tensors]:
    """The loop: (states (D, S, B, H),) and what its derivative needs."""
    steps = backend.steps_for(projected)
    dtype = projected.dtype
    accumulate = accumulate_dtype(dtype)
    directions, length, batch, hidden = *projected.shape[:3], U.shape[2]
    new = projected.new_empty
    states = new(directions, length + 1, batch, hidden, dtype=accumulate)
    states[:, 0] = initial
    compute_states = states if dtype == accumulate else new(directions, length + 1, batch, hidden)
    if compute_states is not states:
        compute_states[:, 0] = initial
    gates = new(length, directions, batch, 2 * hidden, dtype=accumulate)
    candidates = new(length, directions, batch, hidden, dtype=accumulate)
    resets = new(directions, length, batch, hidden)
    U_gates, U = U_gates.transpose(1, 2), U.transpose(1, 2)
    for_gates, for_candidate = by_step(*projected.split([2 * hidden, hidden], 3), dim=1)
    state, compute_state, reset = by_step(states, compute_states, resets, dim=1)
    gate, candidate = by_step(gates, candidates)
    here = None if real is None else real.unbind(1)
    for t in range(length):
        steps.open_gates(
            for_gates[t], torch.bmm(compute_state[t], U_gates), state[t], gate[t], reset[t],
            None if here is None else here[t],
        )  # fmt: skip
        steps.next_state(
            for_candidate[t], torch.bmm(reset[t], U), state[t], gate[t], candidate[t], state[t + 1],
            None if compute_states is states else compute_state[t + 1],
        )  # fmt: skip
    saved = (states, compute_states, gates, candidates, resets, U_gates, U)
    return (states[:, 1:],), saved


def run_backward(saved: Tensors, upstream: Tensors) -> Tensors:
    """Gradients of projected, initial, U_gates and U from that of the states (D, S, B, H)."""
    states, compute_states, gates, candidates, resets, U_gates, U = saved
    grad_states = upstream[0].contiguous()
    length, directions, batch, hidden = candidates.shape
    U_gates, U = U_gates.transpose(1, 2), U.transpose(1, 2)  # as they were given
    grad = resets.new_empty(directions, length, batch, 3 * hidden)
    steps = backend.steps_for(grad)
    grad_state = torch.zeros_like(states[:, 0])
    state, upstream_state, grad_unit, grad_gates, grad_candidate = by_step(
        states, grad_states, grad, *grad.split([2 * hidden, hidden], 3), dim=1
    )
    gate, candidate = by_step(gates, candidates)
    later = torch.zeros_like(grad_state, dtype=resets.dtype)
    for t in reversed(range(length)):
        steps.candidate_backward(
            grad_state, later, upstream_state[t], gate[t], candidate[t], state[t], grad_unit[t]
        )
        from_reset = torch.bmm(grad_candidate[t], U)
        steps.reset_backward(grad_state, from_reset, gate[t], state[t], grad_unit[t])
        later = torch.bmm(grad_gates[t], U_gates)
    flat = grad.flatten(1, 2).transpose(1, 2)  # (D, 3H, S·B)
    grad_U_gates = torch.bmm(flat[:, : 2 * hidden], compute_states[:, :-1].flatten(1, 2))
    grad_U = torch.bmm(flat[:, 2 * hidden :], resets.flatten(1, 2))
    return grad, grad_state.add_(later), grad_U_gates, grad_U
