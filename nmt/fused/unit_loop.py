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
from nmt.fused.gpu.captured import Tensors, cast
from nmt.fused.gpu.graphs import SENTENCES, GraphCache, GraphReplay, rounded
from nmt.fused.steps import Product, by_step, total
from nmt.layers.precision import accumulate_dtype


def run_units(
    projected: Tensor,
    initial: Tensor,
    U_gates: Tensor,
    U: Tensor,
    real: Tensor | None,
    dtype: torch.dtype,
    graph_cache: GraphCache | None = None,
) -> Tensor:
    """The states after each step (D, S, B, H) of D gated units run side by side.

    Takes the terms that depend on no state (D, S, B, 3H), the first states (D, B, H), the stacked
    matrices `U_gates` (D, 2H, H) and `U` (D, H, H), optionally 1 at real and 0 at padded positions
    (D, S, B, 1), and the type of products. With `graph_cache` the loops are replayed from there.
    """
    if not torch.is_grad_enabled():
        graph_cache = None  # inside the function it always is; inference tensors must not stay
    return UnitLoop.apply(projected, initial, U_gates, U, real, dtype, graph_cache)


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
        graph_cache: GraphCache | None,
    ) -> Tensor:
        inputs = (projected, initial, U_gates, U, real)
        types = (dtype, None, dtype, dtype, None)
        directions, length, batch, hidden = *projected.shape[:3], U.shape[2]
        ctx.replay = None
        ctx.shapes = [projected.shape, initial.shape, U_gates.shape, U.shape]
        ctx.types = [projected.dtype, initial.dtype, U_gates.dtype, U.dtype]
        with torch.autocast(projected.device.type, enabled=False):
            if graph_cache is not None and length and any(ctx.needs_input_grad):
                padded, rows = rounded(length), rounded(batch, SENTENCES)
                shapes = [
                    (directions, padded, rows, 3 * hidden), (directions, rows, hidden),
                    *ctx.shapes[2:], (directions, padded, rows, 1),
                ]  # fmt: skip
                ctx.replay = graph_cache.replay(
                    run_forward, run_backward, inputs, shapes, 1, types=types
                )
            if ctx.replay is not None:
                return ctx.replay.outputs([(directions, length, batch, hidden)])[0]
            (states,), saved = run_forward(*cast(inputs, types))
        ctx.save_for_backward(*saved)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_states: Tensor) -> tuple[Tensor | None, ...]:
        replay: GraphReplay | None = ctx.replay
        with torch.autocast(grad_states.device.type, enabled=False):
            if replay is None:
                grads = run_backward(ctx.saved_tensors, (grad_states,))
            else:
                grads = replay.backward((grad_states,), ctx.shapes, ctx.types)
        return *grads, None, None, None


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
            for_gates[t], [Product(compute_state[t], U_gates)], state[t], gate[t], reset[t],
            None if here is None else here[t],
        )  # fmt: skip
        steps.next_state(
            for_candidate[t], [Product(reset[t], U)], state[t], gate[t], candidate[t], state[t + 1],
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
    later: Tensor | Product = torch.zeros_like(grad_state, dtype=resets.dtype)
    for t in reversed(range(length)):
        steps.candidate_backward(
            grad_state, later, upstream_state[t], gate[t], candidate[t], state[t], grad_unit[t]
        )
        from_reset = Product(grad_candidate[t], U)
        steps.reset_backward(grad_state, from_reset, gate[t], state[t], grad_unit[t])
        later = Product(grad_gates[t], U_gates)
    flat = grad.flatten(1, 2).transpose(1, 2)  # (D, 3H, S·B)
    grad_U_gates = torch.bmm(flat[:, : 2 * hidden], compute_states[:, :-1].flatten(1, 2))
    grad_U = torch.bmm(flat[:, 2 * hidden :], resets.flatten(1, 2))
    return grad, grad_state.add_(total([later])), grad_U_gates, grad_U
