"""The one place here that knows how a model keeps its CUDA graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from nmt.fused.gpu import backend, captured, graphs


def caches(net: nn.Module) -> list[Any]:
    """The caches of a model's encoder and decoder."""
    found = [getattr(part, "graph_cache", None) for part in net.modules()]
    return [cache for cache in found if cache is not None]


def rehearse_recordings(net: nn.Module) -> None:
    """Has a model on a CPU go the ways of its graphs, computing where a GPU would replay."""
    for cache in caches(net):
        cache.eager = True


def rehearse_all_recordings() -> None:
    """`rehearse_recordings` for every model that this process will make."""
    defaults = graphs.GraphCache.__init__.__kwdefaults__
    assert defaults is not None
    defaults["eager"] = True


def limit_recordings(net: nn.Module) -> None:
    """Gives the graphs of a model room for one shape: its cache is full with the first."""
    for cache in caches(net):
        cache.limit = 1  # byte


def recorded(net: nn.Module) -> int:
    """Graphs that a model holds."""
    return sum(len(cache.graphs) for cache in caches(net))


@contextmanager
def without_kernels() -> Iterator[None]:
    """PyTorch operations in the place of kernels."""
    found = backend.has_triton
    backend.has_triton = lambda: False  # type: ignore[assignment]
    try:
        yield
    finally:
        backend.has_triton = found


@contextmanager
def products_apart() -> Iterator[None]:
    """Kernels, but products by PyTorch."""
    if not backend.has_triton():
        yield
        return
    from nmt.fused.gpu.kernels import gates

    found = gates.SENTENCES
    gates.SENTENCES = 0
    try:
        yield
    finally:
        gates.SENTENCES = found


@contextmanager
def no_memory_in_captures() -> Iterator[None]:
    """Every capture of a rehearsed graph runs out of memory."""
    found = captured.EagerFunction.__init__

    def fail(self: Any, *arguments: Any) -> None:
        raise torch.OutOfMemoryError("no memory: rehearsed")

    captured.EagerFunction.__init__ = fail  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        captured.EagerFunction.__init__ = found  # type: ignore[method-assign]
