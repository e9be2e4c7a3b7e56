"""Attention over the annotations of a batch, one step at a time, with a custom backward pass.

The gradients of the keys are summed over the steps, and no step saves a tensor of shape (B, S, N).
`nmt.fused.gpu.kernels` implements the same functions in Triton.

Sizes: B = batch, K = queries per sentence, T = target length, S = source length, A = entries of an
annotation, N = entries of a query or key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from nmt.layers import Additive
from nmt.layers.precision import accumulate_dtype

# Number of entries in the buffer of `Sigmoids`. On a CPU, each thread has this number of entries, which fit into
# the cache of its core.
BUFFER_ENTRIES, BUFFER_ENTRIES_GPU = 2**17, 2**27
# For |x| up to this bound, e^2x neither overflows nor underflows.
BOUNDS = {torch.float32: 40.0, torch.float64: 350.0}

softmax_backward = torch.ops.aten._softmax_backward_data


def attention_steps(scoring: Any, *tensors: Tensor) -> DotSteps:
    """Returns an object that computes attention step by step; see `DotSteps` for the arguments."""
    return (AdditiveSteps if isinstance(scoring, Additive) else DotSteps)(scoring, *tensors)


class DotSteps:
    """Attention with the scores scale · qᵀk. Takes annotations (B, S, A), keys (B, S, N) and a mask (B, S)."""

    def __init__(self, scoring: Any, annotations: Tensor, keys: Tensor, mask: Tensor) -> None:
        # computes scores in at least float32, because 16-bit numbers have only 2 or 3 significant digits
        self.keys = keys.to(accumulate_dtype(keys.dtype))
        self.scoring = scoring
        self.annotations = annotations
        self.padding = ~mask

    def attend(
        self, query: Tensor, weights: Tensor, log_normaliser: Tensor, context: Tensor
    ) -> None:
        """Writes α (B, S), log Z (B) and c (B, A) of a query (B, N) to `weights`, `log_normaliser` and `context`."""
        scores = self.scores(query.to(self.keys.dtype)).masked_fill_(self.padding, -torch.inf)
        torch.logsumexp(scores, 1, out=log_normaliser)
        torch.softmax(scores, 1, out=weights)
        alpha = weights.to(self.annotations.dtype).unsqueeze(1)
        torch.bmm(alpha, self.annotations, out=context.unsqueeze(1))

    def backward(
        self,
        grad_context: Tensor,
        query: Tensor,
        weights: Tensor,
        grad_scores: Tensor,
        grad_query: Tensor,
    ) -> None:
        """Writes the gradients of scores (B, S) and query (B, N), given the gradient of the context (B, A)."""
        # on a CPU, row vector times matrix takes a tenth of the time of matrix times column vector
        grad_weights = torch.bmm(grad_context.unsqueeze(1), self.annotations.transpose(1, 2))
        dtype = weights.dtype
        grad_weights = grad_weights.squeeze(1).to(dtype)
        grad_scores.copy_(softmax_backward(grad_weights, weights, 1, dtype))
        grad_query.copy_(self.query_gradient(grad_scores, query.to(dtype)))

    def scores(self, query: Tensor) -> Tensor:
        """Returns the scores (B, S) of a query (B, N)."""
        product = torch.bmm(query.unsqueeze(1), self.keys.transpose(1, 2))
        return product.squeeze(1).mul_(self.scoring.scale)

    def query_gradient(self, grad_scores: Tensor, query: Tensor) -> Tensor:
        """Returns the gradient of a query (B, N), given the gradient of its scores (B, S).

        Call this method exactly once per step, because in `AdditiveSteps` each call adds to the gradients of
        keys and v.
        """
        return torch.bmm(grad_scores.unsqueeze(1), self.keys).squeeze(1).mul_(self.scoring.scale)

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        """Returns the gradients of the keys and of the scoring parameters, summed over all steps.

        Takes `grad_scores` (T, B, S) and `queries` (T, B, N).
        """
        return (dot_gradient(grad_scores, queries.to(self.keys.dtype), self.scoring.scale),)


def dot_gradient(grad_scores: Tensor, queries: Tensor, scale: float) -> Tensor:
    """Returns the gradient of the keys (B, S, N), given the gradient of dot-product scores (T, B, S)."""
    # (B, S, T) x (B, T, N)
    return torch.bmm(grad_scores.permute(1, 2, 0), queries.transpose(0, 1)).mul_(scale)


class AdditiveSteps(DotSteps):
    """Like `DotSteps`, but with the scores v_aᵀ tanh(q + k).

    `half` is (1 - tanh(q + k)) / 2, computed by `Sigmoids`. To save memory, the backward pass recomputes
    `half`. The derivative of tanh(q + k) is 4 (half - half²). ∂e_ij is the gradient of the loss with respect
    to the score e_ij of step i and source position j.
    """

    slopes: Tensor | None = None  # Σ_i ∂e_ij (half - half²)
    weighted_half: Tensor  # Σ_ij ∂e_ij half

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sigmoids = Sigmoids(self.keys)

    def scores(self, query: Tensor) -> Tensor:
        return self.sigmoids.scores(query.unsqueeze(1), self.scoring.v.to(query.dtype)).squeeze(1)

    def query_gradient(self, grad_scores: Tensor, query: Tensor) -> Tensor:
        if self.slopes is None:
            self.slopes = torch.zeros_like(self.keys)
            self.weighted_half = torch.zeros_like(self.scoring.v, dtype=query.dtype)
        summed = torch.empty_like(query)  # Σ_j ∂e_ij (half - half²)
        parts = map(self.sigmoids.split_batch, (grad_scores, self.slopes, summed))
        for half, grad, slopes, out in zip(self.sigmoids(query.unsqueeze(1)), *parts, strict=True):
            half = half.squeeze(1)
            self.weighted_half.addmv_(half.flatten(0, 1).t(), grad.flatten())
            slope = half.addcmul_(half, half, value=-1)
            slopes.addcmul_(grad.unsqueeze(2), slope)
            torch.bmm(grad.unsqueeze(1), slope, out=out.unsqueeze(1))
        return summed.mul_(4 * self.scoring.v)

    def gradients(self, grad_scores: Tensor, queries: Tensor) -> tuple[Tensor, ...]:
        assert self.slopes is not None
        return self.slopes.mul_(4 * self.scoring.v), grad_scores.sum() - 2 * self.weighted_half


class Sigmoids:
    """Computes σ(-2 (q + k)) = (1 - tanh(q + k)) / 2 = 1 / (1 + e^2q e^2k) for K queries per sentence.

    The constructor takes the keys, and each call takes queries.

    The exponential of each query and key is computed once. Each pair (q, k) then needs one product and
    one quotient, which take a tenth of the time of tanh. q and k are clamped to ±`BOUNDS`.

    To limit memory, the batch is processed in parts of b sentences, which share one buffer.

    Args:
        keys: (B, S, N).
        queries_per_sentence: K.
    """

    def __init__(self, keys: Tensor, queries_per_sentence: int = 1) -> None:
        entries = BUFFER_ENTRIES_GPU if keys.is_cuda else BUFFER_ENTRIES * torch.get_num_threads()
        per_sentence = max(1, queries_per_sentence * keys[:1].numel())
        self._rows = max(1, min(entries // per_sentence, len(keys)))
        self._keys = self.split_batch(exponential(keys).unsqueeze(1))
        buffer = keys.new_empty(self._rows, queries_per_sentence, *keys.shape[1:])
        self._buffers = [buffer[: len(part)] for part in self._keys]
        self._one = keys.new_ones(())

    def __call__(self, queries: Tensor) -> Iterator[Tensor]:
        """Yields the result (b, K, S, N) of each part; the next result overwrites it. `queries` is (B, K, N)."""
        parts = self.split_batch(exponential(queries).unsqueeze(2))
        for query, keys, buffer in zip(parts, self._keys, self._buffers, strict=True):
            yield torch.addcmul(self._one, query, keys, out=buffer).reciprocal_()

    def split_batch(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """Splits a tensor (B, ...) into parts (b, ...)."""
        return tensor.split(self._rows)

    def scores(self, queries: Tensor, v: Tensor) -> Tensor:
        """Returns scores (B, K, S) of queries (B, K, N): v_aᵀ tanh(q + k) = Σ_n v_n - 2 Σ_n v_n half_n."""
        scores = queries.new_empty(*queries.shape[:2], self._keys[0].shape[2])
        constant = v.sum()
        for half, out in zip(self(queries), self.split_batch(scores), strict=True):
            flat = out.view(-1)
            torch.addmv(constant.expand_as(flat), half.flatten(0, 2), v, alpha=-2, out=flat)
        return scores


def exponential(x: Tensor) -> Tensor:
    """Returns e^2x with x clamped to ±`BOUNDS`. Otherwise e^2q e^2k could be 0 · infinity = NaN."""
    bound = BOUNDS[x.dtype]
    return x.clamp(-bound, bound).mul_(2).exp_()


class FusedAdditive(Additive):
    """See `nmt.layers.Additive`. Uses `Sigmoids` if gradients are disabled."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().forward(query, keys)
        return Sigmoids(keys, query.shape[1]).scores(query, self.v.to(query.dtype))
