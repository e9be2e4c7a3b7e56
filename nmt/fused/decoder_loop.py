"""The attending decoder over a whole target sentence with its own backward (`recurrence=fused`).

The loop back carries the gradient of the state alone; each weight gradient is one product after it,
and so is the gradient of the annotations. Nothing of size B x S x N is kept for a step.

T target length, S source length, B batch, H state, A annotation, Q query, N key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from nmt.fused.gpu import backend
from nmt.fused.steps import by_step
from nmt.fused.unit_loop import Tensors, run_units
from nmt.layers.memory import Memory
from nmt.layers.precision import accumulate_dtype, compute_dtype


class DecoderTrace(NamedTuple):
    """What the decoder computed at each step of a given target sentence, time first."""

    states: Tensor  # (T, B, H) s_0 .. s_{T-1}
    contexts: Tensor  # (T, B, A) c_1 .. c_T; (B, A) where all are the same
    weights: Tensor | None  # (T, B, S), without gradient; None for a fixed context
    log_normaliser: Tensor | None  # (T, B), without gradient


def run_with_attention(
    projected: Tensor,
    initial: Tensor,
    memory: Memory,
    W_a: Tensor,
    scoring: nn.Module,
    unit: Any,
) -> DecoderTrace:
    """Runs c_i = attention(s_{i-1}), s_i = f(s_{i-1}, word_i, c_i) for i = 1..T.

    Takes the words' terms (T-1, B, 3H) (s_T is never read), s_0 (B, H), the memory, the matrix W_a
    (Q, H) and the scoring function of the attention, and the `GatedUnit` f.
    """
    return DecoderTrace(
        *DecoderLoop.apply(
            projected, initial, memory.annotations, memory.keys, memory.mask,
            W_a, unit.U_gates, unit.U, unit.C, scoring, compute_dtype(W_a),
            *scoring.parameters(),
        )
    )  # fmt: skip


def run_with_fixed_context(
    projected: Tensor, initial: Tensor, memory: Memory, unit: Any
) -> DecoderTrace:
    """Runs s_i = f(s_{i-1}, word_i, c) for i = 1..T, with c = summary; see `run_with_attention`."""
    projected = projected + linear(memory.summary, unit.C)
    states = run_units(
        projected.unsqueeze(0), initial.unsqueeze(0),
        unit.U_gates.unsqueeze(0), unit.U.unsqueeze(0), None, compute_dtype(unit.U),
    )[0]  # fmt: skip
    states = torch.cat([initial.unsqueeze(0), states])
    return DecoderTrace(states, memory.summary, None, None)


class DecoderLoop(Function):
    """See `run_with_attention`."""

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        initial: Tensor,
        annotations: Tensor,
        keys: Tensor,
        mask: Tensor,
        W_a: Tensor,
        U_gates: Tensor,
        U: Tensor,
        C: Tensor,
        scoring: nn.Module,
        dtype: torch.dtype,
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.scoring = scoring
        with torch.autocast(projected.device.type, enabled=False):
            from_state = torch.cat([W_a, U_gates])  # [W_a; U_z; U_r] as one matrix
            outputs, saved = run_forward(
                scoring, projected.to(dtype), initial, annotations.to(dtype), keys,
                from_state.to(dtype), U.to(dtype), C.to(dtype), mask,
            )  # fmt: skip
        ctx.save_for_backward(*saved)
        ctx.mark_non_differentiable(*outputs[2:])
        return outputs

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_states: Tensor, grad_contexts: Tensor, *_: Tensor
    ) -> tuple[Tensor | None, ...]:
        with torch.autocast(grad_states.device.type, enabled=False):
            grads = run_backward(ctx.scoring, ctx.saved_tensors, (grad_states, grad_contexts))
        projected, initial, annotations, keys, from_state, U, C, *parameters = grads
        query = len(from_state) - 2 * len(U)
        return (
            projected, initial, annotations, keys, None,
            from_state[:query], from_state[query:], U, C,
            None, None, *parameters,
        )  # fmt: skip


def run_forward(
    scoring: nn.Module,
    projected: Tensor,
    initial: Tensor,
    annotations: Tensor,
    keys: Tensor,
    from_state: Tensor,
    U: Tensor,
    C: Tensor,
    mask: Tensor,
) -> tuple[Tensors, Tensors]:
    """The loop: the fields of `DecoderTrace`, and what its derivative needs."""
    steps = backend.steps_for(projected, keys, annotations)
    length, (batch, source) = projected.shape[0] + 1, mask.shape
    hidden, dtype = U.shape[0], projected.dtype
    size = len(from_state) - 2 * hidden  # of a query
    accumulate = accumulate_dtype(dtype)
    attention = steps.attention_steps(scoring, keys, annotations, mask)
    new = projected.new_empty
    states = new(length, batch, hidden, dtype=accumulate)
    compute_states = states if dtype == accumulate else new(length, batch, hidden)
    states[0] = initial
    if compute_states is not states:
        compute_states[0] = initial
    products = new(length, batch, size + 2 * hidden)
    weights = new(length, batch, source, dtype=accumulate)
    log_normaliser = new(length, batch, dtype=accumulate)
    contexts = new(length, batch, annotations.shape[2])
    gates = new(length - 1, batch, 2 * hidden, dtype=accumulate)
    candidates = new(length - 1, batch, hidden, dtype=accumulate)
    resets = new(length - 1, batch, hidden)
    from_state_t, U_t = from_state.t(), U.t()
    C_gates, C_candidate = C.t().split([2 * hidden, hidden], 1)
    state, compute_state, product, query, from_gates = by_step(
        states, compute_states, products, *products.split([size, 2 * hidden], 2)
    )
    weight, normaliser, context = by_step(weights, log_normaliser, contexts)
    for_gates, for_candidate = by_step(*projected.split([2 * hidden, hidden], 2))
    gate, candidate, reset = by_step(gates, candidates, resets)
    for i in range(length):
        torch.mm(compute_state[i], from_state_t, out=product[i])
        attention.attend(query[i], weight[i], normaliser[i], context[i])
        if i + 1 == length:
            break
        added = torch.addmm(from_gates[i], context[i], C_gates)
        steps.open_gates(for_gates[i], added, state[i], gate[i], reset[i])
        added = torch.addmm(torch.mm(reset[i], U_t), context[i], C_candidate)
        steps.next_state(
            for_candidate[i], added, state[i], gate[i], candidate[i], state[i + 1],
            None if compute_states is states else compute_state[i + 1],
        )  # fmt: skip
    saved = (
        annotations, attention.keys, mask, from_state, U, C, products[..., :size],
        states, compute_states, weights, contexts, gates, candidates, resets,
    )  # fmt: skip
    return (compute_states, contexts, weights, log_normaliser), saved


def run_backward(scoring: nn.Module, saved: Tensors, upstream: Tensors) -> Tensors:
    """Gradients of the inputs of `run_forward` but the mask, and of the score's parameters."""
    annotations, keys, mask, from_state, U, C, queries = saved[:7]
    states, compute_states, weights, contexts, gates, candidates, resets = saved[7:]
    grad_states, grad_contexts = (x.contiguous() for x in upstream)
    length, batch, alignment = queries.shape
    hidden, dtype = U.shape[0], U.dtype
    # one row holds [query, z, r, s̃]: the first three are what came from the state in one product
    grad = contexts.new_empty(length, batch, alignment + 3 * hidden)
    steps = backend.steps_for(grad, keys, annotations)
    attention = steps.attention_steps(scoring, keys, annotations, mask)
    grad[-1, :, alignment:] = 0
    grad_queries, grad_gates = grad.split([alignment, 3 * hidden], 2)
    grad_products, grad_candidates = grad.split([alignment + 2 * hidden, hidden], 2)
    grad_scores = torch.empty_like(weights)
    grad_contexts = grad_contexts.to(dtype, copy=True)
    grad_state = torch.zeros_like(states[0])
    state, gate, candidate, query, weight = by_step(states, gates, candidates, queries, weights)
    upstream_state, grad_context, grad_score = by_step(grad_states, grad_contexts, grad_scores)
    grad_query, grad_gate, grad_product, grad_candidate = by_step(
        grad_queries, grad_gates, grad_products, grad_candidates
    )
    for i in reversed(range(length)):
        if i + 1 < length:
            later = torch.mm(grad_product[i + 1], from_state)
            steps.candidate_backward(
                grad_state, later, upstream_state[i + 1], gate[i], candidate[i], state[i],
                grad_gate[i],
            )  # fmt: skip
            from_reset = torch.mm(grad_candidate[i], U)
            steps.reset_backward(grad_state, from_reset, gate[i], state[i], grad_gate[i])
            grad_context[i].addmm_(grad_gate[i], C)
        attention.backward(grad_context[i], query[i], weight[i], grad_score[i], grad_query[i])
    grad_state.add_(torch.mm(grad_product[0], from_state)).add_(upstream_state[0])
    grad_from_state = torch.mm(grad_products.flatten(0, 1).t(), compute_states.flatten(0, 1))
    grad_U = torch.mm(grad_candidates[:-1].flatten(0, 1).t(), resets.flatten(0, 1))
    grad_C = torch.mm(grad_gates[:-1].flatten(0, 1).t(), contexts[:-1].flatten(0, 1))
    # (B, S, T) x (B, T, A)
    grad_annotations = torch.bmm(weights.permute(1, 2, 0).to(dtype), grad_contexts.transpose(0, 1))
    grad_keys, *grad_parameters = attention.gradients(grad_scores, queries)
    return (
        grad_gates[:-1], grad_state, grad_annotations, grad_keys, grad_from_state, grad_U, grad_C,
        *grad_parameters,
    )  # fmt: skip
