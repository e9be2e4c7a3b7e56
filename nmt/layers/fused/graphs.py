"""A recurrence recorded once a padded shape, and replayed in the same memory: CUDA graphs.

A loop over a sentence launches hundreds of small kernels; a CUDA graph launches them all at once,
but only over the buffers that it was captured with. So a `CapturedGraph` owns the buffers of inputs and
gradients of one shape: a batch is copied in, padded with zeros, and what comes out is copied out.
Nothing recorded is seen by autograd, by DDP or by the optimizer: the recurrences call it from
within their `torch.autograd.Function`, which also makes it indifferent to the stream that the
parameters' gradients are accumulated on.

Forward and backward of a batch share the recording's memory. Whoever has run the forward holds a
`GraphReplay` until its backward; a second batch of that shape in the meantime is computed without a
recording.
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
    """The recordings of one recurrence, the least recently used of which is dropped.

    Args:
        limit: shapes kept.
        rehearse: on a CPU, go the same way over the same buffers, computing where a GPU would
            replay. Off, tensors that are not on a GPU are not recorded.
    """

    def __init__(self, limit: int = LIMIT, *, rehearse: bool = False) -> None:
        self.limit = limit
        self.rehearse = rehearse
        self.kept: OrderedDict[Any, CapturedGraph] = OrderedDict()
        self._pool: Any = None

    def __reduce__(self) -> Any:
        """A copy of a model, or a model sent to another process, starts with no recordings."""
        return _empty, (self.limit, self.rehearse)

    def lease(
        self,
        forward: Forward,
        backward: Backward,
        inputs: Inputs,
        shapes: Sequence[Shape],
        gradients: int,
        key: Any = None,
    ) -> GraphReplay | None:
        """Runs `forward(*inputs)` in a recording; None where the caller must run it himself.

        Args:
            inputs: may hold None; each is padded at its ends with zeros to its entry in `shapes`.
            gradients: how many outputs, from the first on, have a gradient.
            key: what else a recording depends on.
        """
        example = next(x for x in inputs if x is not None)
        if not (example.is_cuda or self.rehearse):
            return None
        types = tuple(None if x is None else x.dtype for x in inputs)
        place = (tuple(map(tuple, shapes)), types, example.device, key)
        recording = self.kept.get(place)
        if recording is None:
            if example.is_cuda and self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            recording = CapturedGraph(forward, backward, inputs, shapes, gradients, self._pool)
            self.kept[place] = recording
            if len(self.kept) > self.limit:
                self.kept.popitem(last=False)
        self.kept.move_to_end(place)
        return recording.lease(inputs)


def _empty(limit: int, rehearse: bool) -> GraphCache:
    return GraphCache(limit, rehearse=rehearse)


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
        self._holder: weakref.ref[GraphReplay] | None = None
        cuda = next(x for x in inputs if x is not None).is_cuda
        if cuda:
            self._warm_up(forward, backward, gradients)
        make = Captured if cuda else EagerGraph

        def run_forward() -> Tensors:
            outputs, saved = forward(*self.inputs)
            self.count = len(outputs)
            return (*outputs, *saved)

        self._forward = make(run_forward, pool)
        results = self._forward.results
        self.outputs, saved = results[: self.count], results[self.count :]
        self.upstream = tuple(torch.zeros_like(x) for x in self.outputs[:gradients])
        self._backward = make(lambda: backward(saved, self.upstream), pool)
        self.gradients = self._backward.results

    def _warm_up(self, forward: Forward, backward: Backward, gradients: int) -> None:
        """Runs both once, so that kernels are compiled and libraries set up before a capture."""
        side, current = torch.cuda.Stream(), torch.cuda.current_stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            outputs, saved = forward(*self.inputs)
            backward(saved, tuple(torch.zeros_like(x) for x in outputs[:gradients]))
        current.wait_stream(side)

    def lease(self, inputs: Inputs) -> GraphReplay | None:
        """Computes the outputs of a batch; None while another one waits for its backward."""
        holder = None if self._holder is None else self._holder()
        if holder is not None and not holder.spent:
            return None
        for buffer, given in zip(self.inputs, inputs, strict=True):
            if buffer is not None and given is not None:
                fill(buffer, given)
        self._forward()
        lease = GraphReplay(self)
        self._holder = weakref.ref(lease)
        return lease

    def backward(self, lease: GraphReplay, upstream: Tensors) -> None:
        if self._holder is None or self._holder() is not lease:
            raise RuntimeError(
                "a second backward pass through a recurrence whose memory a later batch has taken; "
                "build the model with graphs=False for that"
            )
        for buffer, given in zip(self.upstream, upstream, strict=True):
            fill(buffer, given)
        self._backward()


class GraphReplay:
    """One batch in a recording, from its forward to its backward; dropped, it frees the recording.

    Shapes given to the methods are those of the batch without the recording's padding.
    """

    def __init__(self, recording: CapturedGraph) -> None:
        self._recording = recording
        self.spent = False

    def outputs(self, shapes: Sequence[Shape]) -> Tensors:
        """Copies of the outputs."""
        return tuple(map(cut, self._recording.outputs, shapes))

    def backward(self, upstream: Tensors, shapes: Sequence[Shape]) -> Tensors:
        """Copies of the gradients, in the order and the shapes of the inputs that have one."""
        self._recording.backward(self, upstream)
        self.spent = True
        return tuple(map(cut, self._recording.gradients, shapes))


def fill(buffer: Tensor, given: Tensor) -> None:
    """Writes `given` to the front of a buffer, and zeros behind it."""
    if buffer.shape != given.shape:
        buffer.zero_()
    buffer[tuple(map(slice, given.shape))].copy_(given)


def cut(buffer: Tensor, shape: Shape) -> Tensor:
    """A copy of the front of a buffer."""
    return buffer[tuple(map(slice, shape))].clone()


class Captured:
    """A function captured in a CUDA graph; `results` are its results, written anew by each call."""

    def __init__(self, function: Callable[[], Tensors], pool: Any) -> None:
        self._graph = torch.cuda.CUDAGraph()
        # other threads (NCCL's watchdog under DDP, pinned memory) go on while this one captures
        with torch.cuda.graph(self._graph, pool=pool, capture_error_mode="thread_local"):
            self.results = function()

    def __call__(self) -> None:
        self._graph.replay()


class EagerGraph:
    """The same without a GPU: computes anew, into the tensors of the first call."""

    def __init__(self, function: Callable[[], Tensors], pool: Any) -> None:
        self._function = function
        self.results = function()

    def __call__(self) -> None:
        for buffer, result in zip(self.results, self._function(), strict=True):
            buffer.copy_(result)
