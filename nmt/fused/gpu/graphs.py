"""CUDA graphs of a recurrence: captured once per padded shape, then replayed.

A loop over a sentence launches hundreds of small kernels; a CUDA graph launches them all at once,
but only over the buffers that it was captured with. So a `CapturedGraph` owns the buffers of inputs
and gradients of one shape: a batch is copied in, padded with zeros, and what comes out is copied
out. Autograd, DDP and the optimizer see none of it: the recurrences replay from within their
`torch.autograd.Function`, which also makes a graph indifferent to the stream that the parameters'
gradients are accumulated on.

All graphs of a cache share memory: one pool for what is alive only inside a graph, and one buffer
for the inputs of one shape, such as the weights. So whoever has run a forward holds a `GraphReplay`
until its backward, and every other batch in the meantime is computed without a graph.

Graphs of a cache are captured on one stream of the cache's own, and none is destroyed while another
one lives: destroying one may free cuBLAS's workspace of its stream, which the others still use
(https://github.com/pytorch/pytorch/issues/193402).
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import deterministic

from nmt.fused.gpu.captured import (
    Backward,
    CapturedGraph,
    Forward,
    Inputs,
    Shape,
    Tensors,
    Types,
    cut,
)

log = logging.getLogger(__name__)

MULTIPLE = 4  # lengths are rounded up to a multiple of this
SENTENCES = 8  # and numbers of sentences, which vary where a batch is measured in tokens, of this
SHARE = 8  # a cache stops capturing when it holds this part of the device's memory: an eighth


class GraphCache:
    """The captured graphs of one recurrence.

    Args:
        limit: bytes from which on no further shape is captured; None for an eighth of the memory of
            the device.
        eager: on a CPU, go the same way over the same buffers, computing where a GPU would replay.
            Off, tensors that are not on a GPU use no graph.

    Attributes:
        graphs: by shapes, types, device and what else they depend on.
    """

    def __init__(self, limit: int | None = None, *, eager: bool = False) -> None:
        self.limit = limit
        self.eager = eager
        self.graphs: dict[Any, CapturedGraph] = {}
        self._buffers: dict[Any, Tensor] = {}
        self._current: weakref.ref[GraphReplay] | None = None
        self._pool: Any = None
        self._stream: Any = None
        self._full = False  # nothing is captured any more

    def __reduce__(self) -> Any:
        """A copy of a model, or a model sent to another process, starts with no graphs."""
        return _empty, (self.limit, self.eager)

    @property
    def bytes(self) -> int:
        """What the graphs hold between two batches: inputs, outputs, gradients and what is saved."""
        held = [x.untyped_storage() for graph in self.graphs.values() for x in graph.tensors()]
        return sum({id(storage): storage.nbytes() for storage in held}.values())

    def replay(
        self,
        forward: Forward,
        backward: Backward,
        inputs: Inputs,
        shapes: Sequence[Shape],
        gradients: int,
        key: Any = None,
        types: Types | None = None,
    ) -> GraphReplay | None:
        """Runs `forward(*inputs)` in a graph; None where the caller must run it himself.

        That is while another batch waits for its backward, and for a shape that came after the
        cache was full.

        Args:
            inputs: may hold None; each is padded at its ends with zeros to its entry in `shapes`.
            gradients: how many outputs, from the first on, have a gradient.
            key: what else a graph depends on.
            types: what each input is cast to as it is copied in; None leaves one, or all, as given.
        """
        example = next(x for x in inputs if x is not None)
        if not (example.is_cuda or self.eager) or self._waiting():
            return None
        dtypes = tuple(
            None if x is None else dtype or x.dtype
            for x, dtype in zip(inputs, types or [None] * len(inputs), strict=True)
        )
        key = (tuple(map(tuple, shapes)), dtypes, example.device, key)
        graph = self.graphs.get(key) or self._capture(
            key, forward, backward, inputs, shapes, gradients, dtypes
        )
        if graph is None:
            return None
        graph.forward(inputs)
        replay = GraphReplay(self, graph)
        self._current = weakref.ref(replay)
        return replay

    def clear(self) -> None:
        """Drops all graphs and the memory that they share; shapes to come are captured anew.

        Needed where cuBLAS's workspaces are freed, whose addresses are in the graphs: Lightning does
        so at both ends of a fit.
        """
        self.graphs.clear()
        self._buffers.clear()
        self._current, self._pool, self._full = None, None, False

    def is_current(self, replay: GraphReplay) -> bool:
        """Whether the memory still holds the batch of this replay."""
        return self._current is not None and self._current() is replay

    def _waiting(self) -> bool:
        """Whether a batch is between its forward and its backward."""
        current = None if self._current is None else self._current()
        return current is not None and not current.done

    def _capture(
        self,
        key: Any,
        forward: Forward,
        backward: Backward,
        inputs: Inputs,
        shapes: Sequence[Shape],
        gradients: int,
        dtypes: Types,
    ) -> CapturedGraph | None:
        """A new graph; None where the cache is full, or becomes full because memory runs out."""
        if self._full:
            return None
        device = next(x for x in inputs if x is not None).device
        if device.type == "cuda" and self._pool is None:
            self._stream = self._stream or torch.cuda.Stream(device)
            self._pool = torch.cuda.graph_pool_handle()
        try:
            buffers = tuple(
                None if x is None else self._buffer(place, x.device, dtype, tuple(shape))
                for place, (x, dtype, shape) in enumerate(zip(inputs, dtypes, shapes, strict=True))
            )
            with _empty_memory_left_as_it_is():
                graph = CapturedGraph(
                    forward, backward, buffers, gradients, self._stream, self._pool
                )
        except RuntimeError as error:
            if not _out_of_memory(error):
                error.add_note("while a CUDA graph was captured; model.graphs=false does without")
                raise
        else:
            self.graphs[key] = graph
            self._full = self.bytes >= self._limit_on(device)
            return graph
        # after the handler: until then its traceback keeps what the failed capture has made
        self.clear()
        self._full = True
        if device.type == "cuda":
            torch.cuda.empty_cache()
        log.warning(
            "out of memory while a CUDA graph was captured: this recurrence continues without graphs"
        )
        return None

    def _buffer(
        self, place: int, device: torch.device, dtype: torch.dtype | None, shape: Shape
    ) -> Tensor:
        """The memory of one input, the same for all graphs that take it in this shape."""
        key = (place, shape, dtype, device)
        if key not in self._buffers:
            self._buffers[key] = torch.zeros(shape, dtype=dtype, device=device)
        return self._buffers[key]

    def _limit_on(self, device: torch.device) -> float:
        if self.limit is not None:
            return self.limit
        if device.type != "cuda":
            return float("inf")
        return torch.cuda.get_device_properties(device).total_memory / SHARE


def _empty(limit: int | None, eager: bool) -> GraphCache:
    return GraphCache(limit, eager=eager)


@contextlib.contextmanager
def _empty_memory_left_as_it_is() -> Iterator[None]:
    """Without it, deterministic algorithms fill all new memory, and each replay would do so again."""
    settings: Any = deterministic
    before = settings.fill_uninitialized_memory
    settings.fill_uninitialized_memory = False
    try:
        yield
    finally:
        settings.fill_uninitialized_memory = before


def _out_of_memory(error: BaseException | None) -> bool:
    """Whether an error comes from a lack of memory; a capture that it ends may end in another."""
    while error is not None:
        if isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def rounded(length: int, multiple: int = MULTIPLE) -> int:
    """The next multiple: few shapes, little padding."""
    return -(-length // multiple) * multiple


class GraphReplay:
    """One batch in a graph, from its forward to its backward; dropped, it frees the graphs.

    Shapes given to the methods are those of the batch without the graph's padding.
    """

    def __init__(self, cache: GraphCache, graph: CapturedGraph) -> None:
        self._cache = cache
        self._graph = graph
        self.done = False

    def outputs(self, shapes: Sequence[Shape]) -> Tensors:
        """Copies of the outputs."""
        return tuple(map(cut, self._graph.outputs, shapes))

    def backward(
        self, upstream: Tensors, shapes: Sequence[Shape], types: Sequence[torch.dtype]
    ) -> Tensors:
        """Copies of the gradients, in the order, shapes and types of the inputs that have one."""
        if not self._cache.is_current(self):
            raise RuntimeError(
                "a second backward pass through a recurrence whose memory a later batch has taken; "
                "build the model with graphs=False for that"
            )
        self._graph.backward(upstream)
        self.done = True
        return tuple(map(cut, self._graph.gradients, shapes, types))
