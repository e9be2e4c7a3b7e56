"""Compares every Triton kernel with PyTorch's operations on small tensors, before the first update.

B batch, D directions, S source length, T target length, H state, A annotation, N alignment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nmt.fused import steps
from nmt.layers import Additive, Dot

B, D, S, T, H, A, N = 3, 2, 11, 2, 37, 40, 24
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 5e-2}  # of the largest entry

Check = Callable[[Any, torch.device, torch.dtype], Iterator[Tensor]]


def probe(device: torch.device) -> None:
    """Raises ArithmeticError for a wrong number, and what a kernel raises that cannot be run."""
    from nmt.fused.gpu import kernels

    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        for name, check in CHECKS.items():
            for dtype in TOLERANCE:
                compare(name, check(kernels, device, dtype), check(steps, device, dtype), dtype)


def compare(
    name: str, found: Iterator[Tensor], expected: Iterator[Tensor], dtype: torch.dtype
) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        error = (ours.double() - theirs.double()).abs().max()
        if not error <= TOLERANCE[dtype] * theirs.double().abs().max().clamp(min=1):
            raise ArithmeticError(f"the kernels of {name} are off by {float(error):.2g} in {dtype}")


def numbers(device: torch.device, dtype: torch.dtype, *shape: int) -> Tensor:
    """Between -1 and 1, always the same, without the random numbers of a training."""
    count = torch.Size(shape).numel()
    return (torch.arange(count, device=device) * 0.7).sin().view(shape).to(dtype)


def gates(module: Any, device: torch.device, dtype: torch.dtype) -> Iterator[Tensor]:
    """All four functions of a step, in two directions with padding."""

    def new(size: int, of: torch.dtype = dtype) -> Tensor:
        return numbers(device, of, D, B, size)

    state, real = new(H, torch.float32), torch.ones(D, B, 1, device=device)
    real[:, 1] = 0
    opened, candidate, after = new(2 * H, torch.float32), torch.empty_like(state), state.clone()
    reset, copy, grad = new(H), new(H), new(3 * H)
    module.open_gates(new(3 * H)[..., : 2 * H], new(2 * H), state, opened, reset, real)
    module.next_state(new(3 * H)[..., 2 * H :], new(H), state, opened, candidate, after, copy)
    yield from (opened, reset, candidate, after, copy)
    carried = 2 * state
    module.candidate_backward(carried, new(H), new(H), opened, candidate, state, grad)
    module.reset_backward(carried, new(H), opened, state, grad)
    yield from (carried, grad)


def attention(
    module: Any, device: torch.device, dtype: torch.dtype, scorer: Any = Additive
) -> Iterator[Tensor]:
    """Both ways over all steps, and the scores of a search."""
    scoring = scorer(N, N).to(device)
    for parameter in scoring.parameters():
        parameter.copy_(numbers(device, torch.float32, N))
    keys, annotations = numbers(device, dtype, B, S, N), numbers(device, dtype, B, S, A)
    queries, contexts = numbers(device, dtype, T, B, N), numbers(device, dtype, T, B, A)
    lengths = torch.arange(1, B + 1, device=device).unsqueeze(1) * (S // B)
    steps_of = module.attention_steps(
        scoring, keys, annotations, torch.arange(S, device=device) < lengths
    )
    weights = torch.empty(T, B, S, device=device)
    normaliser, grad_scores = torch.empty(T, B, device=device), torch.empty_like(weights)
    grad_queries, upstream = torch.empty_like(queries), contexts.clone()
    for i in range(T):
        steps_of.attend(queries[i], weights[i], normaliser[i], contexts[i])
    for i in range(T):
        steps_of.backward(upstream[i], queries[i], weights[i], grad_scores[i], grad_queries[i])
    yield from (weights, normaliser, contexts, grad_scores, grad_queries)
    yield from steps_of.gradients(grad_scores, queries)
    if scorer is Additive:
        yield module.additive_scores(queries.transpose(0, 1), keys, scoring.v)


def dot_attention(module: Any, device: torch.device, dtype: torch.dtype) -> Iterator[Tensor]:
    return attention(module, device, dtype, Dot)


def loss(module: Any, device: torch.device, dtype: torch.dtype) -> Iterator[Tensor]:
    """Likelihoods of words, and the gradient of the logits."""
    rows = module.operand(numbers(device, dtype, B, N), dtype)
    matrix = module.operand(numbers(device, dtype, H, N), dtype)
    nll = torch.empty(B, device=device)
    weight = torch.arange(B, device=device).float()
    grad = module.word_nll(
        rows, matrix, numbers(device, torch.float32, H), torch.arange(B, device=device), weight,
        nll, module.logits_memory(rows, H), with_gradient=True,
    )  # fmt: skip
    yield from (nll, grad)


CHECKS: dict[str, Check] = {
    "the gates": gates,
    "additive attention": attention,
    "dot attention": dot_attention,
    "the loss": loss,
}
