"""Gated units over a whole sentence with a custom backward pass (`model.recurrence=fused`).

One loop serves the encoder, with one or two directions at once, and the decoder, with or without
attention. The backward loop computes the gradients of states and queries. The gradient of each weight
matrix is one product after the loop, and so is the gradient of the annotations. No B x S x N tensor is saved per step.

T steps, S source length, B batch, H state size, A annotation size, N query and key size. The leading
`...` is the number of directions of an encoder; a decoder has no such dimension.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nmt.fused.backend import Backend
from nmt.layers.memory import Memory
from nmt.layers.precision import accumulate_dtype, compute_dtype

Tensors = tuple[Tensor, ...]


class AttentionInputs(NamedTuple):
    """Inputs of a loop with attention: the arguments of `attention_steps`, and C of the unit."""

    scoring: nn.Module
    annotations: Tensor  # (B, S, A)
    keys: Tensor  # (B, S, N)
    mask: Tensor  # (B, S)
    C: Tensor  # (3H, A)


def run_units(
    backend: Backend,
    projected: Tensor,
    initial: Tensor,
    U_gates: Tensor,
    U: Tensor,
    real: Tensor | None = None,
) -> Tensor:
    """Returns the states s_1 .. s_T (..., T, B, H) of gated units.

    `projected` (..., T, B, 3H) is W e + b of each input word; a fixed context adds C c. `initial`
    (..., B, H) is s_0. `U_gates` (..., 2H, H) and `U` (..., H, H) are the stacked matrices. `real`
    (..., T, B, 1) is 1 at real positions and 0 at padded positions.
    """
    inputs = projected, initial, U_gates, U
    states: Tensor = GatedUnitFunction.apply(backend, compute_dtype(U), real, None, *inputs)[0]
    return states


def run_with_attention(
    backend: Backend,
    projected: Tensor,
    initial: Tensor,
    memory: Memory,
    W_a: Tensor,
    scoring: nn.Module,
    unit: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Runs c_i = attention(s_{i-1}), s_i = f(s_{i-1}, word_i, c_i) up to s_T and c_{T+1}.

    T is the number of target words minus one. `projected` (T, B, 3H) is W e + b of each input word,
    `initial` (B, H) is s_0, and `unit` is the `GatedUnit` f. `W_a` is (N, H).
    Returns the states s_0 .. s_T (T + 1, B, H), the contexts (T + 1, B, A), the weights (T + 1, B, S)
    and log Z (T + 1, B). The weights and log Z are not differentiable.
    """
    state_weight = torch.cat([W_a, unit.U_gates])
    results: tuple[Tensor, Tensor, Tensor, Tensor] = GatedUnitFunction.apply(
        backend, compute_dtype(W_a), memory.mask, scoring, projected, initial, state_weight, unit.U,
        unit.C, memory.annotations, memory.keys, *scoring.parameters(),
    )  # fmt: skip
    return results


class GatedUnitFunction(Function):
    """Computes `run_units` and `run_with_attention`.

    `mask` is the argument `real` of the first, and the source mask of the second.
    """

    @staticmethod
    def forward(
        ctx: Any,
        backend: Backend,
        dtype: torch.dtype,
        mask: Tensor | None,
        scoring: nn.Module | None,
        projected: Tensor,
        initial: Tensor,
        state_weight: Tensor,  # [U_z; U_r], or [W_a; U_z; U_r] as one matrix
        U: Tensor,
        *attended: Tensor,  # C, annotations, keys, and parameters of the scoring function
    ) -> Tensors:
        ctx.backend = backend
        ctx.scoring = scoring
        options: dict[str, Any] = {"real": mask}
        inputs = (projected.to(dtype), initial, state_weight.to(dtype), U.to(dtype))
        with torch.autocast(projected.device.type, enabled=False):
            if scoring is not None:
                assert mask is not None
                C, annotations, keys, *_ = attended
                source = AttentionInputs(scoring, annotations.to(dtype), keys, mask, C.to(dtype))
                options = {"attended": source}
            outputs, saved = backend.run(inputs[0], run_forward, *inputs, **options)
        ctx.save_for_backward(*saved)
        ctx.mark_non_differentiable(*outputs[2:])
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        with torch.autocast(upstream[0].device.type, enabled=False):
            gradients = ctx.backend.run(saved[0], run_backward, saved, upstream, ctx.scoring)
        return None, None, None, None, *gradients


def by_step(*tensors: Tensor) -> list[Tensors]:
    """Unbinds dimension -3 (the steps) of each tensor.

    Call it before the loop. In the loop, each `tensor[i]` would cost as much as an operation on a few
    hundred entries.
    """
    return [tensor.unbind(-3) for tensor in tensors]


def run_forward(
    steps: Any,
    projected: Tensor,
    initial: Tensor,
    state_weight: Tensor,
    U: Tensor,
    *,
    real: Tensor | None = None,
    attended: AttentionInputs | None = None,
) -> tuple[Tensors, Tensors]:
    """Runs the loop; returns its results and the tensors that `run_backward` needs.

    `steps` is `nmt.fused.steps` or a module with the same functions.
    """
    *directions, length, batch, _ = projected.shape
    hidden = U.shape[-1]
    dtype = projected.dtype
    accumulate = accumulate_dtype(projected.dtype)
    query_size = state_weight.shape[-2] - 2 * hidden
    multiply = torch.bmm if directions else torch.mm
    state_weight_t = state_weight.mT
    U_t = U.mT

    def new(length: int, columns: int, dtype: torch.dtype = dtype) -> Tensor:
        return projected.new_empty(*directions, length, batch, columns, dtype=dtype)

    states = new(length + 1, hidden, accumulate)
    compute_states = states if dtype == accumulate else new(length + 1, hidden)
    for each in (states, compute_states):
        each.select(-3, 0).copy_(initial)
    gates, candidates = new(length, 2 * hidden, accumulate), new(length, hidden, accumulate)
    reset_states = new(length, hidden)
    state, compute_state, gate, candidate, reset_state, for_gates, for_candidate = by_step(
        states, compute_states, gates, candidates, reset_states,
        *projected.split([2 * hidden, hidden], -1),
    )  # fmt: skip
    mask = [None] * length if real is None else real.unbind(-3)
    copy = [None] * (length + 1) if compute_states is states else compute_state
    saved: Tensors = state_weight, U, states, compute_states, gates, candidates, reset_states
    outputs: Tensors = (states.narrow(-3, 1, length),)
    product: Any = [None] * length
    if attended is not None:
        attention = steps.attention_steps(*attended[:4])
        products = new(length + 1, query_size + 2 * hidden)
        queries = products[..., :query_size]
        contexts = new(length + 1, attended.C.shape[1])
        weights = new(length + 1, attended.mask.shape[1], accumulate)
        log_normaliser = weights.new_empty(length + 1, batch)
        product, query, context, weight = by_step(products, queries, contexts, weights)
        normaliser = log_normaliser.unbind(0)
        C_gates, C_candidate = attended.C.t().split([2 * hidden, hidden], 1)
        outputs = compute_states, contexts, weights, log_normaliser
        saved += (attended.C, attended.annotations, attention.keys, attended.mask)
        saved += (queries, contexts, weights)
    for i in range(length + (attended is not None)):
        recurrent = multiply(compute_state[i], state_weight_t, out=product[i])
        if attended is not None:
            attention.attend(query[i], weight[i], normaliser[i], context[i])
            if i == length:
                break  # c_{T+1} is the last result: no state follows it
            recurrent = torch.addmm(recurrent[:, query_size:], context[i], C_gates)
        steps.compute_gates(state[i], for_gates[i], recurrent, gate[i], reset_state[i], mask[i])
        recurrent = multiply(reset_state[i], U_t)
        if attended is not None:
            recurrent = torch.addmm(recurrent, context[i], C_candidate)
        steps.next_state(
            state[i], for_candidate[i], recurrent, gate[i], candidate[i], state[i + 1], copy[i + 1]
        )
    return outputs, saved


def run_backward(
    steps: Any, saved: Tensors, upstream: Tensors, scoring: nn.Module | None = None
) -> list[Tensor]:
    """Returns the gradients of `projected` and all later arguments of `GatedUnitFunction.forward`."""
    state_weight, U, states, compute_states, gates, candidates, reset_states, *attended = saved
    *directions, length, batch, hidden = reset_states.shape
    query_size = state_weight.shape[-2] - 2 * hidden
    multiply = torch.bmm if directions else torch.mm
    # The columns of `grad` are query, z, r, s̃. `grad_units` is a view of the columns z, r, s̃. It is the
    # gradient of `projected`. `grad_products` is a view of the columns query, z, r. It is the gradient
    # of the product of the state and `state_weight`.
    iterations = length + bool(attended)
    grad = reset_states.new_empty(*directions, iterations, batch, query_size + 3 * hidden)
    grad_queries, grad_units = grad.split([query_size, 3 * hidden], -1)
    grad_products, grad_candidates = grad.split([query_size + 2 * hidden, hidden], -1)
    state, gate, candidate, upstream_state = by_step(
        states, gates, candidates, upstream[0].contiguous()
    )
    grad_query, grad_gate, grad_product, grad_candidate = by_step(
        grad_queries, grad_units, grad_products, grad_candidates
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
        grad_units[-1] = 0
        attention.backward(grad_context[-1], query[-1], weight[-1], grad_score[-1], grad_query[-1])
        from_next = torch.mm(grad_product[-1], state_weight)
    else:
        from_next = torch.zeros_like(grad_state, dtype=grad.dtype)
    for i in reversed(range(length)):
        # `upstream_state` has one more entry at the start with attention, for s_0.
        steps.candidate_backward(
            grad_state, from_next, upstream_state[i - length], gate[i], candidate[i], state[i],
            grad_gate[i],
        )  # fmt: skip
        grad_reset_state = multiply(grad_candidate[i], U)
        steps.reset_backward(grad_state, grad_reset_state, gate[i], state[i], grad_gate[i])
        if attended:
            grad_context[i].addmm_(grad_gate[i], C)
            attention.backward(grad_context[i], query[i], weight[i], grad_score[i], grad_query[i])
        from_next = multiply(grad_product[i], state_weight)
    grad_state.add_(from_next)
    if attended:
        grad_state.add_(upstream_state[0])

    def weight_gradient(grad: Tensor, inputs: Tensor) -> Tensor:
        """Returns Σ grad inputsᵀ (..., X, Y) over steps and sentences, given (..., T, B, X) and (..., T, B, Y)."""
        flat = inputs.narrow(-3, 0, grad.shape[-3]).flatten(-3, -2)
        return multiply(grad.flatten(-3, -2).mT, flat)

    grad_units, grad_candidates = (x.narrow(-3, 0, length) for x in (grad_units, grad_candidates))
    gradients = [
        grad_units,
        grad_state,
        weight_gradient(grad_products, compute_states),
        weight_gradient(grad_candidates, reset_states),
    ]
    if attended:
        # (B, S, T) x (B, T, A)
        by_sentence = weights.permute(1, 2, 0).to(grad.dtype), grad_contexts.transpose(0, 1)
        gradients += [
            weight_gradient(grad_units, contexts),
            torch.bmm(*by_sentence),
            *attention.gradients(grad_scores, queries),
        ]
    return gradients
