"""Chooses the operations of a recurrent step: Triton's kernels or PyTorch's.

The one place where this is decided. `nmt.fused.steps` holds the PyTorch operations, which define
what a step is; `nmt.fused.gpu.kernels` the same functions as Triton kernels. Kernels that cannot be
launched, or compute a wrong number, are left out from then on, with one warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar

import torch
from torch import Tensor

log = logging.getLogger(__name__)

Result = TypeVar("Result")

MOST_ENTRIES = 2**31 - 1  # of a tensor: kernels count in 32 bits, which take fewer registers

allowed = True  # model.kernels, until a kernel has failed


def steps_for(example: Tensor, *others: Tensor) -> Any:
    """The module of steps for tensors like `example`, with `others` that they read or write.

    float64 runs without kernels (gradient checks only), and so do tensors whose entries 32 bits
    cannot number.
    """
    largest = max(tensor.numel() for tensor in (example, *others))
    if example.dtype != torch.float64 and largest <= MOST_ENTRIES and has_kernels(example.device):
        from nmt.fused.gpu import kernels  # imports Triton, which a CPU does without

        return kernels
    from nmt.fused import steps

    return steps


def allow_kernels(wanted: bool) -> None:
    """Whether kernels are used where they can be; of this process."""
    global allowed
    allowed = wanted


def has_kernels(device: torch.device) -> bool:
    """Whether the tensors of a device are computed with kernels; the first call compiles them."""
    return allowed and launches_on(device) and is_right(device)


def launches_on(device: torch.device) -> bool:
    """Whether Triton may launch on a device: on the current GPU, wherever the tensors are."""
    return device.type == "cuda" and device.index == torch.cuda.current_device()


@cache
def is_right(device: torch.device) -> bool:
    """Whether each kernel computes on a device what PyTorch's operations do; else logs a warning."""
    if find_spec("triton") is None:
        turn_off("Triton is not installed")
        return False
    log.info("compiling the Triton kernels, which takes about 10 s the first time")
    try:
        from nmt.fused.gpu.probe import probe

        probe(device)
    except Exception as error:  # of the compiler, its tools, the driver, and wrong numbers
        turn_off(described(error))
        return False
    return True


def turn_off(reason: str) -> None:
    """Leaves the kernels out from now on."""
    allow_kernels(False)
    log.warning(
        "no Triton kernels (%s): PyTorch's operations take their place, and training is several times "
        "as slow", reason,
    )  # fmt: skip


def described(error: Exception) -> str:
    """An error in a line, with what Triton lacks if it is a C compiler."""
    text = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    if "C compiler" in text:
        text += "; install the packages gcc and python3-dev"
    return text


def with_fallback(compute: Callable[[], Result], device: torch.device) -> Result:
    """What `compute` returns; where a kernel fails in it, that of a second call without kernels."""
    if not has_kernels(device):
        return compute()
    try:
        return compute()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        reason = described(error)
    turn_off(reason)
    return compute()
