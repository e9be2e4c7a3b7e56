"""Which operations carry out a step of a recurrence: Triton's kernels or PyTorch's own.

The one place where this is decided. `nmt.layers.fused.steps` holds the PyTorch operations, which
define what a step is; `nmt.layers.fused.kernels` the same functions as Triton kernels.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor


def steps_for(example: Tensor) -> Any:
    """The module of steps for tensors like `example`.

    That is kernels on CUDA where Triton is installed, but for float64, which is for checks of
    gradients and which the kernels do not keep.
    """
    if example.is_cuda and example.dtype != torch.float64 and has_triton():
        from nmt.layers.fused import kernels  # imports Triton, which a CPU does without

        return kernels
    from nmt.layers.fused import steps

    return steps


@cache
def has_triton() -> bool:
    return find_spec("triton") is not None
