"""Sizes, device, models, batches and results of the benchmarks that need a GPU."""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.work import SIZES, Net, Size, Trainer, Words, batch, rectangle, rounded
from nmt.fused import fuse

TOY = Size("toy", 24, 16, 24, 12, 200, 6, "adadelta")


@dataclass
class Findings:
    """Measured figures and checks of one benchmark item; every change is written to `path`.

    The item passes if no check fails.
    """

    path: Path
    figures: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def note(self, **figures: Any) -> None:
        """Adds measured figures, which are not checked."""
        self.figures |= figures
        named = ("figures", "checks", "failed")
        self.path.write_text(json.dumps({name: rounded(getattr(self, name)) for name in named}))

    def check(self, name: str, value: Any, **bound: Any) -> None:
        """Checks a value against the bound `at_most`, `at_least` or `equals`; NaN fails."""
        self.checks[name] = {"value": value, **bound}
        ((kind, limit),) = bound.items()
        holds = {"equals": operator.eq, "at_most": operator.le, "at_least": operator.ge}[kind]
        if not holds(value, limit):
            self.failed.append(name)
        self.note()


class Setting:
    """Builds models and batches of paper sizes on a GPU, or of toy sizes on a CPU.

    Args:
        rehearse: use toy sizes on a CPU, and compute losses again instead of replaying CUDA graphs.
        folder: folder for the files of the item.
    """

    def __init__(self, rehearse: bool, folder: Path) -> None:
        self.rehearse = rehearse
        self.folder = folder
        self.device = "cpu" if rehearse else "cuda"
        self.size = TOY if rehearse else SIZES["paper"]
        self.rows = 8 if rehearse else 80  # sentences of a batch
        # timed batches: (sentences, symbols per side)
        self.shapes = [(6, 5), (6, 9)] if rehearse else [(80, 30), (80, 50), (1024, 30)]
        # symbols per side; CUDA graphs do not pad the first two, since they are multiples of 4
        self.lengths = [8, 12, 5, 7] if rehearse else [32, 48, 30, 49, 11]
        self.rounds = 2 if rehearse else 7

    def net(
        self, recurrence: str = "fused", *, scoring: str = "additive", kernels: bool = True
    ) -> Net:
        """Builds a model; all models with the same scoring have the same weights."""
        net = copy.deepcopy(plain_net(self.size, scoring, self.device))
        if recurrence == "fused":
            fuse(net, kernels=kernels)
        return net

    def trainer(self, net: Net, *, bf16: bool, graphs: bool = False) -> Trainer:
        return Trainer(net, self.size, bf16, self.device, graphs, graphs and self.rehearse)

    def words(self, length: int, *, rows: int | None = None, seed: int = 1) -> Words:
        """Draws a batch; the first sentence has `length` symbols per side, the others have at most `length`."""
        torch.manual_seed(seed)
        source, target = torch.randint(1, length, (2, rows or self.rows))
        source[0] = target[0] = length - 1
        return batch(self.size, source, target, self.device)

    def rectangle(self, length: int, rows: int) -> Words:
        return rectangle(self.size, rows, length, self.device)

    def wait(self) -> None:
        """Waits until the device has finished its work."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def seconds(self, run: Callable[[], object]) -> float:
        """Returns the median wall-clock seconds of a call, after two calls for compilation and capture."""
        times = []
        for turn in range(2 + self.rounds):
            self.wait()
            start = time.perf_counter()
            run()
            self.wait()
            if turn > 1:
                times.append(time.perf_counter() - start)
        return median(times)


@functools.lru_cache
def plain_net(size: Size, scoring: str, device: str) -> Net:
    """Builds and caches a random model, since drawing its weights takes seconds at paper sizes."""
    torch.manual_seed(1)
    net = Net(size, "plain", scoring)
    # Keep the two inputs of a maxout unit apart, so that rounding cannot change which is larger.
    net.decoder.readout.bias.data[0::2] += 3
    return net.to(device)


def gradients_of(trainer: Trainer, words: Words) -> dict[str, Tensor]:
    """Returns the gradients of a batch by parameter name, in float64; a missing gradient counts as 0."""
    trainer.gradient(words)
    return {
        name: (torch.zeros_like(p) if p.grad is None else p.grad).detach().double().clone()
        for name, p in trainer.net.named_parameters()
    }


def furthest(found: dict[str, Tensor], expected: dict[str, Tensor]) -> tuple[float, str]:
    """Returns the largest |found - expected| / |expected| of a gradient (inf for NaN), and the gradient's name."""
    apart = []
    for name, wanted in expected.items():
        norm = float(wanted.norm()) or 1.0
        # A gradient with one entry is a sum whose terms can cancel, so 4 times the error is allowed.
        share = float((found[name] - wanted).norm()) / norm / (4 if wanted.numel() == 1 else 1)
        apart.append((share if math.isfinite(share) else math.inf, name))
    return max(apart)
