"""What a word costs by the length of the sentence: seconds and FLOPs, and attention's share.

    python -m benchmarks --part length --size laptop --rounds 15
    python -m benchmarks --part length --lengths 10 50 200

The share of attention is what RNNsearch takes more than the same model whose context is always its
first annotation. `attention=local` is scored as `additive`, over all positions, and predicts its window
besides; it has no backward pass of its own. FLOPs are those of matrix products, which
`torch.utils.flop_counter` counts; the tanh of the additive score is none of them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.work import SCORING, Net, Size, Trainer, rectangle, seconds
from nmt.config import SearchConfig
from nmt.layers import Additive, AttentionOutput, FixedContext, LocalAttention, Memory, initialise
from nmt.search import beam_search

LENGTHS = [10, 20, 50, 100, 200]  # symbols of both sides, `</s>` included
ROWS = 16
BEAM = 12
WITHOUT = "without attention"
LOCAL = "additive, local"
ATTENDING = [*SCORING, LOCAL]
MODELS = [WITHOUT, *ATTENDING, "none"]


class FirstAnnotation(FixedContext):
    """h_1 as the context of every step: an RNNsearch that attends to nothing."""

    def forward(self, state: torch.Tensor, memory: Memory) -> AttentionOutput:
        return super().forward(state, first_annotation(memory))

    def values(self, memory: Memory) -> torch.Tensor:
        return super().values(first_annotation(memory))

    def run_fused(self, projected: Any, initial: Any, memory: Memory, *unit: Any) -> Any:
        return super().run_fused(projected, initial, first_annotation(memory), *unit)


def first_annotation(memory: Memory) -> Memory:
    """A memory whose summary is its first annotation."""
    return memory._replace(summary=memory.annotations[:, 0])


def make_net(size: Size, scoring: str) -> Net:
    """A fused net; RNNencdec with "none", RNNsearch with local attention, or without any (`WITHOUT`)."""
    if scoring not in (LOCAL, WITHOUT):
        return Net(size, "fused", scoring)
    net = Net(size, "fused", "additive")
    if scoring == WITHOUT:
        net.decoder.context = FirstAnnotation(2 * size.hidden)
        return net
    sizes = (size.hidden, 2 * size.hidden, size.alignment)
    net.decoder.context = LocalAttention(*sizes, Additive(size.alignment, size.alignment))
    initialise(net.decoder.context, "glorot")
    return net


def by_length(size: Size, args: argparse.Namespace) -> None:
    """Prints two tables, training (forward and backward) and beam search, in Markdown."""
    nets = {scoring: make_net(size, scoring) for scoring in MODELS}
    trainers = {scoring: Trainer(net, size, False, args.device) for scoring, net in nets.items()}
    search = SearchConfig(beam_size=BEAM, min_ratio=1.0, max_ratio=1.0)

    def training(scoring: str, words: Any) -> None:
        trainers[scoring].gradient(words)

    def decoding(scoring: str, words: Any) -> None:
        with torch.no_grad():
            beam_search(nets[scoring].eval(), words[0], words[1], search)

    for title, work in (("Training", training), (f"Beam of {BEAM}", decoding)):
        print(f"\n{title}, {size.name} sizes, {ROWS} sentences at once, a target word\n")
        print(
            "| length | scoring | ms | attention | MFLOP | attention |\n|---:|---|---:|---:|---:|---:|"
        )
        for length in args.lengths:
            words = rectangle(size, ROWS, length, args.device)
            runs = {scoring: partial(work, scoring, words) for scoring in MODELS}
            print(rows(runs, length, args), flush=True)


def rows(runs: Mapping[str, Callable[[], None]], length: int, args: argparse.Namespace) -> str:
    """The lines of a length: medians of `args.rounds` turns, after one that is not counted."""
    flops = {scoring: flops_of(run) / (ROWS * length) for scoring, run in runs.items()}
    times: dict[str, list[float]] = {scoring: [] for scoring in runs}
    for _ in range(args.rounds):
        for scoring, run in runs.items():
            times[scoring].append(seconds(run, args.device) / (ROWS * length))
    medians = {scoring: statistics.median(taken) for scoring, taken in times.items()}
    lines = []
    for scoring in runs:
        shares = [
            f"{100 * (1 - of[WITHOUT] / of[scoring]):.0f} %" if scoring in ATTENDING else "–"
            for of in (medians, flops)
        ]
        name = "RNNencdec" if scoring == "none" else scoring
        lines.append(
            f"| {length} | {name} | {medians[scoring] * 1e3:.3f} | {shares[0]} "
            f"| {flops[scoring] / 1e6:.2f} | {shares[1]} |"
        )
    return "\n".join(lines)


def flops_of(run: Callable[[], None]) -> int:
    """Of the matrix products of a call."""
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()
