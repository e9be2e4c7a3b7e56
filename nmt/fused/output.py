"""The output layer without all logits in memory at once.

B batch, T target length, M maxout.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.fused.cross_entropy import SummedNLL, chunked_nll
from nmt.layers import Output
from nmt.layers.precision import accumulate_dtype, compute_dtype


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
