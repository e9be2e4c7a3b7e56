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
from typing import Any

import torch
from torch import Tensor

from nmt.utils.errors import first_line

log = logging.getLogger(__name__)

allowed = True  # model.kernels, until a kernel has failed
chosen: Any = None  # the module of `using`


def steps_for(example: Tensor) -> Any:
    """The module of steps for tensors like this; float64 (checks of gradients) has no kernels."""
    if chosen is not None:
        return chosen
    if example.dtype != torch.float64 and has_kernels(example.device):
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
    return allowed


def turn_off(error: Exception) -> None:
    """Leaves the kernels out from now on, because of an error."""
    global allowed
    allowed = False
    needs = "; it needs the packages gcc and python3-dev" if "C compiler" in str(error) else ""
    log.warning(
        "no Triton kernels (%s: %s%s): PyTorch's operations take their place, and training is several "
        "times as slow", type(error).__name__, first_line(error), needs,
    )  # fmt: skip


def with_fallback(compute: Callable[[], Tensor], device: torch.device) -> Tensor:
    """What `compute` returns; where a kernel fails in it, that of a second call without kernels."""
    try:
        return compute()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        if not has_kernels(device):
            raise
        turn_off(error)
    return compute()
