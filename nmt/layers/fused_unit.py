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

from nmt.layers import steps
from nmt.layers.precision import state_type


def recur(
    projected: Tensor,
    initial: Tensor,
    U_gates: Tensor,
    U: Tensor,
    real: Tensor | None,
    kind: torch.dtype,
) -> Tensor:
    """The states after each step (D, S, B, H) of D gated networks run side by side.

    Takes the terms that depend on no state (D, S, B, 3H), the first states (D, B, H), the stacked
    matrices `U_gates` (D, 2H, H) and `U` (D, H, H), optionally 1 at real and 0 at padded positions
    (D, S, B, 1), and the type of products.
    """
    return FusedUnit.apply(projected, initial, U_gates, U, real, kind)


class FusedUnit(Function):
    """See `recur`."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        initial: Tensor,
        U_gates: Tensor,
        U: Tensor,
        real: Tensor | None,
        kind: torch.dtype,
    ) -> Tensor:
        directions, length, batch, hidden = *projected.shape[:3], U.shape[2]
        wide = state_type(kind)
        with torch.autocast(projected.device.type, enabled=False):
            projected, U_gates, U = projected.to(kind), U_gates.to(kind), U.to(kind)
            states = projected.new_empty(directions, length + 1, batch, hidden, dtype=wide)
            states[:, 0] = initial
            gates = projected.new_empty(length, directions, batch, 2 * hidden, dtype=wide)
            candidates = projected.new_empty(length, directions, batch, hidden, dtype=wide)
            resets = projected.new_empty(directions, length, batch, hidden)
            for t in range(length):
                state, wanted = states[:, t], projected[:, t]
                gates[t] = torch.baddbmm(
                    wanted[..., : 2 * hidden], state.to(kind), U_gates.transpose(1, 2)
                )
                steps.open_gates(
                    gates[t], state, resets[:, t], None if real is None else real[:, t]
                )
                candidates[t] = torch.baddbmm(
                    wanted[..., 2 * hidden :], resets[:, t], U.transpose(1, 2)
                )
                steps.next_state(gates[t], candidates[t], state, states[:, t + 1])
        ctx.save_for_backward(states, gates, candidates, resets, U_gates, U)
        ctx.kind = kind
        return states[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_states: Tensor) -> tuple[Tensor | None, ...]:
        states, gates, candidates, resets, U_gates, U = ctx.saved_tensors
        kind = ctx.kind
        length, directions, batch, hidden = candidates.shape
        with torch.autocast(states.device.type, enabled=False):
            grad = states.new_empty(directions, length, batch, 3 * hidden, dtype=kind)
            grad_state = torch.zeros_like(states[:, 0])
            for t in reversed(range(length)):
                state = states[:, t]
                grad_state += grad_states[:, t]
                steps.candidate_backward(grad_state, gates[t], candidates[t], state, grad[:, t])
                grad_reset = torch.bmm(grad[:, t, :, 2 * hidden :], U)
                grad_state = steps.reset_backward(
                    grad_reset, grad_state, gates[t], state, grad[:, t]
                )
                grad_state += torch.bmm(grad[:, t, :, : 2 * hidden], U_gates)
            flat = grad.flatten(1, 2).transpose(1, 2)  # (D, 3H, S·B)
            before = states[:, :-1].to(kind).flatten(1, 2)
            grad_U_gates = torch.bmm(flat[:, : 2 * hidden], before)
            grad_U = torch.bmm(flat[:, 2 * hidden :], resets.flatten(1, 2))
        return grad, grad_state, grad_U_gates, grad_U, None, None
