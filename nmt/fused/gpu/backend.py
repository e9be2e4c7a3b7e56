"""Chooses the operations of a recurrent step: Triton's kernels or PyTorch's.

The one place where this is decided. `nmt.fused.steps` holds the PyTorch operations, which define
what a step is; `nmt.fused.gpu.kernels` the same functions as Triton kernels. Kernels that cannot be
launched, or compute a wrong number, are left out from then on, with one warning.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar

import torch
from torch import Tensor

from nmt.utils.errors import first_line

log = logging.getLogger(__name__)

Result = TypeVar("Result")

MOST_ENTRIES = 2**31 - 1  # of a tensor: kernels count in 32 bits, which take fewer registers

allowed = True  # model.kernels, until a kernel has failed
chosen: Any = None  # the module of `using`


def steps_for(example: Tensor, *others: Tensor) -> Any:
    """The module of steps for tensors like `example`, with `others` that they read or write.

    float64 runs without kernels (gradient checks only), and so do tensors whose entries 32 bits
    cannot number.
    """
    if chosen is not None:
        return chosen
    largest = max(tensor.numel() for tensor in (example, *others))
    if example.dtype != torch.float64 and largest <= MOST_ENTRIES and has_kernels(example.device):
        from nmt.fused.gpu import kernels  # imports Triton, which a CPU does without

        return kernels
    from nmt.fused import steps

    return steps


@contextlib.contextmanager
def using(module: Any) -> Iterator[None]:
    """Takes this module of steps inside, whatever the tensors."""
    global chosen
    before, chosen = chosen, module
    try:
        yield
    finally:
        chosen = before


def allow_kernels(wanted: bool) -> None:
    """Whether this process uses kernels where it can."""
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
    """Whether the kernels compute on a device what PyTorch's operations do; else logs a warning."""
    try:
        if find_spec("triton") is None:
            raise ImportError("Triton is not installed")
        log.info("compiling the Triton kernels, which takes about 10 s the first time")
        # by name: the network of the probe is made of layers that ask this module for their steps
        importlib.import_module("nmt.fused.gpu.probe").probe(device)
    except Exception as error:  # of the compiler, its tools, the driver, and wrong numbers
        turn_off(error)
        return False
    return True


def turn_off(error: Exception) -> None:
    """Leaves the kernels out from now on, because of an error."""
    allow_kernels(False)
    needs = "; it needs the packages gcc and python3-dev" if "C compiler" in str(error) else ""
    log.warning(
        "no Triton kernels (%s: %s%s): PyTorch's operations take their place, and training is several "
        "times as slow", type(error).__name__, first_line(error), needs,
    )  # fmt: skip


def with_fallback(compute: Callable[[], Result], device: torch.device) -> Result:
    """What `compute` returns; where a kernel fails in it, that of a second call without kernels."""
    if not has_kernels(device):
        return compute()
    try:
        return compute()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        turn_off(error)
    return compute()
