"""Selects whether a network uses Triton kernels or PyTorch operations.

`nmt.fused.steps` is the reference implementation in PyTorch. `nmt.fused.gpu.kernels` implements the
same functions in Triton.
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
    """Runs the functions of fused layers with Triton kernels or PyTorch operations.

    All fused layers of a network share one backend. If a kernel fails, the backend logs one warning and uses
    PyTorch operations from then on.

    Args:
        kernels: whether a GPU may use Triton kernels.
        verify: checks whether kernels compute correct results on a device. None: no check.

    Attributes:
        kernels: becomes False if a kernel fails.
        steps: the module with the PyTorch functions. `nmt.fused.gpu.probe` and tests replace it.
    """

    steps: Any = steps

    def __init__(
        self, kernels: bool = False, verify: Callable[[torch.device], bool] | None = None
    ) -> None:
        self.kernels = kernels
        self.verify = verify

    def has_kernels(self, device: torch.device) -> bool:
        """Whether kernels are used on a device. The first call compiles and checks the kernels."""
        allowed = self.kernels and launches_on(device)
        return allowed and (self.verify is None or self.verify(device))

    def run(
        self, example: Tensor, compute: Callable[..., Result], *arguments: Any, **options: Any
    ) -> Result:
        """Returns `compute(steps, *arguments, **options)`, with `steps` for the device and dtype of `example`.

        If a kernel fails, `compute` is called again with the PyTorch functions, so it must not change its
        arguments. There are no kernels for float64, which gradient checks use.
        """
        if example.dtype == torch.float64 or not self.has_kernels(example.device):
            return compute(self.steps, *arguments, **options)
        from nmt.fused.gpu import kernels  # imports Triton, which is not needed on a CPU

        try:
            return compute(kernels, *arguments, **options)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            self.kernels = False
            warn_of_failure(error)
        # outside `except`, because inside it the traceback keeps the tensors of the first call in memory
        return compute(self.steps, *arguments, **options)


def launches_on(device: torch.device) -> bool:
    """Whether `device` is the current GPU. Triton launches all kernels on the current GPU."""
    return device.type == "cuda" and device.index == torch.cuda.current_device()


def warn_of_failure(error: Exception) -> None:
    """Logs a warning that kernels are disabled, with the reason."""
    advice = "; install gcc and python3-dev" if "C compiler" in str(error) else ""
    log.warning(
        "Triton kernels are disabled (%s: %s%s): PyTorch operations are used; training is several times "
        "slower", type(error).__name__, first_line(error), advice,
    )  # fmt: skip
