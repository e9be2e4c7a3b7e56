"""Scoring functions over all steps of a sentence against the same keys, and their derivatives.

A scan is made for one forward or one backward pass. It prepares the keys once and sums the gradients
of keys and parameters. It keeps nothing of size B x S x N per step.

B batch, K queries a sentence, T target length, S source length, N alignment.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from nmt.layers import Additive
from nmt.layers.precision import accumulate_dtype

CACHED = 2**17  # entries of a buffer, per thread, that stay in the cache of a CPU core
BOUNDS = {torch.float32: 40.0, torch.float64: 350.0}  # e^2x is a normal number within them


class ScoringScan(Protocol):
    """The interface that the fused decoder needs."""

    def scores(self, query: Tensor) -> Tensor:
        """(B, N) -> (B, S)."""

    def backward(self, grad_scores: Tensor, query: Tensor) -> Tensor:
        """The gradient of a query (B, N) from the one of its scores (B, S); called once a step."""

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        """The gradients of keys (B, S, N) and parameters, given all steps (T, B, S), (T, B, N)."""


def scan_of(scoring: Any, keys: Tensor) -> ScoringScan:
    """The scan of an `Additive` or `Dot` over keys (B, S, N)."""
    if isinstance(scoring, Additive):
        return AdditiveScan(keys, scoring.v)
    return DotScan(keys, scoring.scale)


def exponential(x: Tensor) -> Tensor:
    """e^2x with x clamped to `BOUNDS`, so that no product of two results is 0 · infinity."""
    bound = BOUNDS[x.dtype]
    return x.clamp(-bound, bound).mul_(2).exp_()


class Halves:
    """(1 - tanh(q + k)) / 2 = 1 / (1 + e^2q e^2k) of K queries a sentence and the same keys.

    The exponential of each query and key is computed once. A pair of them then costs a product and
    a quotient, a tenth of the time of tanh. If both are beyond `BOUNDS` with opposite signs, the
    result is that of the clamped values.

    The sentences are cut into parts, which use one buffer in turn. On a CPU a part has `rows`
    sentences, by default as many as keep the buffer in the cache.

    Args:
        keys: (B, S, N).
        queries: K.
    """

    def __init__(self, keys: Tensor, queries: int = 1, rows: int | None = None) -> None:
        if rows is None:
            entries = CACHED * torch.get_num_threads()
            rows = len(keys) if keys.is_cuda else entries // max(1, queries * keys[:1].numel())
        rows = max(1, min(rows, len(keys)))
        self._sizes = [min(rows, len(keys) - first) for first in range(0, len(keys), rows)]
        self._keys = self.split(exponential(keys).unsqueeze(1))
        buffer = keys.new_empty(rows, queries, *keys.shape[1:])
        self._buffers = [buffer[: len(part)] for part in self._keys]
        self._one = keys.new_ones(())

    def __call__(self, queries: Tensor) -> Iterator[Tensor]:
        """Yields the halves (b, K, S, N) of each part, for queries (B, K, N)."""
        parts = self.split(exponential(queries).unsqueeze(2))
        for query, keys, buffer in zip(parts, self._keys, self._buffers, strict=True):
            yield torch.addcmul(self._one, query, keys, out=buffer).reciprocal_()

    def split(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """The parts (b, ...) of a tensor (B, ...)."""
        return tensor.split_with_sizes(self._sizes)

    def scores(self, queries: Tensor, v: Tensor) -> Tensor:
        """v_aᵀ tanh(q + k) = Σ_n v_n - 2 Σ_n v_n half_n (B, K, S), of queries (B, K, N)."""
        scores = queries.new_empty(*queries.shape[:2], self._keys[0].shape[2])
        constant = v.sum()
        for half, out in zip(self(queries), self.split(scores), strict=True):
            flat = out.view(-1)
            torch.addmv(constant.expand_as(flat), half.flatten(0, 2), v, alpha=-2, out=flat)
        return scores


def additive_scores(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """v_aᵀ tanh(q + k) (B, K, S) without a gradient, in float32 at least, for queries (B, K, N).

    A few sentences at a time in one buffer.
    """
    dtype = accumulate_dtype(query.dtype)
    return Halves(keys.to(dtype), query.shape[1]).scores(query.to(dtype), v.to(dtype))


class AdditiveScan:
    """v_aᵀ tanh(q + k): the backward pass computes tanh again, in one buffer for all steps.

    With r = (1 - tanh) / 2 (`Halves`) the derivative of tanh is 4 (r - r²).
    """

    def __init__(self, keys: Tensor, v: Tensor) -> None:
        self.keys = keys
        self.v = v
        self.slopes: Tensor | None = None  # Σ_i ∂e_ij (r - r²)
        self.grad_r: Tensor | None = None  # Σ_ij ∂e_ij r

    @cached_property
    def halves(self) -> Halves:
        return Halves(self.keys)

    def scores(self, query: Tensor) -> Tensor:
        return self.halves.scores(query.unsqueeze(1), self.v.to(query.dtype)).squeeze(1)

    def backward(self, grad_scores: Tensor, query: Tensor) -> Tensor:
        if self.slopes is None or self.grad_r is None:
            self.slopes = torch.zeros_like(self.keys)
            self.grad_r = torch.zeros_like(self.v, dtype=query.dtype)
        summed = torch.empty_like(query)  # Σ_j ∂e_j (r - r²)
        parts = map(self.halves.split, (grad_scores, self.slopes, summed))
        for half, grad, slopes, out in zip(self.halves(query.unsqueeze(1)), *parts, strict=True):
            half = half.squeeze(1)
            self.grad_r.addmv_(half.flatten(0, 1).t(), grad.flatten())
            slope = half.addcmul_(half, half, value=-1)
            slopes.addcmul_(grad.unsqueeze(2), slope)
            torch.bmm(grad.unsqueeze(1), slope, out=out.unsqueeze(1))
        return summed.mul_(4 * self.v)

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        assert self.slopes is not None
        assert self.grad_r is not None
        return self.slopes.mul_(4 * self.v), grad_scores.sum() - 2 * self.grad_r


class DotScan:
    """scale · qᵀk: the gradient of the keys is one product of all steps."""

    def __init__(self, keys: Tensor, scale: float) -> None:
        self.keys = keys
        self.scale = scale

    def scores(self, query: Tensor) -> Tensor:
        # a row vector times a matrix is ten times as fast on a CPU as a matrix times a column
        return torch.bmm(query.unsqueeze(1), self.keys.transpose(1, 2)).squeeze(1).mul_(self.scale)

    def backward(self, grad_scores: Tensor, query: Tensor) -> Tensor:
        return torch.bmm(grad_scores.unsqueeze(1), self.keys).squeeze(1).mul_(self.scale)

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        # (B, S, T) x (B, T, N)
        product = torch.bmm(grad_scores.permute(1, 2, 0), queries.transpose(0, 1))
        return (product.mul_(self.scale),)
