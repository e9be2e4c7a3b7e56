"""Chooses, at the start of a training, whether kernels and graphs make its updates faster."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

import torch

from nmt.fused.fuse import backend_of
from nmt.fused.gpu.graphs import LossGraphs, Words
from nmt.layers import Network

log = logging.getLogger(__name__)

Clock = Callable[[], float]

TURNS = 3  # timed updates in each way, after two that compile and capture
# A way must be this much faster than those before it. Otherwise noise would decide between ways that
# take equally long, and the same command would not give the same numbers.
GAIN = 1.15


class Way(NamedTuple):
    """What computes the updates of a training."""

    kernels: bool
    graphs: bool

    def __str__(self) -> str:
        no = {True: "", False: "no "}
        return f"{no[self.kernels]}Triton kernels and {no[self.graphs]}CUDA graphs"


def possible_ways(kernels: bool | str, graphs: bool | str, usable: bool, fused: bool) -> list[Way]:
    """Returns the ways that `model.kernels` and `model.graphs` allow, in order of preference.

    `usable` says whether kernels compute correctly, and `fused` whether the network is fused.
    """

    def possible(setting: bool | str, works: bool) -> list[bool]:
        return [True, False] if setting == "auto" and works else [bool(setting) and works]

    return [Way(k, g) for k in possible(kernels, usable) for g in possible(graphs, fused)]


def fastest_way(
    network: Network, words: Words, ways: Sequence[Way], clock: Clock = time.perf_counter
) -> Way:
    """Times forward and backward passes of a batch in each way; returns the fastest and logs the times.

    `ways` are in order of preference. A way that fails is taken only if all fail.
    """
    backend = backend_of(network)
    times: dict[Way, float] = {}
    best = ways[0]
    broken = False
    for way in ways:
        backend.kernels = way.kernels and not broken
        took = seconds(network, words, way.graphs, clock)
        broken = broken or backend.kernels != way.kernels  # the backend turns off failed kernels
        times[way] = math.inf if way.kernels and broken else took
        if times[way] * GAIN < times[best]:
            best = way
    listed = ", ".join(f"{1e3 * took:.1f} ms with {way}" for way, took in times.items())
    log.info("time of an update: %s", listed)
    return best


def seconds(network: Network, words: Words, use_graphs: bool, clock: Clock) -> float:
    """Returns the median time of forward and backward passes; infinity if they fail."""
    device = words[0].device
    on_gpu = device.type == "cuda"
    graphs = LossGraphs(use_graphs, rehearse=not on_gpu)
    parameters = [p for p in network.parameters() if p.requires_grad]
    times = []
    with torch.random.fork_rng([device] if on_gpu else []):
        for _ in range(2 + TURNS):
            start = clock()
            try:
                torch.autograd.grad(graphs.loss(network, words), parameters, allow_unused=True)
            except torch.OutOfMemoryError:
                return math.inf
            if on_gpu:
                torch.cuda.synchronize(device)
            times.append(clock() - start)
    ran = not use_graphs or any(graphs.graphs.values())
    return median(times[2:]) if ran else math.inf
