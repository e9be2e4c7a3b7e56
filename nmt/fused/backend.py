"""Chooses what computes the steps of a network: Triton kernels or PyTorch operations.

`nmt.fused.steps` holds the PyTorch operations, which define a step. `nmt.fused.gpu.kernels`
implements the same functions in Triton.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from nmt.fused import steps
from nmt.utils.errors import first_line

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Backend:
    """Runs loops over steps. All fused parts of a network share one backend.

    If a kernel fails, this backend uses PyTorch operations from then on, with one warning.

    Args:
        kernels: whether a GPU may use Triton kernels.
        verify: returns whether kernels compute correctly on a device; called before kernels are used.

    Attributes:
        kernels: becomes False if a kernel fails.
        steps: the module that computes steps without kernels. The probe and tests set another module.
    """

    steps: Any = steps

    def __init__(
        self, kernels: bool = False, verify: Callable[[torch.device], bool] | None = None
    ) -> None:
        self.kernels = kernels
        self.verify = verify

    def has_kernels(self, device: torch.device) -> bool:
        """Whether kernels are used on a device. The first call compiles and checks them."""
        allowed = self.kernels and launches_on(device)
        return allowed and (self.verify is None or self.verify(device))

    def run(
        self, example: Tensor, compute: Callable[..., Result], *arguments: Any, **options: Any
    ) -> Result:
        """Returns `compute(steps, *arguments, **options)`; `steps` fits the device and dtype of `example`.

        Calls `compute` a second time if a kernel fails, so `compute` must not change its arguments.
        float64, which gradient checks use, has no kernels.
        """
        if example.dtype == torch.float64 or not self.has_kernels(example.device):
            return compute(self.steps, *arguments, **options)
        from nmt.fused.gpu import kernels  # imports Triton, which a CPU does not need

        try:
            return compute(kernels, *arguments, **options)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            self.kernels = False
            warn_of_failure(error)
        # not inside `except`: there the traceback still holds the tensors of the first call
        return compute(self.steps, *arguments, **options)


def launches_on(device: torch.device) -> bool:
    """Whether `device` is the current GPU: Triton launches there, even if tensors are on another GPU."""
    return device.type == "cuda" and device.index == torch.cuda.current_device()


def warn_of_failure(error: Exception) -> None:
    """Logs that kernels are not used, and why."""
    advice = "; install gcc and python3-dev" if "C compiler" in str(error) else ""
    log.warning(
        "Triton kernels are disabled (%s: %s%s): PyTorch operations are used; training is several times "
        "slower", type(error).__name__, first_line(error), advice,
    )  # fmt: skip
