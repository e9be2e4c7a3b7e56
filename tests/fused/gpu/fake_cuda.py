"""A fake GPU that computes nothing, but records launches, and copies that would block the CPU.

Tensors have shapes, types and devices but no content (`FakeTensorMode`). Reading content raises an error,
except that `item`, `float` and `bool` return 1. Operations on tensors of different devices raise an error, too.
`Launches` records operations and Triton kernels. A fake CUDA graph records what is launched during
its capture, and launches it again at each replay.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Iterator
from itertools import compress
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.cuda.amp.common
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

GPU = torch.device("cuda", 0)
# An operation launches no kernel if its name contains one of these words, or if it returns a view.
NOTHING = ("empty", "detach", "alias", "_unsafe_view", "lift_fresh", "is_pinned", "device")


class Launch(NamedTuple):
    """A Triton kernel, or a PyTorch operation. An operation launches one or a few kernels."""

    name: str
    bytes: int  # total size of its tensors; each tensor counts once


class Launches(TorchDispatchMode):
    """Records operations on the GPU, and the accesses and copies for which the CPU waits."""

    captured: list[Launch] | None = None  # launches of the graph that is being captured

    def clear(self) -> None:
        self.by_cpu: list[Launch] = []
        self.in_graphs: list[Launch] = []
        self.blocking: list[str] = []
        self.graphs = 0  # number of replays
        self.captures: list[tuple[Any, Any]] = []  # stream and memory pool of each capture
        self.warm_ups: list[Any] = []  # stream of each warm-up

    def take(self) -> Launches:
        """Returns what was recorded since the last call of `take`."""
        taken = copy.copy(self)
        self.clear()
        return taken

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name == "_local_scalar_dense":  # `item`, `float` and `bool` call this
            if args[0].device.type == "cuda":
                self.blocking.append(f"{func}: {tuple(args[0].shape)}")
            return 1
        result = func(*args, **kwargs)
        if func.is_view or any(part in name for part in NOTHING):
            return result
        tensors = [x for x in tree_leaves((args, kwargs, result)) if isinstance(x, Tensor)]
        if name in ("_to_copy", "copy_", "to") and len({x.device.type for x in tensors}) > 1:
            assert self.captured is None, "a copy between devices in a capture"
            asynchronous = kwargs.get("non_blocking", len(args) > 2 and args[2])
            if not asynchronous or tensors[-1].device.type == "cpu":
                self.blocking.append(f"{func}: {tuple(tensors[-1].shape)} {tensors[-1].device}")
        else:
            self.launch(name, [x for x in tensors if x.device.type == "cuda"])
        return result

    def launch(self, name: str, tensors: Iterable[Tensor]) -> None:
        once = {id(x): x for x in tensors}.values()
        if once:
            noted = Launch(name, sum(x.numel() * x.element_size() for x in once))
            (self.by_cpu if self.captured is None else self.captured).append(noted)

    def graph(self) -> Any:
        """Replaces `torch.cuda.CUDAGraph`."""
        captured: list[Launch] = []

        def replay() -> None:
            assert self.captured is None
            self.graphs += 1
            self.in_graphs += captured

        return SimpleNamespace(captured=captured, replay=replay)

    @contextlib.contextmanager
    def capture(
        self, graph: Any, pool: Any, stream: Any, capture_error_mode: str
    ) -> Iterator[None]:
        """Replaces `torch.cuda.graph`."""
        assert capture_error_mode == "thread_local"  # other threads may call CUDA during a capture
        self.captures.append((stream, pool))
        self.captured = graph.captured
        yield
        self.captured = None


@contextlib.contextmanager
def fake_cuda() -> Iterator[Launches]:
    """Gives new tensors no content, and replaces CUDA by a simulation that records launches."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    launches = Launches()
    launches.clear()
    current = _stream()
    available = torch.cuda.is_available()

    @contextlib.contextmanager
    def on(stream: Any) -> Iterator[None]:
        if stream is not current:
            launches.warm_ups.append(stream)
        yield

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
        tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        assert {x.fake_device for x in tensors} == {GPU}, kernel.fn.__name__
        launches.launch(kernel.fn.__name__, tensors)

    cuda = {
        "Stream": _stream,
        "stream": on,
        "is_available": lambda: available,  # precomputed, since every operation calls it
        "current_device": lambda: GPU.index,
        "current_stream": lambda device=None: current,
        "CUDAGraph": launches.graph,
        "graph": launches.capture,
        "is_bf16_supported": lambda *_, **__: True,
        "default_generators": [torch.Generator()],
    }
    with contextlib.ExitStack() as stack:
        for each in (
            patch.multiple(torch.cuda, **cuda),
            patch.object(torch.nn.utils.clip_grad, "_has_foreach_support", lambda *_: True),
            patch.object(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False),
            patch.object(torch.autograd, "grad", _grad),
            patch.object(Tensor, "backward", _backward),
            # Lightning deep-copies the values that it logs
            patch.object(Tensor, "__deepcopy__", lambda tensor, _: tensor.detach().clone()),
            # Copies of tensors must keep the mode, since tensors of two modes cannot be combined.
            patch.object(FakeTensorMode, "__deepcopy__", lambda mode, _: mode, create=True),
            patch.object(JITFunction, "run", run),
            patch.object(InterpretedFunction, "run", run),
            FakeTensorMode(),
            launches,
        ):
            stack.enter_context(each)
        yield launches


def _stream(device: torch.device = GPU) -> Any:
    """Replaces `torch.cuda.Stream`. Nothing runs on a stream, so waiting does nothing."""
    return SimpleNamespace(device=device, wait_stream=lambda stream: None)


@torch.no_grad()
def _backward(loss: Tensor, *_: Any, **__: Any) -> None:
    """Computes `loss.backward()` like autograd, whose engine would need a real GPU."""
    pending: dict[Any, dict[int, Tensor]] = {loss.grad_fn: {0: torch.ones_like(loss)}}
    while pending:
        node = max(pending, key=_order)
        given = pending.pop(node)
        if hasattr(node, "variable"):
            leaf = node.variable
            leaf.grad = given[0] if leaf.grad is None else leaf.grad.add_(given[0])
            continue
        gradients = [given.get(place) for place in range(len(node._input_metadata))]
        made = node(*gradients) if callable(node) else node.apply(*gradients)
        # A Python autograd function returns None for arguments that are not tensors. These are dropped.
        wanted = getattr(node, "needs_input_grad", [after for after, _ in node.next_functions])
        made = compress(made if isinstance(made, tuple) else [made], wanted)
        following = [each for each in node.next_functions if each[0]]
        for gradient, (after, place) in zip(made, following, strict=False):
            if gradient is not None:
                tensor = after._input_metadata[place]
                gradient = gradient.sum_to_size(tensor.shape).to(tensor.dtype)
                assert gradient.device == tensor.device
                sums = pending.setdefault(after, {})
                sums[place] = sums[place] + gradient if place in sums else gradient


def _order(node: Any) -> int:
    """Returns a sort key: highest for the latest operation, lowest for leaves (gradient accumulators)."""
    return -1 if hasattr(node, "variable") else node._sequence_nr()


def _grad(loss: Tensor, leaves: list[Tensor], **_: Any) -> tuple[Tensor, ...]:
    """Replaces `torch.autograd.grad` for leaf tensors."""
    _backward(loss)
    return tuple(torch.zeros_like(x) if x.grad is None else x.grad for x in leaves)
