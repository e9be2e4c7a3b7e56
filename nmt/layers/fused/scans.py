"""A scoring function and its derivative, swept over the steps of a sentence against its keys.

A sweep lives for one forward or one backward pass. It is what lets a scoring function prepare its
keys once and add up the gradients of keys and parameters without keeping anything of size B x S x N
for a step.

B batch, T target length, S source length, N alignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor, nn

CACHED = 2**17  # entries of a buffer that a CPU is to keep in its cache


class ScoringScan(Protocol):
    """What the fused decoder asks of a scoring function; made by the module's `sweep(keys)`."""

    def scores(self, query: Tensor) -> Tensor:
        """(B, N) -> (B, S)."""

    def backward(self, grad_scores: Tensor, query: Tensor) -> Tensor:
        """The gradient of a query (B, N) from the one of its scores (B, S); called once a step."""

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        """The gradients of keys (B, S, N) and parameters, given all steps (T, B, S), (T, B, N)."""


def has_derivative(scoring: nn.Module) -> bool:
    """Whether the fused recurrence can differentiate this scoring function."""
    return callable(getattr(scoring, "sweep", None)) or callable(getattr(scoring, "backward", None))


def sweep(scoring: nn.Module, keys: Tensor) -> ScoringScan:
    """The scoring function's own sweep, or one made of its `forward` and `backward`."""
    make = getattr(scoring, "sweep", None)
    return make(keys) if callable(make) else StepwiseScan(scoring, keys)


class StepwiseScan:
    """The sweep of any scoring module with a `backward` (see `nmt.layers.scoring`)."""

    def __init__(self, scoring: nn.Module, keys: Tensor) -> None:
        self.scoring = scoring
        self.keys = keys
        self.sums: list[Tensor] | None = None

    def scores(self, query: Tensor) -> Tensor:
        return self.scoring(query.unsqueeze(1), self.keys).squeeze(1)

    def backward(self, grad_scores: Tensor, query: Tensor) -> Tensor:
        grad_query, *others = self.scoring.backward(  # type: ignore[operator]
            grad_scores.unsqueeze(1), query.unsqueeze(1), self.keys
        )
        if self.sums is None:
            self.sums = [gradient.clone() for gradient in others]
        else:
            for total, gradient in zip(self.sums, others, strict=True):
                total.add_(gradient)
        return grad_query.squeeze(1)

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        assert self.sums is not None
        return tuple(self.sums)


def buffer(query: Tensor, keys: Tensor) -> Tensor:
    """Memory (b, K, S, N) for `curves`: on a CPU few enough sentences to stay in its cache."""
    rows, size = len(keys), query.shape[1] * keys[0].numel()
    if not keys.is_cuda:
        rows = min(rows, max(1, CACHED // max(1, size)))
    return keys.new_empty(rows, query.shape[1], *keys.shape[1:])


def curves(query: Tensor, keys: Tensor, curve: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """tanh(q + k) (b, K, S, N) of some sentences after others, in one buffer.

    Takes queries (B, K, N) and keys (B, S, N); gives the place of the sentences in the batch first.
    """
    for first in range(0, len(keys), len(curve)):
        here = slice(first, min(first + len(curve), len(keys)))
        out = curve[: here.stop - first]
        yield here, torch.add(query[here].unsqueeze(2), keys[here].unsqueeze(1), out=out).tanh_()


class AdditiveScan:
    """v_aᵀ tanh(q + k): the backward pass computes tanh again, in one buffer for all steps."""

    def __init__(self, keys: Tensor, v: Tensor) -> None:
        self.keys = keys
        self.v = v
        self.curve: Tensor | None = None
        self.squares: Tensor | None = None  # Σ_i ∂e_ij tanh²
        self.grad_v: Tensor | None = None

    def _curves(self, query: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """`curves` of one query (B, N) a sentence, each (b, S, N)."""
        query = query.unsqueeze(1)
        if self.curve is None:
            self.curve = buffer(query, self.keys)
        return ((here, curve[:, 0]) for here, curve in curves(query, self.keys, self.curve))

    def scores(self, query: Tensor) -> Tensor:
        scores = query.new_empty(self.keys.shape[:2])
        v = self.v.to(query.dtype)
        for here, curve in self._curves(query):
            torch.mv(curve.flatten(0, 1), v, out=scores[here].view(-1))
        return scores

    def backward(self, grad_scores: Tensor, query: Tensor) -> Tensor:
        if self.squares is None or self.grad_v is None:
            self.squares = torch.zeros_like(self.keys)
            self.grad_v = torch.zeros_like(self.v, dtype=query.dtype)
        reached = torch.empty_like(query)
        for here, curve in self._curves(query):
            grad = grad_scores[here]
            self.grad_v.addmv_(curve.flatten(0, 1).t(), grad.flatten())
            curve.mul_(curve)
            self.squares[here].addcmul_(grad.unsqueeze(2), curve)
            torch.bmm(grad.unsqueeze(1), curve, out=reached[here].unsqueeze(1))
        # Σ_j ∂e_j (1 - tanh²) v, the 1 summed apart so that the squares are all the products need
        return (grad_scores.sum(1, keepdim=True) - reached).mul_(self.v)

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        assert self.squares is not None
        assert self.grad_v is not None
        grad_keys = (grad_scores.sum(0).unsqueeze(2) - self.squares).mul_(self.v)
        return grad_keys, self.grad_v


class DotScan:
    """scale · qᵀk: the gradient of the keys is one product of all steps."""

    def __init__(self, keys: Tensor, scale: float) -> None:
        self.keys = keys
        self.scale = scale

    def scores(self, query: Tensor) -> Tensor:
        return torch.bmm(self.keys, query.unsqueeze(2)).squeeze(2).mul_(self.scale)

    def backward(self, grad_scores: Tensor, query: Tensor) -> Tensor:
        return torch.bmm(grad_scores.unsqueeze(1), self.keys).squeeze(1).mul_(self.scale)

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        # (B, S, T) x (B, T, N)
        product = torch.bmm(grad_scores.permute(1, 2, 0), queries.transpose(0, 1))
        return (product.mul_(self.scale),)
