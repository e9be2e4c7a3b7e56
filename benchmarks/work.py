"""The measured work: bare models of two sizes, and synthetic text.

B batch, S source length, T target length.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.config import OptimizerConfig, SearchConfig
from nmt.fused import fuse, is_fused
from nmt.fused.gpu.graphs import LossGraphs
from nmt.layers import (
    Additive,
    Attention,
    BidirectionalEncoder,
    Cosine,
    Decoder,
    Dot,
    Encoder,
    FixedContext,
    ForwardEncoder,
    General,
    Network,
    Output,
    ScaledDot,
    initialise,
)
from nmt.layers.scoring import query_and_key_sizes
from nmt.models.optimizer import make_optimizer
from nmt.search import Hypothesis, beam_search

SCORING = {
    "additive": Additive,
    "dot": Dot,
    "scaled_dot": ScaledDot,
    "general": General,
    "cosine": Cosine,
}
Words = tuple[Tensor, Tensor, Tensor, Tensor]  # source, its mask, target, its mask


@dataclass(frozen=True)
class Size:
    """Sizes of a model, and of the text for its measurement."""

    name: str
    hidden: int
    embedding: int
    alignment: int
    maxout: int
    vocabulary: int
    words: float  # mean length of a sentence
    optimizer: str


SIZES = {
    "laptop": Size("laptop", 256, 128, 256, 128, 6500, 13, "adam"),
    "paper": Size("paper", 1000, 620, 1000, 500, 30002, 25, "adadelta"),
}
CAP = 50  # words of a sentence in training
BATCH = 80
POOL = 20  # batches sorted by length together


class Net(Network):
    """Builds RNNsearch, or RNNencdec with scoring "none"."""

    def __init__(self, size: Size, recurrence: str, scoring: str = "additive") -> None:
        context: Attention | FixedContext
        if scoring == "none":
            encoder: Encoder = ForwardEncoder(size.vocabulary, size.embedding, size.hidden)
            context = FixedContext(size.hidden)
        else:
            encoder = BidirectionalEncoder(size.vocabulary, size.embedding, size.hidden)
            scorer = SCORING[scoring]
            sizes = (size.hidden, 2 * size.hidden, size.alignment)
            context = Attention(*sizes, scorer(*query_and_key_sizes(scorer, *sizes)))
        decoder = Decoder(size.vocabulary, size.embedding, size.hidden, size.maxout, context)
        super().__init__(encoder, decoder, Output(size.maxout, size.vocabulary))
        initialise(self, "glorot")
        if recurrence == "fused":
            fuse(self)


class Trainer:
    """Updates a network; with `graphs` a GPU replays updates, which `rehearse` imitates on a CPU."""

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
        self.optimizer = make_optimizer(net.parameters(), config, 1)["optimizer"]

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
        """Clips the gradient norm at 1, here or in the update; returns the norm before clipping."""
        if not hasattr(self.optimizer, "clip_next"):
            return nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        norm = nn.utils.get_total_norm(gradients_of(self.net))
        self.optimizer.clip_next(norm, 1.0)
        return norm


def gradients_of(net: nn.Module) -> list[Tensor]:
    """Returns the gradients of all parameters that have one."""
    return [p.grad for p in net.parameters() if p.grad is not None]


def pool(size: Size, device: str = "cpu", *, ordered: bool = True) -> list[Words]:
    """Draws 20 batches with lengths around `size.words`, at most 50, sorted by length or unsorted."""
    lengths = pair_lengths(size, POOL * BATCH)
    if ordered:
        lengths = lengths[lengths.amax(1).argsort()]
    return [batch(size, part[:, 0], part[:, 1], device) for part in lengths.split(BATCH)]


def pair_lengths(size: Size, pairs: int) -> Tensor:
    """Draws (pairs, 2) lengths of source and target, around `size.words`, at most 50."""
    generator = torch.Generator().manual_seed(7)
    normal = torch.randn(pairs, 2, generator=generator)
    deviation = 0.32 if size.words < 20 else 0.6  # captions vary less in length than speeches
    shared = 0.9 * normal[:, :1] + 0.43 * normal  # both sides of a pair are long together
    lengths = (size.words * (deviation * shared - deviation**2 / 2).exp()).round().long()
    return lengths.clamp(2, CAP)


def batch(size: Size, source: Tensor, target: Tensor, device: str = "cpu") -> Words:
    """Draws random words with these lengths (B), and adds `</s>`."""
    sides = []
    for lengths in (source, target):
        mask = torch.arange(int(lengths.max()) + 1) <= lengths.unsqueeze(1)
        words = torch.randint(2, size.vocabulary, mask.shape)
        words.scatter_(1, lengths.unsqueeze(1), 0)
        sides += [(words * mask).to(device), mask.to(device)]
    return tuple(sides)  # type: ignore[return-value]


def rectangle(size: Size, rows: int, length: int, device: str = "cpu") -> Words:
    """Draws `rows` pairs, all with `length` symbols on both sides."""
    lengths = torch.full((rows,), length - 1)
    return batch(size, lengths, lengths, device)


def search(net: Net, words: Words, beam: int, bf16: bool) -> list[list[Hypothesis]]:
    """Searches with outputs as long as the sources: `</s>` comes neither earlier nor later."""
    settings = SearchConfig(beam_size=beam, min_ratio=1.0, max_ratio=1.0)
    with torch.autocast(words[0].device.type, torch.bfloat16, enabled=bf16):
        return beam_search(net, *words[:2], settings)


def seconds(
    run: Callable[[], object], device: str, clock: Callable[[], float] = time.process_time
) -> float:
    """Measures CPU seconds of a call, which other processes change little; wall-clock on a GPU."""
    if device == "cpu":
        start = clock()
        run()
        return clock() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return time.perf_counter() - start
