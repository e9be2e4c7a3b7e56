"""Workloads of the benchmarks: training and search with models of two sizes on random text.

B is the batch size.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.config.schema import OptimizerConfig, SearchConfig
from nmt.fused import backend_of, fuse, is_fused
from nmt.fused.gpu.graphs import LossGraphs
from nmt.layers import (
    Additive,
    Attention,
    BidirectionalEncoder,
    Decoder,
    Dot,
    Encoder,
    FixedContext,
    ForwardEncoder,
    Network,
    Output,
    ScaledDot,
    initialise,
)
from nmt.models.optimizer import make_optimizer
from nmt.search import Hypothesis, beam_search

SCORING = {"additive": Additive, "dot": Dot, "scaled_dot": ScaledDot}
Line = dict[str, Any]
Words = tuple[Tensor, Tensor, Tensor, Tensor]  # (source, source mask, target, target mask)


@dataclass(frozen=True)
class Size:
    """Sizes of a model and of its random text."""

    name: str
    hidden: int
    embedding: int
    alignment: int
    maxout: int
    vocabulary: int
    words: float  # mean number of words per sentence
    optimizer: str


SIZES = {
    "laptop": Size("laptop", 256, 128, 256, 128, 6500, 13, "adam"),
    "paper": Size("paper", 1000, 620, 1000, 500, 30002, 25, "adadelta"),
}
# Matrix products of PyTorch, with the position of the first matrix among the arguments
PRODUCTS = {"mm": 0, "bmm": 0, "_linear_pointwise": 0, "addmm": 1, "baddbmm": 1}
CAP = 50  # number of words in the longest training sentence
BATCH = 80  # number of sentence pairs in a batch
POOL = 20  # number of batches that `pool` returns


class Net(Network):
    """RNNsearch, or RNNencdec if `scoring` is "none"."""

    def __init__(self, size: Size, recurrence: str, scoring: str = "additive") -> None:
        context: Attention | FixedContext
        if scoring == "none":
            encoder: Encoder = ForwardEncoder(size.vocabulary, size.embedding, size.hidden)
            context = FixedContext(size.hidden)
        else:
            encoder = BidirectionalEncoder(size.vocabulary, size.embedding, size.hidden)
            sizes = (size.hidden, 2 * size.hidden, size.alignment)
            context = Attention(*sizes, SCORING[scoring](size.alignment, size.alignment))
        decoder = Decoder(size.vocabulary, size.embedding, size.hidden, size.maxout, context)
        super().__init__(encoder, decoder, Output(size.maxout, size.vocabulary))
        initialise(self, "glorot")
        if recurrence == "fused":
            fuse(self)


class Trainer:
    """Updates a network; `graphs` uses CUDA graphs on a GPU, and `rehearse` imitates them on a CPU."""

    def __init__(
        self,
        net: Net,
        size: Size,
        bf16: bool,
        device: str,
        graphs: bool = True,
        rehearse: bool = False,
    ) -> None:
        self.net = net.to(device)
        self.graphs = LossGraphs(enabled=graphs and is_fused(net), rehearse=rehearse)
        self.bf16 = bf16
        self.device = device
        config = OptimizerConfig(lr=1.0, options={"rho": 0.95})
        if size.optimizer == "adam":
            config = OptimizerConfig("torch.optim.Adam", lr=1e-3)
        kernels = backend_of(net).has_kernels(net.device)
        self.optimizer = make_optimizer(net, config, 1, kernels)["optimizer"]

    def gradient(self, words: Words) -> None:
        self.net.zero_grad()
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            loss = self.graphs.loss(self.net, words)
        (loss / len(words[0])).backward()

    def update(self, words: Words) -> None:
        self.gradient(words)
        self.clip()
        self.optimizer.step()

    def clip(self) -> Tensor:
        """Clips the gradient norm to 1 and returns the unclipped norm; fused Adadelta clips in its next step."""
        if not hasattr(self.optimizer, "clip_next"):
            return nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        norm = nn.utils.get_total_norm(gradients_of(self.net))
        self.optimizer.clip_next(norm, 1.0)
        return norm


class Products(TorchDispatchMode):
    """Records the matrix products of a workload, so that they can be repeated alone.

    `multiply_adds` is the sum over all products; a product of (M, K) and (K, N) has M · K · N.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self.calls: list[Callable[[], object]] = []
        self.multiply_adds = 0
        with self:
            work()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__.rstrip("_")
        if name in PRODUCTS:
            first, second = args[PRODUCTS[name] :][:2]
            columns = len(second) if name == "_linear_pointwise" else second.shape[-1]
            self.multiply_adds += first.numel() * columns
            self.calls.append(partial(func, *args, **(kwargs or {})))
        return func(*args, **(kwargs or {}))

    @torch.no_grad()
    def repeat(self) -> None:
        """Repeats the recorded products on the same tensors."""
        for call in self.calls:
            call()


def gradients_of(net: nn.Module) -> list[Tensor]:
    """Returns the gradients of all parameters that have a gradient."""
    return [p.grad for p in net.parameters() if p.grad is not None]


def pool(size: Size, device: str = "cpu", *, ordered: bool = True) -> list[Words]:
    """Draws 20 batches of sentence pairs; `ordered` first sorts the pairs by length."""
    lengths = pair_lengths(size, POOL * BATCH)
    if ordered:
        lengths = lengths[lengths.amax(1).argsort()]
    return [batch(size, part[:, 0], part[:, 1], device) for part in lengths.split(BATCH)]


def pair_lengths(size: Size, pairs: int) -> Tensor:
    """Draws source and target lengths (pairs, 2) with a mean of about `size.words` and at most 50."""
    generator = torch.Generator().manual_seed(7)
    normal = torch.randn(pairs, 2, generator=generator)
    deviation = 0.32 if size.words < 20 else 0.6  # short captions vary less in length than speeches
    shared = 0.9 * normal[:, :1] + 0.43 * normal  # a long source has a long target
    lengths = (size.words * (deviation * shared - deviation**2 / 2).exp()).round().long()
    return lengths.clamp(2, CAP)


def batch(size: Size, source: Tensor, target: Tensor, device: str = "cpu") -> Words:
    """Draws random sentences of these lengths (B,), and adds `</s>` to each."""
    sides = []
    for lengths in (source, target):
        mask = torch.arange(int(lengths.max()) + 1) <= lengths.unsqueeze(1)
        words = torch.randint(2, size.vocabulary, mask.shape)
        words.scatter_(1, lengths.unsqueeze(1), 0)
        sides += [(words * mask).to(device), mask.to(device)]
    return tuple(sides)  # type: ignore[return-value]


def rectangle(size: Size, rows: int, length: int, device: str = "cpu") -> Words:
    """Draws `rows` pairs, all with `length` symbols per side, including `</s>`."""
    lengths = torch.full((rows,), length - 1)
    return batch(size, lengths, lengths, device)


def search(net: Net, words: Words, beam: int, bf16: bool) -> list[list[Hypothesis]]:
    """Runs a search whose outputs are exactly as long as the sources."""
    settings = SearchConfig(beam_size=beam, min_ratio=1.0, max_ratio=1.0)
    with torch.autocast(words[0].device.type, torch.bfloat16, enabled=bf16):
        return beam_search(net, *words[:2], settings)


def seconds(run: Callable[[], object], threads: int = 1) -> float:
    """Returns the time of a call: CPU seconds with one thread, wall-clock seconds with more."""
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    run()
    return clock() - start


def peak_mib(size: Size, recurrence: str, bf16: bool, length: int) -> float:
    """Returns the peak memory of a training step on sentences of this length, minus the memory before it, in MiB."""
    torch.set_num_threads(1)
    trainer = Trainer(Net(size, recurrence), size, bf16, "cpu")
    trainer.gradient(rectangle(size, 2, 3))  # warm-up: allocates gradients and loads libraries
    words = rectangle(size, BATCH, length)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    trainer.gradient(words)
    return resident("VmHWM") - before


def resident(field: str) -> float:
    """Returns the peak memory (VmHWM) or the current memory (VmRSS) of this process in MiB."""
    (kib,) = re.findall(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(kib) / 2**10


def print_line(line: Line) -> None:
    print(json.dumps(rounded(line)), flush=True)


def rounded(value: Any) -> Any:
    """Rounds every float to four significant digits, since measurements are not more accurate."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {str(key): rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return value
