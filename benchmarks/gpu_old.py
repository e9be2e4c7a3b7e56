"""What only a GPU shows: what graphs and kernels each bring, and updates a second on real lengths."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.work import Net, Size, Trainer, pool, rectangle, seconds
from nmt.layers.fused import backend

SHAPES = [(80, 30), (80, 50), (1024, 30)]
# label: recurrence, bf16, CUDA graphs, Triton kernels
VERSIONS = {
    "plain loop, float32": ("plain", False, False, False),
    "plain loop, bf16": ("plain", True, False, False),
    "own backward, bf16": ("fused", True, False, False),
    "+ CUDA graph": ("fused", True, True, False),
    "+ Triton kernels": ("fused", True, True, True),
}


@contextmanager
def kernels(on: bool) -> Iterator[None]:
    """With `on` false, PyTorch operations in the place of kernels."""
    found = backend.has_triton
    if not on:
        backend.has_triton = lambda: False  # type: ignore[assignment]
    try:
        yield
    finally:
        backend.has_triton = found


def table(size: Size, args: argparse.Namespace) -> None:
    """Milliseconds of forward + backward."""
    print("\nForward + backward, paper sizes, ms (batch x length of both sides)")
    print(f"{'':22}" + "".join(f" {f'{rows}x{length}':>9}" for rows, length in SHAPES))
    times: dict[tuple[str, int], list[float]] = {}
    for column, shape in enumerate(SHAPES):
        words = rectangle(size, *shape, args.device)
        trainers = {
            label: Trainer(Net(size, recurrence, args.scoring, graphs), size, bf16, args.device)
            for label, (recurrence, bf16, graphs, _) in VERSIONS.items()
        }
        for turn in range(args.rounds + 2):  # compiles and captures in the first two
            for label, trainer in trainers.items():
                with kernels(VERSIONS[label][3]):
                    took = seconds(partial(trainer.gradient, words), args.device)
                if turn > 1:
                    times.setdefault((label, column), []).append(took)
    for label in VERSIONS:
        medians = [statistics.median(times[label, column]) for column in range(len(SHAPES))]
        print(f"{label:22}" + "".join(f" {1e3 * median:9.1f}" for median in medians))


def updates(size: Size, args: argparse.Namespace) -> None:
    """Updates a second with clipping and the optimizer, over a pool of sorted batches."""
    batches = pool(size, args.device)
    trainer = Trainer(Net(size, "fused", args.scoring, graphs=True), size, True, args.device)

    def run() -> None:
        for words in batches:
            trainer.update(words)

    run()
    times = [seconds(run, args.device) / len(batches) for _ in range(args.rounds)]
    words = sum(int(part[3].sum()) for part in batches) / len(batches)
    rate = 1 / statistics.median(times)
    print(f"\nUpdates/s, paper sizes, lengths of mean {size.words}, cap 50, with the optimizer")
    print(f"fused bf16, CUDA graphs: {rate:.1f} ({rate * words:.0f} target words/s)")
