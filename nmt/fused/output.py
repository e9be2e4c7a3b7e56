"""The output layer: cross-entropy over a large vocabulary without all logits in memory at once.

B batch, T target length, R rows (target words), M maxout, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from nmt.fused.gpu import backend
from nmt.fused.steps import aligned
from nmt.layers import Output
from nmt.layers.precision import accumulate_dtype, compute_dtype

# On a CPU the rows of 16-bit products are padded to a multiple of this number. oneDNN compiles a
# product for each new number of rows, and the number of words differs from batch to batch: to compile
# the three products of 700 rows and 3,000 words takes as long as to compute them.
GRANULE = 32
# Bytes of logits that are alive at once: on a CPU they are to stay near the cache, on a GPU they are
# to be enough to fill the device.
LOGITS, LOGITS_OF_A_GPU = 2**22, 2**28


class FusedOutput(Output):
    """See `nmt.layers.Output`. Only `nll` with a gradient is computed as there."""

    def logits(self, readout: Tensor) -> Tensor:
        on_cpu = readout.device.type == "cpu" and torch.backends.mkldnn.is_available()
        if torch.is_grad_enabled() or not on_cpu or compute_dtype(self.W_o) != torch.float32:
            return super().logits(readout)
        # `linear` has MKL make products of float32, which uses AVX-512 on processors of Intel alone
        multiply = torch.ops.mkldnn._linear_pointwise
        logits: Tensor = multiply(readout.float(), self.W_o, self.bias, "none", [], "")
        return logits

    def nll(self, readout: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        if torch.is_grad_enabled():
            return super().nll(readout, target, mask)
        rows, words, weight = self._rows(readout, target, mask)
        dtype = compute_dtype(self.W_o)
        with torch.autocast(readout.device.type, enabled=False):
            nll, _ = chunked_nll(rows, self.W_o, self.bias, words, dtype, weight=weight)
        if readout.is_cuda:
            return nll.view_as(mask)
        return nll.new_zeros(mask.shape).masked_scatter(mask, nll)

    def loss(self, readout: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        rows, words, weight = self._rows(readout, target, mask)
        dtype = compute_dtype(self.W_o)
        total: Tensor = SummedNLL.apply(rows, self.W_o, self.bias, words, dtype, weight)
        return total

    def _rows(
        self, readout: Tensor, target: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Readouts (R, M), words (R) and weights (R) of the cross-entropy.

        On a CPU the real positions only. How many there are a GPU would have to be waited for, with
        nothing left to do for it meanwhile: there padded positions are computed too, weighing 0.
        """
        if not readout.is_cuda:
            return readout[mask], target[mask], None
        weight = mask.flatten().to(accumulate_dtype(compute_dtype(self.W_o)))
        return readout.flatten(0, 1), target.flatten(), weight


class Gradients(NamedTuple):
    """Derivatives of Σ_r weight_r nll_r."""

    rows: Tensor  # (R, M)
    W_o: Tensor  # (V, M)
    bias: Tensor  # (V)


def chunked_nll(
    rows: Tensor,
    W_o: Tensor,
    bias: Tensor,
    words: Tensor,
    dtype: torch.dtype,
    *,
    with_gradients: bool = False,
    weight: Tensor | None = None,
) -> tuple[Tensor, Gradients | None]:
    """weight · -log p(word) (R) of readouts (R, M); with `with_gradients` also the gradients of its sum.

    `weight` is (R), or None for 1. `dtype` is the type of the products.
    """
    steps = backend.steps_for(rows)
    accumulate = accumulate_dtype(dtype)
    on_cpu, count = rows.device.type == "cpu", len(rows)
    granule = GRANULE if on_cpu and dtype.itemsize == 2 else 1
    if extra := -count % granule:
        rows, words = pad(rows, (0, 0, 0, extra)), pad(words, (0, extra))
        weight = None if weight is None else pad(weight, (0, extra))
    rows, matrix = operand(rows, dtype), operand(W_o, dtype)
    nll = rows.new_empty(len(rows), dtype=accumulate)
    grads = None
    if with_gradients:
        new = torch.empty if len(rows) else torch.zeros
        of_weights = (new(x.shape, dtype=accumulate, device=rows.device) for x in (W_o, bias))
        grads = Gradients(torch.empty_like(rows), *of_weights)
    size = (LOGITS if on_cpu else LOGITS_OF_A_GPU) // (len(W_o) * dtype.itemsize)
    size = min(len(rows), max(granule, size))
    # on a CPU new memory for each chunk is fresh pages, a sixth of the cross-entropy's time
    memory = rows.new_empty(size, len(W_o)) if on_cpu else None
    for here in chunks(len(rows), size, granule):
        grad = steps.word_nll(
            rows[here], matrix, bias, words[here], None if weight is None else weight[here],
            nll[here], memory, with_gradient=with_gradients,
        )  # fmt: skip
        if grads is None:
            continue
        if here.stop > count:
            grad[count - here.start :] = 0
        torch.mm(grad, matrix, out=grads.rows[here])
        if accumulate == dtype:
            grads.W_o.addmm_(grad.t(), rows[here], beta=int(here.start > 0))
        else:
            accumulate_sum(grads.W_o, torch.mm(grad.t(), rows[here]), first=here.start == 0)
        accumulate_sum(grads.bias, grad.sum(0), first=here.start == 0)
    if extra:
        nll, grads = nll[:count], grads and grads._replace(rows=grads.rows[:count])
    return nll, grads


def operand(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A matrix in the type of products; on a GPU with rows that begin at multiples of 16 bytes.

    Tensor cores are fed that much at a time; 500 entries of bf16 would rule the best products out.
    """
    if tensor.device.type == "cpu" or tensor.shape[1] * dtype.itemsize % 16 == 0:
        return tensor.to(dtype)
    return aligned(len(tensor), tensor.shape[1], tensor.device, dtype).copy_(tensor)


def accumulate_sum(total: Tensor, summand: Tensor, *, first: bool) -> None:
    """Adds to `total`; where it is the `first` summand, `total` may hold anything."""
    total.copy_(summand) if first else total.add_(summand)


def chunks(rows: int, most: int, granule: int = 1) -> Iterator[slice]:
    """The smallest number of slices of at most `most` rows; their sizes differ by a granule at most.

    `rows` and the size of each slice are multiples of `granule`.
    """
    units, most = rows // granule, most // granule
    count = -(-units // most) if units else 0
    for i in range(count):
        yield slice(units * i // count * granule, units * (i + 1) // count * granule)


class SummedNLL(Function):
    """Σ weight · nll, (). The forward pass computes the gradients; backward only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        W_o: Tensor,
        bias: Tensor,
        words: Tensor,
        dtype: torch.dtype,
        weight: Tensor | None,
    ) -> Tensor:
        with_gradients = any(ctx.needs_input_grad)
        with torch.autocast(rows.device.type, enabled=False):
            nll, grads = chunked_nll(
                rows, W_o, bias, words, dtype, with_gradients=with_gradients, weight=weight
            )
        if grads is not None:
            ctx.save_for_backward(*grads)
        return nll.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_sum: Tensor) -> tuple[Tensor | None, ...]:
        return *(grad * grad_sum for grad in ctx.saved_tensors), None, None, None
