"""Adadelta with clipping in one pass over memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adadelta

from nmt.fused.gpu.backend import launches_on

TAKEN = {"rho", "eps", "weight_decay"}  # arguments of Adadelta, besides the learning rate


class FusedAdadelta(Adadelta):
    """`torch.optim.Adadelta` for contiguous float32 parameters on one GPU, in one kernel.

    PyTorch's makes about 30 passes over memory of the size of the parameters, and this one 7: it
    reads parameter, gradient and both averages, and writes all but the gradient. The state has the
    same names and values, so that checkpoints serve both.
    """

    def __init__(self, params: Iterable[Any], lr: float, **options: Any) -> None:
        # what a CPU that resumes from a checkpoint of this reads there
        super().__init__(params, lr, foreach=True, **options)
        self._forget()

    def _forget(self) -> None:
        self._clip: Tensor | None = None
        self._blocks: dict[tuple[int, ...], Tensor] = {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()

    def clip(self, norm: Tensor, largest: float) -> None:
        """Has the next step scale the gradient, of this L2 norm, to one of at most `largest`.

        Gradients themselves are left as they are; otherwise as `torch.nn.utils.clip_grad_norm_`.
        """
        self._clip = (largest / (norm + 1e-6)).clamp(max=1.0)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        from nmt.fused.gpu.adadelta_kernel import move  # imports Triton, which a CPU does without

        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        clip, self._clip = self._clip, None
        for group in self.param_groups:
            tensors = [self._of(p) for p in group["params"] if p.grad is not None]
            if tensors:
                options = {name: float(group[name]) for name in ("lr", *TAKEN)}
                move(tensors, self._blocks_of(tensors), clip, **options)
                changed = [tensor for p, _, *averages in tensors for tensor in (p, *averages)]
                torch.autograd.graph.increment_version(changed)
        return loss

    def _of(self, p: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """A parameter, its gradient, and its averages, which begin as zeros."""
        state = self.state[p]
        if not state:
            state["step"] = torch.zeros((), device="cpu")
            state["square_avg"] = torch.zeros_like(p)
            state["acc_delta"] = torch.zeros_like(p)
        state["step"] += 1
        assert p.grad is not None
        return p, p.grad.contiguous(), state["square_avg"], state["acc_delta"]

    def _blocks_of(self, tensors: Sequence[Sequence[Tensor]]) -> Tensor:
        from nmt.fused.gpu.adadelta_kernel import tensors_of_blocks

        sizes = tuple(p.numel() for p, *_ in tensors)
        if sizes not in self._blocks:
            self._blocks[sizes] = tensors_of_blocks(sizes, tensors[0][0].device)
        return self._blocks[sizes]


def is_fusible(parameters: list[Any], options: Iterable[str]) -> bool:
    """Whether `FusedAdadelta` with these options can take the place of `torch.optim.Adadelta`."""
    return (
        all(isinstance(p, Tensor) for p in parameters)
        and all(p.dtype == torch.float32 and p.is_contiguous() for p in parameters)
        and len({p.device for p in parameters}) == 1
        and set(options) <= TAKEN
        and launches_on(parameters[0].device)
    )
