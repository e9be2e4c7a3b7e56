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
from collections.abc import Callable, Iterator

import torch

from benchmarks.work import BATCH, Net, Size, Trainer, rectangle
from nmt.config import SearchConfig
from nmt.search import beam_search
from nmt.utils.devices import resolve_precision
from nmt.utils.threads import physical_cores
from nmt.utils.workers import map_batches

SYMBOLS = 24  # of each sentence, on both sides
UPDATES = 3  # timed together
BEAM = 12
SENTENCES = 16  # of a batch that is searched


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


def table(title: str, counts: list[int], rounds: int, work: Callable[[int], float]) -> None:
    """Prints seconds a count, medians, and the medians of each round's ratio to the first count."""
    for loaded in (False, True):
        with busy(physical_cores() if loaded else 0):
            took = [[work(count) for count in counts] for _ in range(rounds)]
        state = f"{physical_cores()} other processes" if loaded else "as it is"
        for place, count in enumerate(counts):
            median = statistics.median(row[place] for row in took)
            ratios = [row[0] / row[place] for row in took]
            print(
                f"{title:22} {state:18} {count:7} {median * 1e3:9.1f} "
                f"{statistics.median(ratios):6.2f} {min(ratios):6.2f} {max(ratios):6.2f}",
                flush=True,
            )


def threads(size: Size, args: argparse.Namespace) -> None:
    """Updates with 1, 2 and as many threads as cores, and a beam search by as many workers."""
    print(
        f"\nThreads and workers, {size.name} sizes, batch {BATCH} of {SYMBOLS} symbols, wall time"
    )
    print(f"{'':22} {'machine':18} {'threads':>7} {'ms':>9} {'ratio':>6} {'from':>6} {'to':>6}")
    counts = sorted({1, 2, physical_cores()})
    for bf16 in (False, True) if resolve_precision("auto", "cpu") == "bf16-mixed" else (False,):
        precision = "bf16" if bf16 else "float32"
        trainer = Trainer(Net(size, "fused", args.scoring), size, bf16, "cpu")
        table(f"update, {precision}", counts, args.rounds, updates_of(trainer, size))
        search = search_of(trainer.net.eval(), size, bf16, 4 * max(counts))
        table(f"beam {BEAM}, {precision}, a batch", counts, args.rounds, search)
    torch.set_num_threads(1)


def updates_of(trainer: Trainer, size: Size) -> Callable[[int], float]:
    """A function of the number of threads: seconds an update."""
    words = rectangle(size, BATCH, SYMBOLS)

    def seconds(count: int) -> float:
        torch.set_num_threads(count)
        trainer.update(words)  # the threads are started
        start = time.perf_counter()
        for _ in range(UPDATES):
            trainer.update(words)
        return (time.perf_counter() - start) / UPDATES

    return seconds


def search_of(net: Net, size: Size, bf16: bool, batches: int) -> Callable[[int], float]:
    """A function of the number of workers: seconds a batch of a search of fixed length."""
    source, mask = rectangle(size, SENTENCES, round(size.words) + 1)[:2]
    settings = SearchConfig(beam_size=BEAM, min_ratio=1.0, max_ratio=1.0)

    def search(batch: int) -> int:
        return len(beam_search(net, source, mask, settings))

    def seconds(count: int) -> float:
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            found = map_batches(search, range(batches), count, torch.device("cpu"))
            assert sum(found) == batches * SENTENCES
        return (time.perf_counter() - start) / batches

    return seconds
