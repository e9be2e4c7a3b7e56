"""Gated units over a whole sentence with a backward pass of their own (`recurrence=fused`).

One loop serves an encoder, whose directions run side by side, and a decoder, which may attend before
each step. The loop back carries the gradient of the state alone; each weight gradient is one product
after it, and so is the gradient of the annotations. Nothing of size B x S x N is kept for a step.

T steps, S source length, B batch, H state, A annotation, N query and key. The leading `...` is the
number of directions of an encoder; a decoder has none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nmt.fused.gpu import backend
from nmt.layers.memory import Memory
from nmt.layers.precision import accumulate_dtype, compute_dtype

Tensors = tuple[Tensor, ...]


class Source(NamedTuple):
    """What a decoder attends to, and what its unit does with the context."""

    scoring: nn.Module
    annotations: Tensor  # (B, S, A)
    keys: Tensor  # (B, S, N)
    mask: Tensor  # (B, S)
    C: Tensor  # (3H, A)


def run_units(
    projected: Tensor, initial: Tensor, U_gates: Tensor, U: Tensor, real: Tensor | None = None
) -> Tensor:
    """The states s_1 .. s_T (..., T, B, H) of gated units.

    Takes the terms that depend on no state (..., T, B, 3H), s_0 (..., B, H), the stacked matrices
    `U_gates` (..., 2H, H) and `U` (..., H, H), and optionally 1 at real and 0 at padded positions
    (..., T, B, 1).
    """
    states: Tensor = Loop.apply(compute_dtype(U), real, None, projected, initial, U_gates, U)[0]
    return states


def run_with_attention(
    projected: Tensor, initial: Tensor, memory: Memory, W_a: Tensor, scoring: nn.Module, unit: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Runs c_i = attention(s_{i-1}), s_i = f(s_{i-1}, word_i, c_i) up to s_T and c_{T+1}.

    Takes the words' terms (T, B, 3H), s_0 (B, H), the memory, the matrix W_a (N, H) and the scoring
    function of the attention, and the `GatedUnit` f. Gives the states s_0 .. s_T (T + 1, B, H), the
    contexts (T + 1, B, A), and without gradient the weights (T + 1, B, S) and log Z (T + 1, B).
    """
    from_state = torch.cat([W_a, unit.U_gates])
    results: tuple[Tensor, Tensor, Tensor, Tensor] = Loop.apply(
        compute_dtype(W_a), memory.mask, scoring, projected, initial, from_state, unit.U, unit.C,
        memory.annotations, memory.keys, *scoring.parameters(),
    )  # fmt: skip
    return results


class Loop(Function):
    """See `run_units` and `run_with_attention`, whose mask is of source positions."""

    @staticmethod
    def forward(
        ctx: Any,
        dtype: torch.dtype,
        mask: Tensor | None,
        scoring: nn.Module | None,
        projected: Tensor,
        initial: Tensor,
        from_state: Tensor,  # [U_z; U_r], or [W_a; U_z; U_r] as one matrix
        U: Tensor,
        *attended: Tensor,  # C, annotations, keys, and parameters of the scoring function
    ) -> Tensors:
        ctx.scoring = scoring
        inputs = (projected.to(dtype), initial, from_state.to(dtype), U.to(dtype))
        with torch.autocast(projected.device.type, enabled=False):
            if scoring is None:
                outputs, saved = run_forward(*inputs, real=mask)
            else:
                assert mask is not None
                C, annotations, keys, *_ = attended
                source = Source(scoring, annotations.to(dtype), keys, mask, C.to(dtype))
                outputs, saved = run_forward(*inputs, source=source)
        ctx.save_for_backward(*saved)
        ctx.mark_non_differentiable(*outputs[2:])
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(upstream[0].device.type, enabled=False):
            return None, None, None, *run_backward(ctx.saved_tensors, upstream, ctx.scoring)


def by_step(*tensors: Tensor) -> list[Tensors]:
    """A view of each step of each tensor, which has its steps in its last dimension but two.

    All are made at once: to index a tensor takes as long as an operation on a few hundred entries.
    """
    return [tensor.unbind(-3) for tensor in tensors]


def run_forward(
    projected: Tensor,
    initial: Tensor,
    from_state: Tensor,
    U: Tensor,
    *,
    real: Tensor | None = None,
    source: Source | None = None,
) -> tuple[Tensors, Tensors]:
    """The loop: the results of `run_units` or `run_with_attention`, and what the derivative needs."""
    steps = backend.steps_for(projected)
    *directions, length, batch, _ = projected.shape
    hidden, dtype, accumulate = U.shape[-1], projected.dtype, accumulate_dtype(projected.dtype)
    size = from_state.shape[-2] - 2 * hidden  # of a query
    multiply = torch.bmm if directions else torch.mm
    from_state_t, U_t = from_state.mT, U.mT

    def new(length: int, columns: int, dtype: torch.dtype = dtype) -> Tensor:
        return projected.new_empty(*directions, length, batch, columns, dtype=dtype)

    states = new(length + 1, hidden, accumulate)
    compute_states = states if dtype == accumulate else new(length + 1, hidden)
    for each in (states, compute_states):
        each.select(-3, 0).copy_(initial)
    gates, candidates = new(length, 2 * hidden, accumulate), new(length, hidden, accumulate)
    resets = new(length, hidden)
    state, compute_state, gate, candidate, reset, for_gates, for_candidate = by_step(
        states, compute_states, gates, candidates, resets,
        *projected.split([2 * hidden, hidden], -1),
    )  # fmt: skip
    here = [None] * length if real is None else real.unbind(-3)
    copies = [None] * (length + 1) if compute_states is states else compute_state
    saved: Tensors = from_state, U, states, compute_states, gates, candidates, resets
    outputs: Tensors = (states.narrow(-3, 1, length),)
    products: Any = [None] * length
    if source is not None:
        attention = steps.attention_steps(*source[:4])
        buffer = new(length + 1, size + 2 * hidden)
        queries, contexts = buffer[..., :size], new(length + 1, source.annotations.shape[2])
        weights = new(length + 1, source.mask.shape[1], accumulate)
        log_normaliser = weights.new_empty(length + 1, batch)
        products, query, context, weight = by_step(buffer, queries, contexts, weights)
        normaliser = log_normaliser.unbind(0)
        C_gates, C_candidate = source.C.t().split([2 * hidden, hidden], 1)
        outputs = compute_states, contexts, weights, log_normaliser
        saved += (source.C, source.annotations, attention.keys, source.mask)
        saved += (queries, contexts, weights)
    for i in range(len(products)):
        added = multiply(compute_state[i], from_state_t, out=products[i])
        if source is not None:
            attention.attend(query[i], weight[i], normaliser[i], context[i])
            if i == length:
                break
            added = torch.addmm(added[:, size:], context[i], C_gates)
        steps.open_gates(state[i], for_gates[i], added, gate[i], reset[i], here[i])
        added = multiply(reset[i], U_t)
        if source is not None:
            added = torch.addmm(added, context[i], C_candidate)
        steps.next_state(
            state[i], for_candidate[i], added, gate[i], candidate[i], state[i + 1], copies[i + 1]
        )
    return outputs, saved


def run_backward(
    saved: Tensors, upstream: Tensors, scoring: nn.Module | None = None
) -> list[Tensor]:
    """Gradients of the tensors that `Loop` takes from `projected` on."""
    from_state, U, states, compute_states, gates, candidates, resets, *attended = saved
    *directions, length, batch, hidden = resets.shape
    size = from_state.shape[-2] - 2 * hidden
    multiply = torch.bmm if directions else torch.mm
    # one row holds [query, z, r, s̃]: all but the last came from the state in one product
    rows = length + bool(attended)
    grad = resets.new_empty(*directions, rows, batch, size + 3 * hidden)
    steps = backend.steps_for(grad)
    grad_queries, grad_gates = grad.split([size, 3 * hidden], -1)
    grad_products, grad_candidates = grad.split([size + 2 * hidden, hidden], -1)
    state, gate, candidate, upstream_state = by_step(
        states, gates, candidates, upstream[0].contiguous()
    )
    grad_query, grad_gate, grad_product, grad_candidate = by_step(
        grad_queries, grad_gates, grad_products, grad_candidates
    )
    grad_state = torch.zeros_like(state[0])
    if attended:
        C, annotations, keys, mask, queries, contexts, weights = attended
        attention = steps.attention_steps(scoring, annotations, keys, mask)
        grad_contexts = upstream[1].to(grad.dtype, copy=True)
        grad_scores = torch.empty_like(weights)
        query, weight, grad_context, grad_score = by_step(
            queries, weights, grad_contexts, grad_scores
        )
        grad_gates[-1] = 0
        attention.backward(grad_context[-1], query[-1], weight[-1], grad_score[-1], grad_query[-1])
        later = torch.mm(grad_product[-1], from_state)
    else:
        later = torch.zeros_like(grad_state, dtype=grad.dtype)
    for i in reversed(range(length)):
        # the gradient of s_{i+1}, counted from the end: s_0 is among a decoder's results alone
        steps.candidate_backward(
            grad_state, later, upstream_state[i - length], gate[i], candidate[i], state[i],
            grad_gate[i],
        )  # fmt: skip
        from_reset = multiply(grad_candidate[i], U)
        steps.reset_backward(grad_state, from_reset, gate[i], state[i], grad_gate[i])
        if attended:
            grad_context[i].addmm_(grad_gate[i], C)
            attention.backward(grad_context[i], query[i], weight[i], grad_score[i], grad_query[i])
        later = multiply(grad_product[i], from_state)
    grad_state.add_(later)
    if attended:
        grad_state.add_(upstream_state[0])

    def weight_gradient(grad: Tensor, inputs: Tensor) -> Tensor:
        """Σ over steps and sentences of a gradient (..., rows, B, X) times its input (..., B, Y)."""
        flat = inputs.narrow(-3, 0, grad.shape[-3]).flatten(-3, -2)
        return multiply(grad.flatten(-3, -2).mT, flat)

    units = grad.narrow(-3, 0, length)
    gradients = [
        units[..., size:],
        grad_state,
        weight_gradient(grad_products, compute_states),
        weight_gradient(units[..., size + 2 * hidden :], resets),
    ]
    if attended:
        # (B, S, T) x (B, T, A)
        by_sentence = weights.permute(1, 2, 0).to(grad.dtype), grad_contexts.transpose(0, 1)
        gradients += [
            weight_gradient(units[..., size:], contexts),
            torch.bmm(*by_sentence),
            *attention.gradients(grad_scores, queries),
        ]
    return gradients
