"""Adadelta and gradient clipping in one Triton kernel. Importing this module imports Triton."""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.optim import Adadelta

ENTRIES = 2048  # number of entries that one instance of the kernel updates


@triton.jit(do_not_specialize=["lr", "rho", "rest", "eps", "weight_decay"])
def adadelta_kernel(
    parameter, grad, square_avg, acc_delta, clip, size, lr, rho, rest, eps, weight_decay,
    ENTRIES: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * ENTRIES + tl.arange(0, ENTRIES)
    inside = i < size
    p = tl.load(parameter + i, mask=inside, other=0)
    g = tl.load(grad + i, mask=inside, other=0)
    if clip is not None:
        g *= tl.load(clip)
    g += weight_decay * p
    v = rho * tl.load(square_avg + i, mask=inside, other=0) + rest * g * g
    u = tl.load(acc_delta + i, mask=inside, other=0)
    step = tl.sqrt(u + eps) / tl.sqrt(v + eps) * g
    tl.store(parameter + i, p - lr * step, mask=inside)
    tl.store(square_avg + i, v, mask=inside)
    tl.store(acc_delta + i, rho * u + rest * step * step, mask=inside)


class FusedAdadelta(Adadelta):
    """`torch.optim.Adadelta` with one kernel launch per parameter.

    Parameters must be contiguous float32 tensors on one GPU. PyTorch's version reads or writes each entry
    about 30 times per step. This version needs 4 reads (parameter, gradient and two averages) and 3 writes
    (parameter and averages). The optimizer state has the same names and values as in PyTorch, so the two
    versions can load each other's checkpoints. Only the options lr, rho, eps and weight_decay are supported.
    """

    _clip: Tensor | None = None

    def clip_next(self, norm: Tensor, max_norm: float) -> None:
        """Makes the next `step` clip the gradient, whose L2 norm is `norm`, to the norm `max_norm`.

        The update is the same as after `torch.nn.utils.clip_grad_norm_`, but `grad` itself does not change.
        """
        self._clip = (max_norm / (norm + 1e-6)).clamp(max=1.0)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        clip = self._clip
        self._clip = None
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
