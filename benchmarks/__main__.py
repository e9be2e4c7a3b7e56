"""Measures the speed and memory of plain and fused networks; see docs/performance.md.

    python -m benchmarks                           # both model sizes, all parts
    python -m benchmarks --size laptop --part training --rounds 15
    python -m benchmarks --size laptop --part operations --sentences 4 16
    python -m benchmarks.peers                     # compared with JoeyNMT and Marian
    python -m benchmarks.gpu                       # checks that need a GPU

Prints one line of JSON per measurement. Each round measures all compared versions in turn, so that a busy
machine slows all of them. Times are medians over the rounds: CPU time with one thread, wall-clock time with more.

- `ratio`: speed divided by the speed of the version that is printed first
- `products_ms`: time of the matrix products of a workload, without its other operations
- `multiply_adds`: number of multiply-adds in these matrix products
- `over_products`: time of the workload divided by the time of its matrix products
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch

from benchmarks.operations import operations
from benchmarks.work import (
    BATCH,
    POOL,
    SIZES,
    Line,
    Net,
    Products,
    Size,
    Trainer,
    Words,
    peak_mib,
    pool,
    print_line,
    rectangle,
    search,
    seconds,
)

VERSIONS = [("plain", False), ("fused", False), ("plain", True), ("fused", True)]
BEAMS = [1, 5, 12]
LENGTHS = [50, 100, 200]


def measure(works: Mapping[Any, Callable[[], object]], args: argparse.Namespace) -> dict[Any, Line]:
    """Measures the time of each workload, and the time of only its matrix products."""
    for work in works.values():
        work()  # warm-up
    products = {key: Products(work) for key, work in works.items()}
    times: dict[Any, list[tuple[float, float]]] = {key: [] for key in works}
    for _ in range(args.rounds):
        for key, work in works.items():
            took = seconds(work, args.threads), seconds(products[key].repeat, args.threads)
            times[key].append(took)
    found: dict[Any, Line] = {}
    for key, pairs in times.items():
        took, limit = (statistics.median(each) for each in zip(*pairs, strict=True))
        first = next(iter(found.values()))["ms"] if found else took * 1e3
        found[key] = {
            "ms": took * 1e3,
            "ratio": first / took / 1e3,
            "products_ms": limit * 1e3,
            "over_products": statistics.median(a / b for a, b in pairs),
            "multiply_adds": products[key].multiply_adds,
        }
    return found


def name(recurrence: str, bf16: bool) -> str:
    return f"{recurrence} {'bf16' if bf16 else 'float32'}"


def training(size: Size, args: argparse.Namespace) -> Iterable[Line]:
    """Measures the time of an update, and of each part of it, on a batch of medium length."""
    words = pool(size)[POOL // 2]
    trainers = {each: Trainer(Net(size, each[0]), size, each[1], "cpu") for each in VERSIONS}
    works = {each: partial(trainer.update, words) for each, trainer in trainers.items()}
    for version, figures in measure(works, args).items():
        rounds = [parts(trainers[version], words, args.threads) for _ in range(args.rounds)]
        yield {
            "version": name(*version),
            **figures,
            "sentences_per_s": BATCH / figures["ms"] * 1e3,
            "target_words_per_s": int(words[3].sum()) / figures["ms"] * 1e3,
            "symbols": [words[0].shape[1], words[2].shape[1]],
            "parts_ms": {
                part: statistics.median(found[part] for found in rounds) for part in rounds[0]
            },
        }


def parts(trainer: Trainer, words: Words, threads: int) -> Line:
    """Returns the milliseconds that each part of one update takes."""
    source, source_mask, target, target_mask = words
    net = trainer.net
    net.zero_grad()
    took = {}

    def run(part: str, work: Callable[..., Any], *inputs: Any) -> Any:
        results = []
        took[part] = 1e3 * seconds(lambda: results.append(work(*inputs)), threads)
        return results[0]

    with torch.autocast("cpu", torch.bfloat16, enabled=trainer.bf16):
        memory = run("encoder", net.encode, source, source_mask)
        readout, *_ = run("decoder", net.decoder, target, target_mask, memory)
        loss = run("loss", net.output.loss, readout, target, target_mask)
    run("backward", (loss / len(source)).backward)
    run("clip", trainer.clip)
    run("optimizer", trainer.optimizer.step)
    return took


def decoding(size: Size, args: argparse.Namespace) -> Iterable[Line]:
    """Measures the time of beam searches whose outputs are as long as the sources."""
    net = Net(size, "fused").eval()
    versions = [(beam, bf16) for beam in BEAMS for bf16 in (False, True)]
    for sentences in args.sentences:
        words = rectangle(size, sentences, round(size.words) + 1)
        works = {version: partial(search, net, words, *version) for version in versions}
        for (beam, bf16), figures in measure(works, args).items():
            yield {
                "version": name(f"beam {beam}", bf16),
                "sentences": sentences,
                **figures,
                "sentences_per_s": sentences / figures["ms"] * 1e3,
            }


def memory(size: Size, args: argparse.Namespace) -> Iterable[Line]:
    """Measures the peak memory of a training step; each measurement runs in a new process (Linux only)."""
    for version in (("plain", False), ("fused", False), ("fused", True)):
        for length in LENGTHS:
            with multiprocessing.get_context("spawn").Pool(1) as process:
                peak = process.apply(peak_mib, (size, *version, length))
            yield {"version": name(*version), "shape": f"{BATCH}x{length}", "peak_mib": peak}


PARTS = {"training": training, "decoding": decoding, "memory": memory, "operations": operations}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--part", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--sentences", type=int, nargs="+", default=[16], help="searched at once")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    for size in args.size:
        for part in args.part:
            for line in PARTS[part](SIZES[size], args):
                print_line({"part": part, "size": size, "threads": args.threads} | line)


if __name__ == "__main__":
    main()
