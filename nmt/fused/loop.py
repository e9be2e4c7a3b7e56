"""Runs gated units over a whole sentence, with a custom backward pass (`model.recurrence=fused`).

The encoder (with one or two directions) and the decoder (with or without attention) run the same steps.
Before the loop, `projected` = [W_z; W_r; W] e + b is computed from the embedding e of each input word. Its
blocks `projected_zr` and `projected_s̃` are for the gates and for s̃. In the paper's notation, a step computes:

    [q_i; u_i] = [W_a; U_z; U_r] s_{i-1}                  one product
    c_i        = Σ_j α_ij h_j,  α_ij = softmax_j score(q_i, k_j)
    [z; r]     = σ(projected_zr + u_i + [C_z; C_r] c_i)
    s̃          = tanh(projected_s̃ + U (r∘s_{i-1}) + C c_i)
    s_i        = (1 - z)∘s_{i-1} + z∘s̃

The backward loop computes the gradients of states and queries. After the loop, the gradients
of the weight matrices and of the annotations take one matrix product each. No step saves a tensor of shape (B, S, N).

Without attention there is no q_i, and `projected` includes the product of C and the fixed context. With
attention there are T new states but T + 1 contexts, because the readout of the last word needs c_{T+1}.

    s_0 ─────────► s_1 ─────────► … ──► s_T
      └──► c_1 ──┘   └──► c_2 ──┘         └──► c_{T+1}

Sizes: T = steps, S = source length, B = batch, H = state, A = annotation, N = query and key. A leading
`...` is the number of directions of an encoder. A decoder has no such dimension.
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
    """Inputs of a loop with attention: the arguments of `attention_steps` and the matrix C."""

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

    `projected` (..., T, B, 3H) is W e + b of each input word, plus C c if there is a fixed context c.
    `initial` (..., B, H) is s_0. `U_gates` (..., 2H, H) is [U_z; U_r], and `U` is (..., H, H). `real`
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
    """Computes c_i = attention(s_{i-1}) and s_i = f(s_{i-1}, word_i, c_i), up to s_T and c_{T+1}.

    T is the number of target words minus one. `projected` (T, B, 3H) is W e + b of each input word.
    `initial` (B, H) is s_0. `unit` is the `GatedUnit` f. `W_a` is (N, H).
    Returns the states s_0 .. s_T (T + 1, B, H), the contexts (T + 1, B, A), the weights (T + 1, B, S)
    and log Z (T + 1, B). The weights and log Z are not differentiable.
    """
    state_weight = torch.cat([W_a, unit.U_gates])
    results: tuple[Tensor, Tensor, Tensor, Tensor] = GatedUnitFunction.apply(
        backend, compute_dtype(W_a), memory.mask, scoring, projected, initial, state_weight, unit.U,
        unit.C, memory.annotations, memory.keys, *scoring.parameters(),
    )  # fmt: skip
    return results


class UnitRecord(NamedTuple):
    """The tensors that the gated units save for the backward pass."""

    state_weight: Tensor  # [W_a; U_z; U_r], (..., N + 2H, H); without attention N is 0
    U: Tensor  # (..., H, H)
    states: Tensor  # (..., T + 1, B, H) s_0 .. s_T
    compute_states: Tensor  # `states` in the compute dtype
    gates: Tensor  # (..., T, B, 2H) [z; r]
    candidates: Tensor  # (..., T, B, H) s̃
    reset_states: Tensor  # (..., T, B, H) r∘s_{i-1}

    @classmethod
    def start(
        cls, projected: Tensor, initial: Tensor, state_weight: Tensor, U: Tensor
    ) -> UnitRecord:
        """Allocates all tensors, and writes s_0."""
        *sizes, length, batch, _ = projected.shape
        hidden = U.shape[-1]
        dtype = projected.dtype
        accumulate = accumulate_dtype(dtype)

        def new(length: int, columns: int, dtype: torch.dtype) -> Tensor:
            return projected.new_empty(*sizes, length, batch, columns, dtype=dtype)

        states = new(length + 1, hidden, accumulate)
        compute_states = states if dtype == accumulate else new(length + 1, hidden, dtype)
        for each in (states, compute_states):
            each.select(-3, 0).copy_(initial)
        gates, candidates = new(length, 2 * hidden, accumulate), new(length, hidden, accumulate)
        reset_states = new(length, hidden, dtype)
        return cls(state_weight, U, states, compute_states, gates, candidates, reset_states)


class AttentionRecord(NamedTuple):
    """The tensors that the attention saves for the backward pass."""

    C: Tensor  # (3H, A)
    annotations: Tensor  # (B, S, A)
    keys: Tensor  # (B, S, N)
    mask: Tensor  # (B, S)
    queries: Tensor  # (T + 1, B, N)
    contexts: Tensor  # (T + 1, B, A)
    weights: Tensor  # (T + 1, B, S)


class GatedUnitFunction(Function):
    """The autograd function that `run_units` and `run_with_attention` apply.

    `mask` is the argument `real` of `run_units`, or the source mask of `run_with_attention`.
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
        state_weight: Tensor,  # [U_z; U_r]; with attention [W_a; U_z; U_r]
        U: Tensor,
        *attended: Tensor,  # C, annotations, keys, parameters of the scoring function
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
    """Splits each tensor into its steps, which are dimension -3.

    Call it before the loop. Indexing `tensor[i]` in the loop is slow: it takes as long as an operation on a
    few hundred entries.
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
    """Runs the loop; returns its results, and the tensors saved for the backward pass.

    The saved tensors are the fields of a `UnitRecord`. With attention, the fields of an `AttentionRecord`
    follow.

    `state[i]` is s_i, and the list starts with s_0. Lists such as `gate` and `context` start with step 1.

    `steps` is `nmt.fused.steps` or a module with the same functions.
    """
    *directions, length, batch, _ = projected.shape
    hidden = U.shape[-1]
    multiply = torch.bmm if directions else torch.mm
    state_weight_t, U_t = state_weight.mT, U.mT
    units = UnitRecord.start(projected, initial, state_weight, U)
    for_gates, for_candidate = by_step(*projected.split([2 * hidden, hidden], -1))
    state, compute_state, gate, candidate, reset_state = by_step(*units[2:])
    copy = [None] * (length + 1) if units.compute_states is units.states else compute_state
    mask = [None] * length if real is None else real.unbind(-3)

    if attended is None:
        for i in range(length):
            recurrent = multiply(compute_state[i], state_weight_t)
            steps.compute_gates(state[i], for_gates[i], recurrent, gate[i], reset_state[i], mask[i])
            recurrent = multiply(reset_state[i], U_t)
            steps.next_state(
                state[i], for_candidate[i], recurrent, gate[i], candidate[i], state[i + 1],
                copy[i + 1],
            )  # fmt: skip
        return (units.states.narrow(-3, 1, length),), units

    attention = steps.attention_steps(*attended[:4])
    products = projected.new_empty(length + 1, batch, len(state_weight))
    queries, others = products.split([len(state_weight) - 2 * hidden, 2 * hidden], -1)
    contexts = projected.new_empty(length + 1, batch, attended.C.shape[1])
    weights = units.states.new_empty(length + 1, *attended.mask.shape)
    log_normaliser = weights.new_empty(length + 1, batch)
    product, query, other, context, weight = by_step(products, queries, others, contexts, weights)
    normaliser = log_normaliser.unbind(0)
    C_gates, C_candidate = attended.C.t().split([2 * hidden, hidden], 1)

    def attend(i: int) -> None:
        torch.mm(compute_state[i], state_weight_t, out=product[i])
        attention.attend(query[i], weight[i], normaliser[i], context[i])

    for i in range(length):
        attend(i)
        # `addmm_` adds in place, whereas `addmm` would first copy the first summand
        recurrent = other[i].addmm_(context[i], C_gates)
        steps.compute_gates(state[i], for_gates[i], recurrent, gate[i], reset_state[i], None)
        recurrent = torch.mm(reset_state[i], U_t).addmm_(context[i], C_candidate)
        steps.next_state(
            state[i], for_candidate[i], recurrent, gate[i], candidate[i], state[i + 1], copy[i + 1]
        )
    attend(length)  # c_{T+1}
    source = AttentionRecord(
        attended.C, attended.annotations, attention.keys, attended.mask, queries, contexts, weights
    )
    return (units.compute_states, contexts, weights, log_normaliser), (*units, *source)


def run_backward(
    steps: Any, saved: Tensors, upstream: Tensors, scoring: nn.Module | None = None
) -> list[Tensor]:
    """Returns the gradients of `projected` and all later arguments of `GatedUnitFunction.forward`.

    ∂x is the gradient of the loss with respect to x. For x = z, r and s̃, it is the gradient with respect to
    the argument of σ or tanh.
    The loop goes from s_T to s_1. `from_outside` is the part of ∂s_i or ∂c_i from outside the loop, such as
    from the readouts.

        ∂s̃       = ∂s_i∘z∘(1 - s̃²),  ∂z = ∂s_i∘(s̃ - s_{i-1})∘z∘(1 - z)
        ∂r       = (Uᵀ ∂s̃)∘s_{i-1}∘r∘(1 - r)
        ∂c_i     = from_outside + Cᵀ [∂z; ∂r; ∂s̃]; attention computes ∂q_i from ∂c_i
        ∂s_{i-1} = from_outside + (1 - z)∘∂s_i + r∘(Uᵀ ∂s̃) + [W_a; U_z; U_r]ᵀ [∂q_i; ∂z; ∂r]

    After an iteration, `grad_state` still lacks two terms of ∂s_{i-1}: `from_outside` and the matrix
    product `from_next`. The next iteration adds them. One buffer contains ∂q, ∂z, ∂r and ∂s̃ of all steps.
    It has four views, which cover the columns marked with ×:

        view        ∂q  ∂z  ∂r  ∂s̃    is the gradient of
        queries     ×                 q_i
        units           ×   ×   ×     `projected`
        products    ×   ×   ×         [q_i; u_i]
        candidates              ×     U (r∘s_{i-1})
    """
    units = UnitRecord(*saved[:7])
    source = AttentionRecord(*saved[7:]) if len(saved) > 7 else None
    *directions, length, batch, hidden = units.reset_states.shape
    state_weight, U = units[:2]
    query_size = state_weight.shape[-2] - 2 * hidden
    multiply = torch.bmm if directions else torch.mm
    rows = length if source is None else length + 1
    grad = units.reset_states.new_empty(*directions, rows, batch, query_size + 3 * hidden)
    grad_queries, grad_units = grad.split([query_size, 3 * hidden], -1)
    grad_products, grad_candidates = grad.split([query_size + 2 * hidden, hidden], -1)
    grad_query, grad_unit, grad_product, grad_candidate = by_step(
        grad_queries, grad_units, grad_products, grad_candidates
    )
    state, gate, candidate, from_outside = by_step(
        units.states, units.gates, units.candidates, upstream[0].contiguous()
    )
    from_outside = from_outside[-length:]  # drops s_0, which only a loop with attention returns
    grad_state = torch.zeros_like(state[0])

    def units_backward(i: int, from_next: Tensor) -> None:
        steps.candidate_backward(
            grad_state, from_next, from_outside[i], gate[i], candidate[i], state[i], grad_unit[i]
        )
        grad_reset_state = multiply(grad_candidate[i], U)
        steps.reset_backward(grad_state, grad_reset_state, gate[i], state[i], grad_unit[i])

    def weight_gradient(grad: Tensor, inputs: Tensor) -> Tensor:
        """Returns Σ grad inputsᵀ (..., X, Y) over T and B. `grad` is (..., T, B, X); `inputs` is (..., T, B, Y)."""
        flat = inputs.narrow(-3, 0, grad.shape[-3]).flatten(-3, -2)
        return multiply(grad.flatten(-3, -2).mT, flat)

    if source is None:
        from_next = torch.zeros_like(grad_state, dtype=grad.dtype)
        for i in reversed(range(length)):
            units_backward(i, from_next)
            from_next = multiply(grad_product[i], state_weight)
        return [
            grad_units,
            grad_state.add_(from_next),
            weight_gradient(grad_products, units.compute_states),
            weight_gradient(grad_candidates, units.reset_states),
        ]

    attention = steps.attention_steps(scoring, source.annotations, source.keys, source.mask)
    grad_contexts = upstream[1].to(grad.dtype, copy=True)
    grad_scores = torch.empty_like(source.weights)
    query, weight, grad_context, grad_score = by_step(
        source.queries, source.weights, grad_contexts, grad_scores
    )

    def attention_backward(i: int) -> Tensor:
        attention.backward(grad_context[i], query[i], weight[i], grad_score[i], grad_query[i])
        return torch.mm(grad_product[i], state_weight)

    grad_units[length] = 0  # no unit uses c_{T+1}
    from_next = attention_backward(length)
    for i in reversed(range(length)):
        units_backward(i, from_next)
        grad_context[i].addmm_(grad_unit[i], source.C)
        from_next = attention_backward(i)
    grad_units, grad_candidates = grad_units[:length], grad_candidates[:length]
    # (B, S, T) x (B, T, A)
    by_sentence = source.weights.permute(1, 2, 0).to(grad.dtype), grad_contexts.transpose(0, 1)
    return [
        grad_units,
        grad_state.add_(from_next).add_(upstream[0][0]),
        weight_gradient(grad_products, units.compute_states),
        weight_gradient(grad_candidates, units.reset_states),
        weight_gradient(grad_units, source.contexts),
        torch.bmm(*by_sentence),
        *attention.gradients(grad_scores, source.queries),
    ]
