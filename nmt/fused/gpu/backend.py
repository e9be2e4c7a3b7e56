"""Chooses the operations of a recurrent step: Triton's kernels or PyTorch's.

The one place where this is decided. `nmt.fused.steps` holds the PyTorch operations, which
define what a step is; `nmt.fused.gpu.kernels` the same functions as Triton kernels.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

log = logging.getLogger(__name__)

# of a tensor: kernels count in 32 bits, which take fewer registers than 64
MOST_ENTRIES = 2**31 - 1


def steps_for(example: Tensor, *others: Tensor) -> Any:
    """The module of steps for tensors like `example`, with `others` that they read or write.

    That is kernels where Triton can launch them, but for float64, which is for checks of gradients
    and which the kernels do not keep, and for tensors whose entries 32 bits cannot number.
    """
    largest = max(tensor.numel() for tensor in (example, *others))
    if example.dtype != torch.float64 and largest <= MOST_ENTRIES and launches_on(example.device):
        from nmt.fused.gpu import kernels  # imports Triton, which a CPU does without

        return kernels
    from nmt.fused import steps

    return steps


def launches_on(device: torch.device) -> bool:
    """Whether Triton launches kernels on a device: on the current GPU, wherever the tensors are."""
    return device.type == "cuda" and device.index == torch.cuda.current_device() and has_triton()


@cache
def has_triton() -> bool:
    """Whether Triton is installed and, where there is a GPU, ready to launch.

    For that it builds a library of its own, once a machine, with a C compiler and Python's headers.
    """
    if find_spec("triton") is None:
        return False
    if not torch.cuda.is_available():
        return True
    from triton.runtime import driver

    try:
        driver.active.get_current_device()
    except Exception as error:  # of the compiler, the linker, the files that they write
        log.warning(
            "Triton is not ready (%s: %s), and training will be several times as slow; it needs a C "
            "compiler and Python's headers (the packages gcc and python3-dev)",
            type(error).__name__, str(error).partition("\n")[0],
        )  # fmt: skip
        return False
    return True
