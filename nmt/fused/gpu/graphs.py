"""The loss of a batch and its gradients, replayed from CUDA graphs.

A loop over a sentence launches hundreds of small kernels. A CUDA graph launches them all at once, but
only on the memory that it was captured with. So each padded shape has one graph, of the loss and of
its derivative together, which reads a copy of the batch and writes gradients into buffers that all
shapes share. Nothing else lives from one replay to the next: all graphs use one memory pool, of the
size of the largest shape. `Replay` hands the gradients to autograd, so that DDP and the optimizer see
an ordinary backward pass.

B batch, S source length, T target length.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.func import functional_call
from torch.nn.functional import pad

from nmt.fused.gpu import backend
from nmt.layers import Network
from nmt.utils.errors import first_line

log = logging.getLogger(__name__)

Words = tuple[Tensor, ...]  # source, its mask, target, its mask
LENGTH, SENTENCES = 4, 8  # lengths and numbers of sentences are padded to multiples of these


class LossGraphs:
    """`network.loss` with one CUDA graph for each padded shape.

    A capture that fails is logged once. From then on every loss is computed without graphs.

    Args:
        enabled: without it, and for a network on a CPU, the loss is `network.loss`.
        rehearse: on a CPU, take the same way through the same buffers, and compute where a GPU
            replays.

    Attributes:
        graphs: by shape, type of products and mode of the network.
        failed: whether a capture has failed. Batches are padded as before, and dropout stays the same.
    """

    def __init__(self, enabled: bool = True, rehearse: bool = False) -> None:
        self.enabled, self.rehearse, self.failed = enabled, rehearse, False
        self.graphs: dict[Any, LossGraph] = {}
        self.gradients: list[Tensor] = []
        self.replays = 0  # so far
        self._addresses: list[int] = []
        self._checked = False
        self._stream: Any = None
        self._pool: Any = None

    def __reduce__(self) -> Any:
        """A copy of a model, or a model sent to another process, starts without graphs."""
        return LossGraphs, (self.enabled, self.rehearse)

    def loss(self, network: Network, words: Words) -> Tensor:
        """Σ nll of a batch, (), differentiable once, before the loss of the next batch is computed."""
        device = words[0].device
        if not torch.is_grad_enabled() or not (device.type == "cuda" or self.rehearse):
            return network.loss(*words)
        named = {name: p for name, p in network.named_parameters() if p.requires_grad}
        if not self.enabled and not self._checked:
            backend.with_fallback(lambda: differentiate(network, named, words), device)
            self._checked = True
        words = pad_batch(*words) if self.enabled else words
        graph = self._graph(network, named, words) if self.enabled and not self.failed else None
        if graph is None:
            return network.loss(*words)
        loss: Tensor = Replay.apply(self, graph, words, *named.values())
        return loss

    def clear(self) -> None:
        """Drops all graphs and their memory; shapes are captured anew.

        Needed where cuBLAS's workspaces are freed, whose addresses are in the graphs: Lightning does
        so at both ends of a fit.
        """
        self.graphs.clear()
        self.gradients, self._addresses, self._pool = [], [], None

    def _graph(
        self, network: Network, named: Mapping[str, Tensor], words: Words
    ) -> LossGraph | None:
        """The graph of a padded shape; None where it cannot be captured."""
        addresses = [p.data_ptr() for p in named.values()]
        if addresses != self._addresses:
            self.clear()
            self._addresses = addresses
            self.gradients = [torch.zeros_like(p) for p in named.values()]
        device = words[0].device
        dtype = torch.get_autocast_dtype(device.type)
        products = dtype if torch.is_autocast_enabled(device.type) else None
        key = (words[0].shape, words[2].shape, products, network.training)
        if key in self.graphs:
            return self.graphs[key]
        generator = generator_of(device)
        state = generator.get_state()
        try:
            graph = self.graphs[key] = self._capture(network, named, words)
        except Exception as error:
            reason = first_line(error)
        else:
            generator.set_state(state)  # dropout does not depend on when a shape was captured
            return graph
        # after the handler: until then its traceback keeps what the capture has allocated
        self.failed = True
        self.clear()
        restore(generator, device, state)
        log.warning(
            "a CUDA graph could not be captured (%s): training continues without graphs, more slowly; "
            "model.graphs=false does without from the start", reason,
        )  # fmt: skip
        return None

    def _capture(self, network: Network, named: Mapping[str, Tensor], words: Words) -> LossGraph:
        batch = tuple(part.clone() for part in words)

        def compute() -> Tensor:
            loss, grads = differentiate(network, named, batch)
            torch._foreach_copy_(self.gradients, grads)
            return loss

        # once before, so that kernels are compiled and libraries loaded outside of the capture
        if words[0].device.type != "cuda":
            backend.with_fallback(compute, words[0].device)
            return LossGraph(batch, compute)
        self._stream = self._stream or torch.cuda.Stream(words[0].device)
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        self._stream.wait_stream(torch.cuda.current_stream(words[0].device))
        with torch.cuda.stream(self._stream):
            backend.with_fallback(compute, words[0].device)
        return CudaGraph(batch, compute, self._stream, self._pool)


class LossGraph:
    """The loss () of the last `batch` of one shape on a CPU: computes where a GPU replays."""

    def __init__(self, batch: Words, compute: Callable[[], Tensor]) -> None:
        self.batch, self.compute = batch, compute
        self.loss = compute()

    def replay(self) -> None:
        self.loss.copy_(self.compute())


class CudaGraph(LossGraph):
    """The same, captured."""

    def __init__(self, batch: Words, compute: Callable[[], Tensor], stream: Any, pool: Any) -> None:
        graph = torch.cuda.CUDAGraph()
        # other threads (NCCL's watchdog under DDP, pinned memory) work on while this one captures
        mode = "thread_local"
        with (
            torch.cuda.stream(torch.cuda.current_stream(stream.device)),  # left so by an error, too
            torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode=mode),
        ):
            super().__init__(batch, compute)
        self.replay = graph.replay  # type: ignore[method-assign]


class Replay(Function):
    """Σ nll () of a batch from a graph, with the gradients of the parameters."""

    @staticmethod
    def forward(
        ctx: Any, graphs: LossGraphs, graph: LossGraph, words: Words, *parameters: Tensor
    ) -> Tensor:
        for buffer, part in zip(graph.batch, words, strict=True):
            buffer.copy_(part)
        graph.replay()
        graphs.replays += 1
        ctx.graphs, ctx.number = graphs, graphs.replays
        return graph.loss.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.number != ctx.graphs.replays:
            raise RuntimeError(
                "a backward pass after the loss of a later batch, which has taken the memory of its "
                "gradients; set model.graphs=false"
            )
        return None, None, None, *torch._foreach_mul(ctx.graphs.gradients, grad_loss)


class Loss(nn.Module):
    """`network.loss` as a module's forward."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, *words: Tensor) -> Tensor:
        return self.network.loss(*words)


def differentiate(
    network: Network, named: Mapping[str, Tensor], words: Words
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Σ nll () of a batch, and its gradient for each named parameter, zeros for unused ones.

    DDP keeps the nodes that accumulate gradients, and these the stream that they were made on. So the
    derivative is taken for aliases of the parameters.
    """
    aliases = {f"network.{name}": p.detach().requires_grad_() for name, p in named.items()}
    device = words[0].device.type
    dtype, enabled = torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)
    # cached casts would be those of the first batch
    with torch.enable_grad(), torch.autocast(device, dtype, enabled, cache_enabled=False):
        loss: Tensor = functional_call(Loss(network), aliases, words)
        leaves = list(aliases.values())
        grads = torch.autograd.grad(loss, leaves, allow_unused=True, materialize_grads=True)
    return loss.detach(), grads


def pad_batch(source: Tensor, source_mask: Tensor, target: Tensor, target_mask: Tensor) -> Words:
    """A batch with S and T padded to multiples of `LENGTH`, and B to one of `SENTENCES`.

    Padding adds nothing to the loss. The sources of further sentences count as real, since a softmax
    over no position is NaN.
    """
    rows, columns = -len(source) % SENTENCES, -source.shape[1] % LENGTH
    more = (0, -target.shape[1] % LENGTH, 0, rows)
    source, source_mask = pad(source, (0, columns, 0, rows)), pad(source_mask, (0, columns))
    if rows:
        source_mask = pad(source_mask, (0, 0, 0, rows), value=True)
    return source, source_mask, pad(target, more), pad(target_mask, more)


def generator_of(device: torch.device) -> Any:
    """What dropout on a device draws from."""
    cuda = device.type == "cuda"
    return torch.cuda.default_generators[device.index] if cuda else torch.default_generator


def restore(generator: Any, device: torch.device, state: Tensor) -> None:
    """Frees memory after a capture that failed, and gives the generator its state of before.

    It takes itself for captured until it has the state of another generator.
    """
    if device.type != "cuda":
        generator.set_state(state)
        return
    with contextlib.suppress(RuntimeError):
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
    fresh = torch.Generator(device)
    fresh.set_state(state)
    generator.graphsafe_set_state(fresh)
