"""The output layer, which computes the cross-entropy in chunks to save memory.

Sizes: B = batch, T = target length, R = rows (target words), M = maxout units, V = vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from nmt.fused.backend import Backend
from nmt.fused.steps import pad_sizes
from nmt.layers import Output
from nmt.layers.precision import accumulate_dtype, compute_dtype

# On a CPU, 16-bit matrix products are padded to a multiple of this number of rows. oneDNN compiles a kernel
# for each new number of rows, and padding makes new numbers rare. For 700 rows and 3,000 words, compiling the
# three matrix products (the logits and two gradients) takes as long as computing them.
ROW_MULTIPLE = 32
# Size of a chunk of logits in bytes: small enough for the cache of a CPU, large enough to fill a GPU.
LOGITS_BYTES, LOGITS_BYTES_GPU = 2**22, 2**28


class FusedOutput(Output):
    """See `nmt.layers.Output`. `loss` computes logits in chunks of rows; so does `nll` if gradients are disabled.

    `logits` uses oneDNN for float32 inference on a CPU.
    """

    backend = Backend()

    def logits(self, readout: Tensor) -> Tensor:
        on_cpu = readout.device.type == "cpu" and torch.backends.mkldnn.is_available()
        if torch.is_grad_enabled() or not on_cpu or compute_dtype(self.W_o) != torch.float32:
            return super().logits(readout)
        # uses oneDNN, because `linear` uses MKL for float32, and MKL uses AVX-512 only on Intel CPUs
        multiply = torch.ops.mkldnn._linear_pointwise
        logits: Tensor = multiply(readout.float(), self.W_o, self.bias, "none", [], "")
        return logits

    def nll(self, readout: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().nll(readout, target, mask)
        rows, words, weight = self._rows(readout, target, mask)
        dtype = compute_dtype(self.W_o)
        with torch.autocast(readout.device.type, enabled=False):
            nll, _ = self.backend.run(
                rows, chunked_nll, rows, self.W_o, self.bias, words, dtype, weight=weight
            )
        if readout.is_cuda:
            return nll.view_as(mask)
        return nll.new_zeros(mask.shape).masked_scatter(mask, nll)

    def loss(self, readout: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        rows, words, weight = self._rows(readout, target, mask)
        dtype = compute_dtype(self.W_o)
        total: Tensor = SummedNLL.apply(
            self.backend, rows, self.W_o, self.bias, words, dtype, weight
        )
        return total

    def _rows(
        self, readout: Tensor, target: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Returns the readouts (R, M), the words (R) and their weights (R), which are None if all weights are 1.

        On a CPU, a boolean index removes padded positions. On a GPU such an index would synchronize, so
        padded positions have weight 0 instead.
        """
        if not readout.is_cuda:
            return readout[mask], target[mask], None
        weight = mask.flatten().to(accumulate_dtype(compute_dtype(self.W_o)))
        return readout.flatten(0, 1), target.flatten(), weight


class Gradients(NamedTuple):
    """Gradients of the loss Σ_r weight_r nll_r with respect to rows, W_o and bias."""

    rows: Tensor  # (R, M)
    W_o: Tensor  # (V, M)
    bias: Tensor  # (V)


def chunked_nll(
    steps: Any,
    rows: Tensor,
    W_o: Tensor,
    bias: Tensor,
    words: Tensor,
    dtype: torch.dtype,
    *,
    with_gradients: bool = False,
    weight: Tensor | None = None,
) -> tuple[Tensor, Gradients | None]:
    """Returns weight · -log p(word) (R) and, if `with_gradients`, the `Gradients` of the sum, else None.

    `rows` (R, M) are the readouts, and `words` (R) the target words. `weight` (R) is None if all weights are 1.
    `steps` is `nmt.fused.steps` or a module with the same functions. `dtype` is the compute dtype.
    """
    accumulate = accumulate_dtype(dtype)
    on_cpu = rows.device.type == "cpu"
    count = len(rows)
    multiple = ROW_MULTIPLE if on_cpu and dtype.itemsize == 2 else 1
    if extra := -count % multiple:
        rows, words = pad(rows, (0, 0, 0, extra)), pad(words, (0, extra))
        weight = None if weight is None else pad(weight, (0, extra))
    rows, matrix = pad_sizes(rows.to(dtype)), pad_sizes(W_o.to(dtype), rows=True)
    # the bias -inf gives padding words the probability 0
    padded_bias = pad(bias, (0, len(matrix) - len(bias)), value=-torch.inf)
    nll = rows.new_empty(len(rows), dtype=accumulate)
    grads = None
    if with_gradients:
        # without rows there are no chunks, so the gradients of W_o and bias must start as zeros
        new = torch.empty if len(rows) else torch.zeros
        shared = (new(x.shape, dtype=accumulate, device=rows.device) for x in (matrix, padded_bias))
        grads = Gradients(torch.empty_like(rows), *shared)
    size = (LOGITS_BYTES if on_cpu else LOGITS_BYTES_GPU) // (len(matrix) * dtype.itemsize)
    size = min(len(rows), max(multiple, size))
    # on a CPU, chunks share a buffer, because page faults of new buffers would take a sixth of the time
    buffer = rows.new_empty(size, len(matrix)) if on_cpu else None
    for chunk in chunks(len(rows), size, multiple):
        grad = steps.word_nll(
            rows[chunk], matrix, padded_bias, words[chunk],
            None if weight is None else weight[chunk], nll[chunk], buffer, with_gradient=with_gradients,
        )  # fmt: skip
        if grads is None:
            continue
        if chunk.stop > count:
            grad[count - chunk.start :] = 0  # padding rows have no gradient
        torch.mm(grad, matrix, out=grads.rows[chunk])
        if accumulate == dtype:
            grads.W_o.addmm_(grad.t(), rows[chunk], beta=int(chunk.start > 0))
        else:
            accumulate_sum(grads.W_o, torch.mm(grad.t(), rows[chunk]), first=chunk.start == 0)
        accumulate_sum(grads.bias, grad.sum(0), first=chunk.start == 0)
    if grads is not None:  # removes the padding
        vocabulary, maxout = W_o.shape
        grads = Gradients(
            grads.rows[:count, :maxout], grads.W_o[:vocabulary, :maxout], grads.bias[:vocabulary]
        )
    return nll[:count], grads


def accumulate_sum(total: Tensor, summand: Tensor, *, first: bool) -> None:
    """Adds `summand` to `total`. If `first`, `summand` overwrites `total` instead."""
    total.copy_(summand) if first else total.add_(summand)


def chunks(rows: int, most: int, multiple: int = 1) -> Iterator[slice]:
    """Splits a number of rows into as few slices as possible, each of at most `most` rows.

    `rows` must be a multiple of `multiple`. The length of each slice is also a multiple of `multiple`, and
    the lengths differ by at most `multiple`.
    """
    units, most = rows // multiple, most // multiple
    count = -(-units // most) if units else 0
    for i in range(count):
        yield slice(units * i // count * multiple, units * (i + 1) // count * multiple)


class SummedNLL(Function):
    """Σ weight · nll, a scalar. `forward` computes the gradients; `backward` only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        backend: Backend,
        rows: Tensor,
        W_o: Tensor,
        bias: Tensor,
        words: Tensor,
        dtype: torch.dtype,
        weight: Tensor | None,
    ) -> Tensor:
        with_gradients = any(ctx.needs_input_grad)
        with torch.autocast(rows.device.type, enabled=False):
            nll, grads = backend.run(
                rows, chunked_nll, rows, W_o, bias, words, dtype,
                with_gradients=with_gradients, weight=weight,
            )  # fmt: skip
        if grads is not None:
            ctx.save_for_backward(*grads)
        return nll.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_sum: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(grad * grad_sum for grad in ctx.saved_tensors), None, None, None
