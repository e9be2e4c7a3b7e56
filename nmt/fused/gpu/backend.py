"""Chooses the implementation of a recurrent step: Triton kernels or PyTorch operations.

`nmt.fused.steps` holds the PyTorch operations, which define a step. `nmt.fused.gpu.kernels`
implements the same functions in Triton. If a kernel cannot be launched or computes a wrong number, kernels
are disabled with one warning.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from nmt.utils.errors import first_line

log = logging.getLogger(__name__)

allowed = True  # `model.kernels`; False after a kernel has failed
chosen: Any = None  # the module set by `using`


def steps_for(example: Tensor) -> Any:
    """Returns the module of steps for tensors like `example`; float64 (gradcheck) has no kernels."""
    if chosen is not None:
        return chosen
    if example.dtype != torch.float64 and has_kernels(example.device):
        from nmt.fused.gpu import kernels  # imports Triton: not needed on a CPU

        return kernels
    from nmt.fused import steps

    return steps


@contextlib.contextmanager
def using(module: Any) -> Iterator[None]:
    """Within this context `steps_for` always returns `module`."""
    global chosen
    previous = chosen
    chosen = module
    try:
        yield
    finally:
        chosen = previous


def has_kernels(device: torch.device) -> bool:
    """Whether kernels are used on a device. The first call compiles and checks them."""
    return allowed and launches_on(device) and kernels_are_correct(device)


def launches_on(device: torch.device) -> bool:
    """True only for the current GPU: Triton launches there, even if the tensors are on another one."""
    return device.type == "cuda" and device.index == torch.cuda.current_device()


@cache
def kernels_are_correct(device: torch.device) -> bool:
    """Whether kernels and PyTorch operations agree on a device. If not, disables kernels."""
    try:
        if find_spec("triton") is None:
            raise ImportError("Triton is not installed")
        log.info("compiling the Triton kernels, which takes about 10 s the first time")
        # imported here to avoid a circular import
        importlib.import_module("nmt.fused.gpu.probe").probe(device)
    except Exception as error:  # from the compiler, its tools or the driver, or wrong numbers
        disable_kernels(error)
    return allowed


def disable_kernels(error: Exception) -> None:
    """Disables kernels from now on, and logs the error as a warning."""
    global allowed
    allowed = False
    advice = "; install gcc and python3-dev" if "C compiler" in str(error) else ""
    log.warning(
        "Triton kernels are disabled (%s: %s%s): PyTorch operations are used; training is several times "
        "slower", type(error).__name__, first_line(error), advice,
    )  # fmt: skip


def with_fallback(compute: Callable[[], Tensor], device: torch.device) -> Tensor:
    """Returns `compute()`. If a kernel fails, disables kernels and calls `compute` again."""
    try:
        return compute()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        if not has_kernels(device):
            raise
        disable_kernels(error)
    return compute()
