"""Chooses at the start of training whether updates use Triton kernels and CUDA graphs."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import torch

from nmt.fused.fuse import backend_of
from nmt.fused.gpu.graphs import LossGraphs, Words
from nmt.layers import Network

log = logging.getLogger(__name__)

# Number of timed forward and backward passes per `Way`. Two untimed ones compile kernels and capture graphs.
TURNS = 3
# A later `Way` is chosen instead of an earlier one only if it is faster by this factor. Otherwise noise would
# decide between equally fast ones, and a repeated command could give different results.
GAIN = 1.15


class Way(NamedTuple):
    """Whether the updates of a training run use Triton kernels and CUDA graphs."""

    kernels: bool
    graphs: bool

    def __str__(self) -> str:
        no = {True: "", False: "no "}
        return f"{no[self.kernels]}Triton kernels and {no[self.graphs]}CUDA graphs"


def possible_ways(kernels: bool | str, graphs: bool | str, usable: bool, fused: bool) -> list[Way]:
    """Returns each `Way` that `model.kernels` and `model.graphs` allow, in order of preference.

    `usable` says whether kernels compute correct results. `fused` says whether the network is fused.
    """

    def possible(setting: bool | str, works: bool) -> list[bool]:
        return [True, False] if setting == "auto" and works else [bool(setting) and works]

    return [Way(k, g) for k in possible(kernels, usable) for g in possible(graphs, fused)]


def fastest_way(network: Network, words: Words, ways: Sequence[Way]) -> Way:
    """Times a forward and backward pass with each `Way`, logs the times and returns the chosen `Way`.

    `ways` are in order of preference. If all fail, the first is returned.
    """
    backend = backend_of(network)
    times: dict[Way, float] = {}
    broken = False
    for way in ways:
        backend.kernels = way.kernels and not broken
        took = seconds(network, words, way.graphs)
        broken = broken or backend.kernels != way.kernels  # `kernels` is False after a failure
        times[way] = math.inf if way.kernels and broken else took
    listed = ", ".join(f"{1e3 * took:.1f} ms with {way}" for way, took in times.items())
    log.info("time of an update: %s", listed)
    return preferred(times)


def preferred(times: Mapping[Way, float]) -> Way:
    """Returns the first `Way`, or a later one that is faster than the best one before it by the factor `GAIN`."""
    best, *later = times
    for way in later:
        if times[way] * GAIN < times[best]:
            best = way
    return best


def seconds(network: Network, words: Words, use_graphs: bool) -> float:
    """Returns the median time in seconds of a forward and backward pass, or infinity if a pass fails."""
    device = words[0].device
    on_gpu = device.type == "cuda"
    graphs = LossGraphs(use_graphs, rehearse=not on_gpu)
    parameters = [p for p in network.parameters() if p.requires_grad]
    times = []
    with torch.random.fork_rng([device] if on_gpu else []):
        for _ in range(2 + TURNS):
            start = time.perf_counter()
            try:
                torch.autograd.grad(graphs.loss(network, words), parameters, allow_unused=True)
            except torch.OutOfMemoryError:
                return math.inf
            if on_gpu:
                torch.cuda.synchronize(device)
            times.append(time.perf_counter() - start)
    ran = not use_graphs or any(graphs.graphs.values())
    return median(times[2:]) if ran else math.inf
