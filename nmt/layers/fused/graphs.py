"""CUDA graphs: a recurrence is captured once a padded shape, and replayed in the same memory.

A loop over a sentence launches hundreds of small kernels; a CUDA graph launches them all at once,
but only over the buffers that it was captured with. So a `CapturedGraph` owns the buffers of inputs
and gradients of one shape: a batch is copied in, padded with zeros, and what comes out is copied
out. Autograd, DDP and the optimizer see none of it: the recurrences replay from within their
`torch.autograd.Function`, which also makes a graph indifferent to the stream that the parameters'
gradients are accumulated on.

Forward and backward of a batch share the graph's memory. Whoever has run the forward holds a
`GraphReplay` until its backward; a second batch of that shape in the meantime is computed without
a graph.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]
Inputs = Sequence[Tensor | None]
Shape = Sequence[int]
Forward = Callable[..., tuple[Tensors, Tensors]]  # inputs -> (outputs, what backward needs)
Backward = Callable[[Tensors, Tensors], Tensors]  # (saved, gradients of the first outputs) -> grads

MULTIPLE = 4  # lengths are rounded up to a multiple of this
LIMIT = 32  # shapes kept; with one length for both sides they reach to 128 words


class GraphCache:
    """The captured graphs of one recurrence, the least recently used of which is dropped.

    Args:
        limit: shapes kept.
        eager: on a CPU, go the same way over the same buffers, computing where a GPU would replay.
            Off, tensors that are not on a GPU use no graph.
    """

    def __init__(self, limit: int = LIMIT, *, eager: bool = False) -> None:
        self.limit = limit
        self.eager = eager
        self.graphs: OrderedDict[Any, CapturedGraph] = OrderedDict()
        self._pool: Any = None

    def __reduce__(self) -> Any:
        """A copy of a model, or a model sent to another process, starts with no graphs."""
        return _empty, (self.limit, self.eager)

    def replay(
        self,
        forward: Forward,
        backward: Backward,
        inputs: Inputs,
        shapes: Sequence[Shape],
        gradients: int,
        key: Any = None,
    ) -> GraphReplay | None:
        """Runs `forward(*inputs)` in a graph; None where the caller must run it himself.

        Args:
            inputs: may hold None; each is padded at its ends with zeros to its entry in `shapes`.
            gradients: how many outputs, from the first on, have a gradient.
            key: what else a graph depends on.
        """
        example = next(x for x in inputs if x is not None)
        if not (example.is_cuda or self.eager):
            return None
        dtypes = tuple(None if x is None else x.dtype for x in inputs)
        key = (tuple(map(tuple, shapes)), dtypes, example.device, key)
        graph = self.graphs.get(key)
        if graph is None:
            if example.is_cuda and self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            graph = CapturedGraph(forward, backward, inputs, shapes, gradients, self._pool)
            self.graphs[key] = graph
            if len(self.graphs) > self.limit:
                self.graphs.popitem(last=False)
        self.graphs.move_to_end(key)
        return graph.replay(inputs)


def _empty(limit: int, eager: bool) -> GraphCache:
    return GraphCache(limit, eager=eager)


def rounded(length: int) -> int:
    """The next multiple of 4: few shapes, little padding."""
    return -(-length // MULTIPLE) * MULTIPLE


class CapturedGraph:
    """A forward and its backward over buffers of one shape."""

    def __init__(
        self,
        forward: Forward,
        backward: Backward,
        inputs: Inputs,
        shapes: Sequence[Shape],
        gradients: int,
        pool: Any,
    ) -> None:
        self.inputs = tuple(
            None if x is None else x.new_zeros(tuple(shape))
            for x, shape in zip(inputs, shapes, strict=True)
        )
        self._current: weakref.ref[GraphReplay] | None = None
        cuda = next(x for x in inputs if x is not None).is_cuda
        if cuda:
            self._warm_up(forward, backward, gradients)
        capture = CudaFunction if cuda else EagerFunction

        def run_forward() -> Tensors:
            outputs, saved = forward(*self.inputs)
            self.count = len(outputs)
            return (*outputs, *saved)

        self._forward = capture(run_forward, pool)
        results = self._forward.results
        self.outputs, saved = results[: self.count], results[self.count :]
        self.upstream = tuple(torch.zeros_like(x) for x in self.outputs[:gradients])
        self._backward = capture(lambda: backward(saved, self.upstream), pool)
        self.gradients = self._backward.results

    def _warm_up(self, forward: Forward, backward: Backward, gradients: int) -> None:
        """Runs both once, so that kernels are compiled and libraries set up before a capture."""
        side, current = torch.cuda.Stream(), torch.cuda.current_stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            outputs, saved = forward(*self.inputs)
            backward(saved, tuple(torch.zeros_like(x) for x in outputs[:gradients]))
        current.wait_stream(side)

    def replay(self, inputs: Inputs) -> GraphReplay | None:
        """Computes the outputs of a batch; None while another one waits for its backward."""
        current = None if self._current is None else self._current()
        if current is not None and not current.done:
            return None
        for buffer, given in zip(self.inputs, inputs, strict=True):
            if buffer is not None and given is not None:
                fill(buffer, given)
        self._forward()
        replay = GraphReplay(self)
        self._current = weakref.ref(replay)
        return replay

    def backward(self, replay: GraphReplay, upstream: Tensors) -> None:
        if self._current is None or self._current() is not replay:
            raise RuntimeError(
                "a second backward pass through a recurrence whose memory a later batch has taken; "
                "build the model with graphs=False for that"
            )
        for buffer, given in zip(self.upstream, upstream, strict=True):
            fill(buffer, given)
        self._backward()


class GraphReplay:
    """One batch in a graph, from its forward to its backward; dropped, it frees the graph.

    Shapes given to the methods are those of the batch without the graph's padding.
    """

    def __init__(self, graph: CapturedGraph) -> None:
        self._graph = graph
        self.done = False

    def outputs(self, shapes: Sequence[Shape]) -> Tensors:
        """Copies of the outputs."""
        return tuple(map(cut, self._graph.outputs, shapes))

    def backward(self, upstream: Tensors, shapes: Sequence[Shape]) -> Tensors:
        """Copies of the gradients, in the order and the shapes of the inputs that have one."""
        self._graph.backward(self, upstream)
        self.done = True
        return tuple(map(cut, self._graph.gradients, shapes))


def fill(buffer: Tensor, given: Tensor) -> None:
    """Writes `given` to the front of a buffer, and zeros behind it."""
    if buffer.shape != given.shape:
        buffer.zero_()
    buffer[tuple(map(slice, given.shape))].copy_(given)


def cut(buffer: Tensor, shape: Shape) -> Tensor:
    """A copy of the front of a buffer."""
    return buffer[tuple(map(slice, shape))].clone()


class CudaFunction:
    """A function captured in a CUDA graph; `results` are its results, written anew by each call."""

    def __init__(self, function: Callable[[], Tensors], pool: Any) -> None:
        self._graph = torch.cuda.CUDAGraph()
        # other threads (NCCL's watchdog under DDP, pinned memory) go on while this one captures
        with torch.cuda.graph(self._graph, pool=pool, capture_error_mode="thread_local"):
            self.results = function()

    def __call__(self) -> None:
        self._graph.replay()


class EagerFunction:
    """The same without a GPU: computes anew, into the tensors of the first call."""

    def __init__(self, function: Callable[[], Tensors], pool: Any) -> None:
        self._function = function
        self.results = function()

    def __call__(self) -> None:
        for buffer, result in zip(self.results, self._function(), strict=True):
            buffer.copy_(result)
