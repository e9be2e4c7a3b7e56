"""What the items are carried out on: paper sizes on a GPU, or toy sizes on a CPU in a rehearsal."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from benchmarks.gpu.recordings import rehearse_recordings
from benchmarks.work import SIZES, Net, Size, Trainer, Words, batch

TOY = Size("toy", 24, 16, 24, 12, 200, 6, "adadelta")


@dataclass(frozen=True)
class Setting:
    """Sizes, shapes and device of a run of items.

    Attributes:
        rehearse: whether this is a CPU at toy sizes, with graphs that compute where they would replay.
        folder: of an item, where it may write.
        shared: of all items: prepared text.
        start: how the item starts processes, see `benchmarks.gpu.process.run_apart`.
    """

    rehearse: bool
    folder: Path
    shared: Path
    start: str = "fork"

    @property
    def device(self) -> str:
        return "cpu" if self.rehearse else "cuda"

    @property
    def size(self) -> Size:
        return TOY if self.rehearse else SIZES["paper"]

    @property
    def rows(self) -> int:
        """Sentences of a batch."""
        return 8 if self.rehearse else 80

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Batch x length of both sides, of the table of speeds."""
        return [(6, 5), (6, 9), (9, 5)] if self.rehearse else [(80, 30), (80, 50), (1024, 30)]

    @property
    def lengths(self) -> list[int]:
        """Lengths of several batches; the first two are what graphs pad to, too."""
        return [8, 12, 5, 7, 3] if self.rehearse else [32, 48, 30, 49, 11]

    @property
    def rounds(self) -> int:
        """Measurements whose median is taken."""
        return 2 if self.rehearse else 7

    def net(
        self, recurrence: str = "fused", *, graphs: bool = False, scoring: str = "additive"
    ) -> Net:
        """A model with the weights that every other one of its scoring has."""
        with torch.device("meta"):
            net = Net(self.size, recurrence, scoring, graphs)
        net = net.to_empty(device=self.device)
        net.load_state_dict(weights(self.size, scoring, self.device))
        if graphs and self.rehearse:
            rehearse_recordings(net)
        return net

    def trainer(self, net: Net, *, bf16: bool) -> Trainer:
        """What makes updates of a net, without anything around it."""
        return Trainer(net, self.size, bf16, self.device)

    def words(
        self, length: int, *, rows: int | None = None, seed: int = 1, ragged: bool = True
    ) -> Words:
        """Random words: the first sentence has `length` symbols on both sides, others fewer if ragged."""
        torch.manual_seed(seed)
        rows = rows or self.rows
        sides = []
        for _ in range(2):
            side = torch.randint(1, length, (rows,)) if ragged else torch.full((rows,), length - 1)
            side[0] = length - 1
            sides.append(side)
        source, target = sides
        return batch(self.size, source, target, self.device)

    def autocast(self, bf16: bool) -> AbstractContextManager[None]:
        return torch.autocast(self.device, torch.bfloat16, enabled=bf16)

    def wait(self) -> None:
        """Until the device has done what it was asked."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def seconds(self, run: Callable[[], object], rounds: int | None = None) -> float:
        """Median wall-clock seconds of a call, after two calls that compile and capture."""
        times = []
        for turn in range(2 + (rounds or self.rounds)):
            self.wait()
            start = time.perf_counter()
            run()
            self.wait()
            if turn > 1:
                times.append(time.perf_counter() - start)
        return median(times)


def gradients(net: Net) -> dict[str, Tensor]:
    """Copies of the gradients by name, as float64; zeros where there is none."""
    return {
        name: (torch.zeros_like(p) if p.grad is None else p.grad).detach().double().clone()
        for name, p in net.named_parameters()
    }


def gradients_of(
    setting: Setting, net: Net, words: Words, *, bf16: bool
) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradients of a batch."""
    net.zero_grad()
    with setting.autocast(bf16):
        loss = net.loss(*words) / len(words[0])
    loss.backward()
    return loss.item(), gradients(net)


def furthest(found: dict[str, Tensor], expected: dict[str, Tensor]) -> tuple[str, float]:
    """The gradient that is furthest from what is expected, and how far: a share of its norm."""
    apart = distances(found, expected)
    name = max(apart, key=apart.__getitem__)
    return name, apart[name]


def distances(found: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    """|found - expected| / |expected| of each gradient; infinite where one is not a number."""
    result = {}
    for name, wanted in expected.items():
        norm = float(wanted.norm())
        apart = float((found[name] - wanted).norm())
        share = apart / norm if norm else apart
        result[name] = share if share == share else float("inf")
    return result


def same_bits(found: dict[str, Tensor], expected: dict[str, Tensor]) -> list[str]:
    """Names of the tensors that are not equal to the last bit."""
    return [name for name, wanted in expected.items() if not torch.equal(found[name], wanted)]


@functools.lru_cache
def weights(size: Size, scoring: str, device: str) -> dict[str, Tensor]:
    """The weights of a model, drawn once a process: at paper sizes that takes more than a second."""
    torch.manual_seed(1)
    net = Net(size, "fused", scoring)
    # maxout units that nearly tie would be swapped by rounding, which is no error of anyone's
    with torch.no_grad():
        net.decoder.readout.bias[0::2] += 3
    return net.to(device).state_dict()
