"""The loss of a batch and its gradients, replayed from CUDA graphs.

A loop over a sentence launches hundreds of small kernels. A CUDA graph launches all of them at once, but
only with the tensor shapes and memory addresses of its capture. So there is one graph per padded shape.
A graph reads a copy of the batch and writes the gradients to buffers that all graphs share. Nothing else
is kept between replays, so all graphs can share one memory pool. The largest shape is captured first, and
smaller shapes then reuse its memory blocks. In ascending order, the pool would grow with each shape.
`Replay` returns the gradients to autograd, so that DDP and the optimizer see an ordinary backward pass.

Sizes: B = batch, S = source length, T = target length.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.func import functional_call
from torch.nn.functional import pad

from nmt.layers import Network
from nmt.utils.errors import first_line

log = logging.getLogger(__name__)

Words = tuple[Tensor, ...]  # source, source mask, target, target mask
LENGTH, SENTENCES = 4, 8  # sentence lengths and batch sizes are padded to multiples of these


class LossGraph(NamedTuple):
    """A captured graph: its static input, its output (a scalar) and its replay function."""

    batch: Words
    loss: Tensor
    replay: Callable[[], object]


class LossGraphs:
    """`network.loss` with one CUDA graph per padded shape.

    A failed capture logs a warning. If it ran out of memory, losses of batches of this shape are computed without
    a graph from then on. After any other failure, or if the random generator stays in capture mode (`is_stuck`), all
    losses are computed without a graph. Batches are still padded, so that the dropout masks stay the same.

    Args:
        enabled: if False, or if the network is on a CPU, the loss is `network.loss`.
        rehearse: for tests on a CPU. Runs the same code, but computes the loss again instead of replaying
            a graph.

    Attributes:
        graphs: graph for each padded shape, compute dtype and training mode; None if memory ran out.
        failed: whether a failed capture has disabled the graphs of all shapes.
    """

    def __init__(self, enabled: bool = True, rehearse: bool = False) -> None:
        self.enabled = enabled
        self.rehearse = rehearse
        self.failed = False
        self.replays = 0  # number of replays so far
        self._stream: Any = None
        self.clear()

    def __reduce__(self) -> Any:
        """Makes copies and pickles without the graphs."""
        return LossGraphs, (self.enabled, self.rehearse)

    def clear(self) -> None:
        """Drops all graphs and their memory, so that later losses capture new graphs.

        Call it before and after each `fit`, because Lightning then frees cuBLAS workspaces that the graphs use.
        """
        self.graphs: dict[Any, LossGraph | None] = {}
        self.gradients: list[Tensor] = []
        self._addresses: list[int] = []
        self._pool: Any = None

    def loss(self, network: Network, words: Words) -> Tensor:
        """Returns Σ nll of a batch, a scalar. Call `backward` of this scalar once before the next call of `loss`."""
        used = self.enabled and (words[0].is_cuda or self.rehearse)
        if not used or not torch.is_grad_enabled():
            return network.loss(*words)
        words = pad_batch(*words)
        named = trained_parameters(network)
        graph = self._graph(network, named, words)
        if graph is None:
            return network.loss(*words)
        loss: Tensor = Replay.apply(self, graph, words, *named.values())
        return loss

    def reserve(self, network: Network, words: Words) -> None:
        """Captures the graph of a batch. To save memory, call it for the largest batch first."""
        self._graph(network, trained_parameters(network), pad_batch(*words))

    def _graph(
        self, network: Network, named: Mapping[str, Tensor], words: Words
    ) -> LossGraph | None:
        """Returns the graph of a padded shape, or None if the capture failed."""
        if self.failed:
            return None
        addresses = [p.data_ptr() for p in named.values()]
        if addresses != self._addresses:
            self.clear()
            self._addresses = addresses
            self.gradients = [torch.zeros_like(p) for p in named.values()]
        device = words[0].device
        autocast = torch.is_autocast_enabled(device.type) and torch.get_autocast_dtype(device.type)
        key = (words[0].shape, words[2].shape, autocast, network.training)
        if key not in self.graphs:
            cuda = torch.cuda.default_generators if device.type == "cuda" else None
            generator = cuda[device.index] if cuda else torch.default_generator
            state = generator.get_state()
            try:
                self.graphs[key] = self._capture(network, named, words)
            except torch.OutOfMemoryError as error:
                self.graphs[key] = None
                log.warning(
                    "no memory for a CUDA graph of %d sentences of %d words: updates of this size run "
                    "without one (%s)", *words[0].shape, first_line(error),
                )  # fmt: skip
            except Exception as error:
                self.failed = True
                log.warning(
                    "CUDA graph capture failed (%s): training continues without graphs and is slower; "
                    "set model.graphs=false to disable CUDA graphs", first_line(error),
                )  # fmt: skip
            # outside `except`, because inside it the traceback keeps the tensors in memory
            if self.failed or (self.graphs[key] is None and is_stuck(generator)):
                self.failed = True
                self.clear()
                release(generator)
            generator.set_state(state)  # a capture must not change the dropout of later steps
        return self.graphs.get(key)

    def _capture(self, network: Network, named: Mapping[str, Tensor], words: Words) -> LossGraph:
        """Captures the graph of a padded shape. On a CPU, `replay` just computes the loss again."""
        batch = tuple(part.clone() for part in words)
        device = words[0].device

        def compute() -> Tensor:
            loss, grads = differentiate(network, named, batch)
            torch._foreach_copy_(self.gradients, grads)
            return loss

        # a warm-up run compiles kernels and loads libraries before the capture
        if device.type != "cuda":
            loss = compute()
            return LossGraph(batch, loss, lambda: loss.copy_(compute()))
        self._stream = self._stream or torch.cuda.Stream(device)
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        current = torch.cuda.current_stream(device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            compute()
        graph = torch.cuda.CUDAGraph()
        # "thread_local" lets other threads (NCCL's watchdog, memory pinning) call CUDA during the capture
        capture = torch.cuda.graph(graph, self._pool, self._stream, "thread_local")
        with torch.cuda.stream(current), capture:  # restores the stream even if the capture fails
            loss = compute()
        return LossGraph(batch, loss, graph.replay)


def trained_parameters(network: Network) -> dict[str, Tensor]:
    return {name: p for name, p in network.named_parameters() if p.requires_grad}


class Replay(Function):
    """Replays a graph, and returns its loss and gradients to autograd."""

    @staticmethod
    def forward(
        ctx: Any, graphs: LossGraphs, graph: LossGraph, words: Words, *parameters: Tensor
    ) -> Tensor:
        for buffer, part in zip(graph.batch, words, strict=True):
            buffer.copy_(part)
        graph.replay()
        graphs.replays += 1
        ctx.graphs = graphs
        ctx.number = graphs.replays
        return graph.loss.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.number != ctx.graphs.replays:
            raise RuntimeError(
                "a second loss was computed before `backward` of the first: set model.graphs=false"
            )
        return None, None, None, *torch._foreach_mul(ctx.graphs.gradients, grad_loss)


def differentiate(
    network: Network, named: Mapping[str, Tensor], words: Words
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Returns Σ nll of a batch, a scalar, and its gradients for the parameters `named`.

    The gradient of an unused parameter is 0. DDP keeps the autograd nodes that accumulate `grad` of the
    parameters. These nodes belong to the stream that created them, but a capture uses another stream. So the
    gradients are computed for aliases of the parameters, whose new nodes belong to the stream of the capture.
    """
    module: Any = nn.Module()
    module.network = network
    module.forward = network.loss
    aliases = {f"network.{name}": p.detach().requires_grad_() for name, p in named.items()}
    device = words[0].device.type
    dtype = torch.get_autocast_dtype(device)
    enabled = torch.is_autocast_enabled(device)
    # no autocast cache, because its weights would be outdated at a replay
    with torch.enable_grad(), torch.autocast(device, dtype, enabled, cache_enabled=False):
        loss: Tensor = functional_call(module, aliases, words)
        leaves = list(aliases.values())
        grads = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
    return loss.detach(), grads


def pad_batch(source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor) -> Words:
    """Pads S and T of a batch to multiples of `LENGTH`, and B to a multiple of `SENTENCES`.

    Padding adds nothing to the loss. Padding sentences have an all-True source mask, since a softmax over
    no position is NaN.
    """
    rows = -len(source) % SENTENCES
    columns = -source.shape[1] % LENGTH
    target_padding = (0, -target.shape[1] % LENGTH, 0, rows)
    source, source_mask = pad(source, (0, columns, 0, rows)), pad(source_mask, (0, columns))
    if rows:
        source_mask = pad(source_mask, (0, 0, 0, rows), value=True)
    return source, source_mask, pad(target, target_padding), pad(target_mask, target_padding)


def is_stuck(generator: torch.Generator) -> bool:
    """Whether a failed capture has left the generator in capture mode, where it cannot draw numbers."""
    try:
        torch.empty(1, device=generator.device).uniform_(generator=generator)
    except RuntimeError:
        return True
    return False


def release(generator: Any) -> None:
    """Frees the memory of a failed capture, and takes the random generator out of capture mode.

    The generator gets a new state object. Drop all earlier graphs, because they use the old state.
    """
    if generator.device.type == "cuda":
        with contextlib.suppress(RuntimeError):
            torch.cuda.synchronize(generator.device)
            torch.cuda.empty_cache()
        generator.graphsafe_set_state(torch.Generator(generator.device))
