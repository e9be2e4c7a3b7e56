"""The attending decoder over a whole target sentence with its own backward (`recurrence=fused`).

The loop back carries the gradient of the state alone; each weight gradient is one product after it,
and so is the gradient of the annotations. Nothing of size B x S x N is kept for a step.

T target length, S source length, B batch, H state, A annotation, N alignment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nmt.layers import steps
from nmt.layers.precision import state_type
from nmt.layers.sweep import sweep


class Course(NamedTuple):
    """The decoder's way through a target sentence, time first."""

    states: Tensor  # (T, B, H) s_0 .. s_{T-1}
    contexts: Tensor  # (T, B, A) c_1 .. c_T
    weights: Tensor  # (T, B, S), without gradient
    log_normaliser: Tensor  # (T, B), without gradient


def attend_and_recur(
    projected: Tensor,
    initial: Tensor,
    annotations: Tensor,
    keys: Tensor,
    mask: Tensor,
    weights: tuple[Tensor, Tensor, Tensor, Tensor],
    scoring: nn.Module,
    kind: torch.dtype,
) -> Course:
    """Runs c_i = attention(s_{i-1}), s_i = f(s_{i-1}, word_i, c_i) for i = 1..T.

    Takes the words' terms (T-1, B, 3H) (s_T is never read), s_0 (B, H), annotations (B, S, A), keys
    (B, S, N), mask (B, S), the matrices W_a (N, H), U_gates (2H, H), U (H, H), C (3H, A), the
    scoring function, and the type of products.
    """
    return Course(
        *FusedDecoder.apply(
            projected,
            initial,
            annotations,
            keys,
            mask,
            *weights,
            scoring,
            kind,
            *scoring.parameters(),
        )
    )


class FusedDecoder(Function):
    """See `attend_and_recur`."""

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
        kind: torch.dtype,
        *scoring_parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        length, (batch, source) = projected.shape[0] + 1, mask.shape
        hidden, alignment = U.shape[0], W_a.shape[0]
        wide = state_type(kind)
        with torch.autocast(projected.device.type, enabled=False):
            projected, annotations, U, C = (x.to(kind) for x in (projected, annotations, U, C))
            keys = keys.to(wide)
            from_state = torch.cat([W_a, U_gates]).to(kind)  # [W_a; U_z; U_r] as one matrix
            new = projected.new_empty
            states = new(length, batch, hidden, dtype=wide)
            narrow = states if kind == wide else new(length, batch, hidden)
            states[0] = initial
            queries = new(length, batch, alignment, dtype=wide)
            scores = new(length, batch, source, dtype=wide)
            weights = new(length, batch, source, dtype=wide)
            contexts = new(length, batch, annotations.shape[2])
            gates = new(length - 1, batch, 2 * hidden, dtype=wide)
            candidates = new(length - 1, batch, hidden, dtype=wide)
            resets = new(length - 1, batch, hidden)
            padding = ~mask
            scan = sweep(scoring, keys)
            for i in range(length):
                if narrow is not states:
                    narrow[i] = states[i]
                product = torch.mm(narrow[i], from_state.t())  # (B, N + 2H)
                queries[i] = product[:, :alignment]
                scores[i] = scan.scores(queries[i])
                steps.attend(scores[i], padding, annotations, weights[i], contexts[i])
                if i + 1 == length:
                    break
                wanted = torch.addmm(projected[i], contexts[i], C.t())  # (B, 3H)
                torch.add(wanted[:, : 2 * hidden], product[:, alignment:], out=gates[i])
                steps.open_gates(gates[i], states[i], resets[i])
                candidates[i] = torch.addmm(wanted[:, 2 * hidden :], resets[i], U.t())
                steps.next_state(gates[i], candidates[i], states[i], states[i + 1])
            log_normaliser = scores.logsumexp(2)
        ctx.save_for_backward(
            annotations, keys, from_state, U, C,
            states, narrow, queries, weights, contexts, gates, candidates, resets,
        )  # fmt: skip
        ctx.scoring, ctx.kind = scoring, kind
        ctx.mark_non_differentiable(weights, log_normaliser)
        return narrow, contexts, weights, log_normaliser

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_states: Tensor, grad_contexts: Tensor, *_: Tensor
    ) -> tuple[Tensor | None, ...]:
        annotations, keys, from_state, U, C = ctx.saved_tensors[:5]
        (states, narrow, queries, weights, contexts, gates, candidates, resets) = ctx.saved_tensors[
            5:
        ]
        length, batch, alignment = queries.shape
        hidden = U.shape[0]
        with torch.autocast(states.device.type, enabled=False):
            scan = sweep(ctx.scoring, keys)
            grad = states.new_empty(length - 1, batch, 3 * hidden, dtype=ctx.kind)
            grad_product = states.new_zeros(length, batch, alignment + 2 * hidden, dtype=ctx.kind)
            grad_scores = torch.empty_like(weights)
            grad_context = grad_contexts.to(ctx.kind, copy=True)
            grad_state = torch.zeros_like(states[0])
            for i in reversed(range(length)):
                if i + 1 < length:
                    steps.candidate_backward(
                        grad_state, gates[i], candidates[i], states[i], grad[i]
                    )
                    grad_reset = torch.mm(grad[i, :, 2 * hidden :], U)
                    grad_state = steps.reset_backward(
                        grad_reset, grad_state, gates[i], states[i], grad[i]
                    )
                    grad_context[i].addmm_(grad[i], C)
                    grad_product[i, :, alignment:] = grad[i, :, : 2 * hidden]
                grad_scores[i] = steps.attend_backward(grad_context[i], annotations, weights[i])
                grad_product[i, :, :alignment] = scan.backward(grad_scores[i], queries[i])
                grad_state += torch.mm(grad_product[i], from_state)
                grad_state += grad_states[i]
            grad_from_state = torch.mm(grad_product.flatten(0, 1).t(), narrow.flatten(0, 1))
            flat = grad.flatten(0, 1).t()  # (3H, T·B)
            grad_U = torch.mm(flat[2 * hidden :], resets.flatten(0, 1))
            grad_C = torch.mm(flat, contexts[:-1].flatten(0, 1))
            # (B, S, T) x (B, T, A)
            grad_annotations = torch.bmm(
                weights.permute(1, 2, 0).to(ctx.kind), grad_context.transpose(0, 1)
            )
            grad_keys, *grad_parameters = scan.gradients(grad_scores, queries)
        return (
            grad, grad_state, grad_annotations, grad_keys, None,
            grad_from_state[:alignment], grad_from_state[alignment:], grad_U, grad_C,
            None, None, *grad_parameters,
        )  # fmt: skip
