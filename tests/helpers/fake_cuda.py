"""A GPU that computes nothing: what an update would launch, copy and wait for, without a device.

Tensors have shapes, types and devices but no content (`FakeTensorMode`), so that whatever would
have to be read by the CPU raises, and so does an operation on tensors of two devices. `Launches`
notes the operations and Triton's kernels; CUDA graphs note what is launched in a capture, and each
replay launches it again.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.cuda.amp.common
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GPU = torch.device("cuda", 0)
# what launches nothing, besides views
NOTHING = ("empty", "detach", "alias", "_unsafe_view", "lift_fresh", "is_pinned", "device")


class Launch(NamedTuple):
    """A kernel, or an operation that has one or a few."""

    name: str
    bytes: int  # of all tensors read or written, each once
    graph: bool  # replayed from a graph, not launched by the CPU


class Launches(TorchDispatchMode):
    """Notes what works on the GPU, and copies that the CPU waits for."""

    captured: list[Launch] | None = None  # by the graph that is being captured

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self.all: list[Launch] = []
        self.blocking: list[str] = []
        self.graphs = 0  # launched
        self.captures: list[tuple[Any, Any]] = []  # stream and pool of each
        self.warm_ups: list[Any] = []  # their streams

    def take(self) -> Launches:
        """What was noted since the last call."""
        taken = copy.copy(self)
        self.clear()
        return taken

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name == "_local_scalar_dense":  # `item`, `float`, `bool`: what is read is 1
            if args[0].device.type == "cuda":
                self.blocking.append(f"{func}: {tuple(args[0].shape)}")
            return 1
        result = func(*args, **kwargs)
        if func.is_view or any(part in name for part in NOTHING):
            return result
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        made = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        if name in ("_to_copy", "copy_", "to"):
            source = given[0] if name != "copy_" else given[1]
            if source.device.type != made[0].device.type:
                self._copy(func, source, made[0], args, kwargs)
                return result
        tensors = {id(x): x for x in (*given, *made) if x.device.type == "cuda"}
        if tensors:
            self.launch(name, list(tensors.values()))
        return result

    def launch(self, name: str, tensors: list[Tensor]) -> None:
        size = sum(x.numel() * x.element_size() for x in tensors)
        (self.all if self.captured is None else self.captured).append(
            Launch(name, size, self.captured is not None)
        )

    def replay(self, graph: list[Launch]) -> None:
        assert self.captured is None
        self.graphs += 1
        self.all += graph

    def _copy(self, func: Any, source: Tensor, made: Tensor, args: Any, kwargs: Any) -> None:
        assert self.captured is None, "a copy between devices in a capture"
        asynchronous = kwargs.get("non_blocking", len(args) > 2 and args[2])
        if not asynchronous or made.device.type == "cpu":
            self.blocking.append(f"{func}: {tuple(source.shape)} {source.device}>{made.device}")


class FakeStream:
    """In place of `torch.cuda.Stream`."""

    def __init__(self, device: torch.device = GPU) -> None:
        self.device = device

    def wait_stream(self, stream: Any) -> None:
        """Nothing runs, and so nothing has to wait."""


class FakeGraph:
    """In place of `torch.cuda.CUDAGraph`."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches
        self.captured: list[Launch] = []

    def replay(self) -> None:
        self.launches.replay(self.captured)


@contextlib.contextmanager
def _capture(graph: FakeGraph, pool: Any, stream: Any, capture_error_mode: str) -> Iterator[None]:
    """In place of `torch.cuda.graph`."""
    assert capture_error_mode == "thread_local"
    launches = graph.launches
    launches.captured = graph.captured
    launches.captures.append((stream, pool))
    try:
        yield
    finally:
        launches.captured = None


@contextlib.contextmanager
def _on(stream: Any, current: Any, launches: Launches) -> Iterator[None]:
    """In place of `torch.cuda.stream`."""
    if stream is not current:
        launches.warm_ups.append(stream)
    yield


@contextlib.contextmanager
def fake_cuda() -> Iterator[Launches]:
    """Tensors that are made inside have no content; those on `GPU` are as on a GPU."""
    launches = Launches()
    current = FakeStream()
    available = torch.cuda.is_available()
    replaced = {
        "Stream": FakeStream,
        "stream": lambda stream: _on(stream, current, launches),
        "is_available": lambda: available,  # asked for at every operation
        "current_device": lambda: GPU.index,
        "current_stream": lambda device=None: current,
        "CUDAGraph": lambda: FakeGraph(launches),
        "graph": _capture,
        "graph_pool_handle": object,
        "is_bf16_supported": lambda *_, **__: True,
        "default_generators": [torch.Generator()],
    }
    with contextlib.ExitStack() as patches:
        for name, replacement in replaced.items():
            patches.enter_context(patch.object(torch.cuda, name, replacement))
        clip = torch.nn.utils.clip_grad
        patches.enter_context(patch.object(clip, "_has_foreach_support", lambda *_: True))
        amp = torch.cuda.amp.common
        patches.enter_context(patch.object(amp, "amp_definitely_not_available", lambda: False))
        patches.enter_context(patch.object(Tensor, "backward", _backward))
        patches.enter_context(patch.object(torch.autograd, "grad", _grad))
        patches.enter_context(patch.object(Tensor, "pin_memory", lambda tensor: tensor))
        for kernel in _kernel_classes():
            patches.enter_context(patch.object(kernel, "run", _launcher(launches)))
        same = patch.object(FakeTensorMode, "__deepcopy__", lambda mode, _: mode, create=True)
        patches.enter_context(same)  # a copied tensor has its mode copied, and cannot meet others
        # Lightning copies what it logs
        copied = patch.object(Tensor, "__deepcopy__", lambda tensor, _: tensor.detach().clone())
        patches.enter_context(copied)
        patches.enter_context(FakeTensorMode())
        patches.enter_context(launches)
        yield launches


def _kernel_classes() -> list[type]:
    try:
        from triton.runtime.interpreter import InterpretedFunction
        from triton.runtime.jit import JITFunction
    except ImportError:
        return []
    return [JITFunction, InterpretedFunction]


def _launcher(launches: Launches) -> Any:
    """In place of the `run` of a Triton kernel."""

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        assert {x.fake_device for x in tensors} == {GPU}, kernel.fn.__name__
        launches.launch(kernel.fn.__name__, list({id(x): x for x in tensors}.values()))

    return run


@torch.no_grad()
def _backward(loss: Tensor, *_: Any, **__: Any) -> None:
    """`loss.backward()` as the engine makes it, which for tensors on a GPU asks for a real one."""
    root = loss.grad_fn
    assert root is not None
    awaited: Counter[Any] = Counter()
    nodes = {root}
    stack = [root]
    while stack:
        for node, _place in stack.pop().next_functions:
            if node is not None:
                awaited[node] += 1
                if node not in nodes:
                    nodes.add(node)
                    stack.append(node)
    pending: dict[Any, dict[int, Tensor]] = {root: {0: torch.ones_like(loss)}}
    ready: list[Any] = [root]
    while ready:
        node = ready.pop()
        given = pending.pop(node, {})
        gradients = iter(_gradients(node, given))
        for following, place in node.next_functions:
            gradient = next(gradients, None)
            if following is None:
                continue
            while gradient is None and isinstance(node, torch.autograd.function.BackwardCFunction):
                gradient = next(gradients)  # of what is no tensor, there is no next function
            if gradient is not None:
                sums = pending.setdefault(following, {})
                gradient = _fit(gradient, following._input_metadata[place])
                sums[place] = sums[place] + gradient if place in sums else gradient
            awaited[following] -= 1
            if not awaited[following]:
                ready.append(following)


def _grad(loss: Tensor, leaves: list[Tensor], **_: Any) -> tuple[Tensor, ...]:
    """`torch.autograd.grad` for leaves."""
    _backward(loss)
    return tuple(torch.zeros_like(x) if x.grad is None else x.grad for x in leaves)


def _gradients(node: Any, given: dict[int, Tensor]) -> tuple[Tensor | None, ...]:
    """What a node gives to those that follow it; a leaf adds its gradient up."""
    if hasattr(node, "variable"):
        leaf = node.variable
        leaf.grad = given[0] if leaf.grad is None else leaf.grad.add_(given[0])
        return ()
    if not given:
        return (None,) * len(node.next_functions)
    gradients = [given.get(place) for place in range(len(node._input_metadata))]
    result = node(*gradients) if callable(node) else node.apply(*gradients)
    return result if isinstance(result, tuple) else (result,)


def _fit(gradient: Tensor, wanted: Any) -> Tensor:
    """A gradient in the shape and type of its tensor, on its device."""
    if gradient.shape != wanted.shape:
        gradient = gradient.sum_to_size(wanted.shape)
    assert gradient.device == wanted.device
    return gradient.to(wanted.dtype)
