"""Adadelta with clipping as a Triton kernel: one pass over memory. Importing this imports Triton."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.optim import Adadelta

ENTRIES = 2048  # of a tensor, that a program updates


@triton.jit(do_not_specialize=["lr", "rho", "rest", "eps", "weight_decay"])
def adadelta_kernel(
    p_at, g_at, v_at, u_at, clip, size, lr, rho, rest, eps, weight_decay, ENTRIES: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    here = i < size
    p = tl.load(p_at + i, mask=here, other=0)
    g = tl.load(g_at + i, mask=here, other=0)
    if clip is not None:
        g *= tl.load(clip)
    g += weight_decay * p
    v = rho * tl.load(v_at + i, mask=here, other=0) + rest * g * g
    u = tl.load(u_at + i, mask=here, other=0)
    step = tl.sqrt(u + eps) / tl.sqrt(v + eps) * g
    tl.store(p_at + i, p - lr * step, mask=here)
    tl.store(v_at + i, v, mask=here)
    tl.store(u_at + i, rho * u + rest * step * step, mask=here)


class FusedAdadelta(Adadelta):
    """`torch.optim.Adadelta` for contiguous float32 parameters on one GPU, a kernel a parameter.

    PyTorch's makes about 30 passes over memory of the size of the parameters, and this one 7: it
    reads parameter, gradient and both averages, and writes all but the gradient. The state has the
    same names and values, so that checkpoints serve both. Of the options it takes rho, eps and
    weight_decay.
    """

    _clip: Tensor | None = None

    def clip_next(self, norm: Tensor, largest: float) -> None:
        """Has the next step scale the gradient, of this L2 norm, to one of at most `largest`.

        Gradients themselves stay as they are; otherwise as `torch.nn.utils.clip_grad_norm_`.
        """
        self._clip = (largest / (norm + 1e-6)).clamp(max=1.0)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        clip, self._clip = self._clip, None
        for group in self.param_groups:
            lr, rho, eps, decay = (float(group[x]) for x in ("lr", "rho", "eps", "weight_decay"))
            lists: list[list[Tensor]] = [[] for _ in range(5)]
            self._init_group(group, *lists)
            for p, grad, square_avg, acc_delta, steps in zip(*lists, strict=True):
                steps.add_(1)
                adadelta_kernel[(triton.cdiv(p.numel(), ENTRIES),)](
                    p, grad.contiguous(), square_avg, acc_delta, clip, p.numel(),
                    lr, rho, 1 - rho, eps, decay, ENTRIES=ENTRIES, num_warps=8,
                )  # fmt: skip
                torch.autograd.graph.increment_version((p, square_avg, acc_delta))
        return loss
