"""Adadelta with clipping in one pass over memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adadelta

from nmt.fused.gpu.backend import has_kernels

OPTIONS = {"rho", "eps", "weight_decay"}  # arguments of Adadelta, besides the learning rate


class FusedAdadelta(Adadelta):
    """`torch.optim.Adadelta` for contiguous float32 parameters on one GPU, a kernel a parameter.

    PyTorch's makes about 30 passes over memory of the size of the parameters, and this one 7: it
    reads parameter, gradient and both averages, and writes all but the gradient. The state has the
    same names and values, so that checkpoints serve both.
    """

    _clip: Tensor | None = None

    def clip(self, norm: Tensor, largest: float) -> None:
        """Has the next step scale the gradient, of this L2 norm, to one of at most `largest`.

        Gradients themselves stay as they are; otherwise as `torch.nn.utils.clip_grad_norm_`.
        """
        self._clip = (largest / (norm + 1e-6)).clamp(max=1.0)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        from nmt.fused.gpu.kernels.adadelta import adadelta  # imports Triton

        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        clip, self._clip = self._clip, None
        for group in self.param_groups:
            options: dict[str, Any] = {name: float(group[name]) for name in ("lr", *OPTIONS)}
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = torch.zeros((), device="cpu")
                    state["square_avg"] = torch.zeros_like(p)
                    state["acc_delta"] = torch.zeros_like(p)
                state["step"] += 1
                averages = state["square_avg"], state["acc_delta"]
                adadelta(p, p.grad.contiguous(), *averages, clip, **options)
                torch.autograd.graph.increment_version((p, *averages))
        return loss


def is_fusible(parameters: list[Any], options: Iterable[str]) -> bool:
    """Whether `FusedAdadelta` with these options can take the place of `torch.optim.Adadelta`."""
    return (
        all(isinstance(p, Tensor) for p in parameters)
        and all(p.dtype == torch.float32 and p.is_contiguous() for p in parameters)
        and len({p.device for p in parameters}) == 1
        and set(options) <= OPTIONS
        and has_kernels(parameters[0].device)
    )
