"""One recurrence at one padded shape: its buffers, and its forward and backward over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

Tensors = tuple[Tensor, ...]
Inputs = Sequence[Tensor | None]
Shape = Sequence[int]
Types = Sequence[torch.dtype | None]
Forward = Callable[..., tuple[Tensors, Tensors]]  # inputs -> (outputs, what backward needs)
Backward = Callable[[Tensors, Tensors], Tensors]  # (saved, gradients of the first outputs) -> grads


class CapturedGraph:
    """A forward and its backward over buffers of one shape."""

    def __init__(
        self,
        forward: Forward,
        backward: Backward,
        inputs: Inputs,
        gradients: int,
        stream: Any,
        pool: Any,
    ) -> None:
        self.inputs = inputs
        cuda = stream is not None
        if cuda:
            self._warm_up(forward, backward, gradients, stream)

        def capture(function: Callable[[], Tensors]) -> Any:
            return CudaFunction(function, stream, pool) if cuda else EagerFunction(function)

        def run_forward() -> Tensors:
            outputs, saved = forward(*self.inputs)
            self.count = len(outputs)
            return (*outputs, *saved)

        self._forward = capture(run_forward)
        results = self._forward.results
        self.outputs, self.saved = results[: self.count], results[self.count :]
        self.upstream = tuple(torch.zeros_like(x) for x in self.outputs[:gradients])
        self._backward = capture(lambda: backward(self.saved, self.upstream))
        self.gradients = self._backward.results

    def _warm_up(self, forward: Forward, backward: Backward, gradients: int, stream: Any) -> None:
        """Runs both once, so that kernels are compiled and libraries set up before a capture."""
        current = torch.cuda.current_stream(stream.device)
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            outputs, saved = forward(*self.inputs)
            backward(saved, tuple(torch.zeros_like(x) for x in outputs[:gradients]))
        current.wait_stream(stream)

    def tensors(self) -> Iterable[Tensor]:
        """Everything that stays in memory between two batches."""
        yield from (x for x in self.inputs if x is not None)
        yield from (*self.outputs, *self.saved, *self.upstream, *self.gradients)

    def forward(self, inputs: Inputs) -> None:
        """Computes the outputs of a batch."""
        for buffer, given in zip(self.inputs, inputs, strict=True):
            if buffer is not None and given is not None:
                fill(buffer, given)
        self._forward()

    def backward(self, upstream: Tensors) -> None:
        """Computes the gradients of the batch of the last forward."""
        for buffer, given in zip(self.upstream, upstream, strict=True):
            fill(buffer, given)
        self._backward()


def fill(buffer: Tensor, given: Tensor) -> None:
    """Writes `given`, in the buffer's type, to the front of a buffer, and zeros behind it."""
    for dim, (whole, size) in enumerate(zip(buffer.shape, given.shape, strict=True)):
        if size < whole:
            buffer.narrow(dim, size, whole - size).zero_()
            buffer = buffer.narrow(dim, 0, size)
    buffer.copy_(given)


def cut(buffer: Tensor, shape: Shape, dtype: torch.dtype | None = None) -> Tensor:
    """A copy of the front of a buffer, in its own type unless another is given."""
    return buffer[tuple(map(slice, shape))].to(dtype or buffer.dtype, copy=True)


def cast(inputs: Inputs, types: Types) -> list[Any]:
    """The inputs, each in its entry of `types`; None there leaves it as it is."""
    return [
        x if x is None or dtype is None else x.to(dtype)
        for x, dtype in zip(inputs, types, strict=True)
    ]


class CudaFunction:
    """A function captured in a CUDA graph; `results` are its results, written anew by each call."""

    def __init__(self, function: Callable[[], Tensors], stream: Any, pool: Any) -> None:
        self._graph = torch.cuda.CUDAGraph()
        # other threads (NCCL's watchdog under DDP, pinned memory) go on while this one captures
        mode = "thread_local"
        with (
            torch.cuda.stream(torch.cuda.current_stream(stream.device)),  # left so by an error, too
            torch.cuda.graph(self._graph, pool=pool, stream=stream, capture_error_mode=mode),
        ):
            self.results = function()

    def __call__(self) -> None:
        self._graph.replay()


class EagerFunction:
    """The same without a GPU: computes anew, into the tensors of the first call."""

    def __init__(self, function: Callable[[], Tensors]) -> None:
        self._function = function
        self.results = function()

    def __call__(self) -> None:
        for buffer, result in zip(self.results, self._function(), strict=True):
            buffer.copy_(result)
