"""Updates by several threads and searches by several workers, in wall-clock time.

On the machine as it is, and with as many other processes as cores at work, which are started here.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import torch

from benchmarks.lines import Line
from benchmarks.work import BATCH, Net, Size, Trainer, rectangle, search
from nmt.utils.devices import resolve_precision
from nmt.utils.threads import physical_cores
from nmt.utils.workers import map_batches

SYMBOLS = 24  # of each sentence, on both sides
UPDATES = 3  # timed together
BEAM, SENTENCES = 12, 16  # of a batch that is searched


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Other processes that keep a core busy each, as long as this lasts."""
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        time.sleep(0.5)
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def threads(size: Size, args: argparse.Namespace) -> Iterable[Line]:
    """Updates with 1, 2 and as many threads as cores, and beam searches by as many workers."""
    counts = sorted({1, 2, physical_cores()})
    for bf16 in (False, True) if resolve_precision("auto", "cpu") == "bf16-mixed" else (False,):
        net = Net(size, "fused", args.scoring)
        update = partial(update_seconds, Trainer(net, size, bf16, "cpu"), size)
        yield from compared("update", bf16, counts, args.rounds, update)
        searched = partial(search_seconds, net.eval(), size, bf16, 4 * max(counts))
        yield from compared(f"beam {BEAM}", bf16, counts, args.rounds, searched)
    torch.set_num_threads(1)


def compared(
    task: str, bf16: bool, counts: list[int], rounds: int, work: Callable[[int], float]
) -> Iterable[Line]:
    """Median seconds of each count, and the ratios to the first count over the rounds."""
    for others in (0, physical_cores()):
        with busy(others):
            took = [[work(count) for count in counts] for _ in range(rounds)]
        for place, count in enumerate(counts):
            ratios = [row[0] / row[place] for row in took]
            yield {
                "task": task,
                "precision": "bf16" if bf16 else "float32",
                "other_processes": others,
                "threads": count,
                "ms": statistics.median(row[place] for row in took) * 1e3,
                "ratio": statistics.median(ratios),
                "ratio_range": [min(ratios), max(ratios)],
            }


def update_seconds(trainer: Trainer, size: Size, count: int) -> float:
    """Seconds of an update with so many threads."""
    words = rectangle(size, BATCH, SYMBOLS)
    torch.set_num_threads(count)
    trainer.update(words)  # starts the threads
    start = time.perf_counter()
    for _ in range(UPDATES):
        trainer.update(words)
    return (time.perf_counter() - start) / UPDATES


def search_seconds(net: Net, size: Size, bf16: bool, batches: int, count: int) -> float:
    """Seconds of a batch that is searched by so many workers."""
    words = rectangle(size, SENTENCES, round(size.words) + 1)

    def one(batch: int) -> int:
        return len(search(net, words, BEAM, bf16))

    start = time.perf_counter()
    assert sum(map_batches(one, range(batches), count, torch.device("cpu"))) == batches * SENTENCES
    return (time.perf_counter() - start) / batches
