"""Measures speed and memory of `plain` and `fused` in one run; see docs/performance.md.

    python -m benchmarks                           # both sizes, all parts
    python -m benchmarks --size laptop --part training --rounds 15
    python -m benchmarks.peers                     # compared with JoeyNMT and Marian
    python -m benchmarks.gpu                       # checks that need a GPU

Prints one line of JSON per figure. Versions alternate, so that a busy machine slows all of them; figures
are medians, and ratios are relative to the first version. Times are CPU seconds for one thread, and
wall-clock seconds with two or more threads.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch

from benchmarks.work import (
    BATCH,
    POOL,
    SIZES,
    Line,
    Net,
    Size,
    Trainer,
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


def medians(
    works: Mapping[Any, Callable[[], object]], args: argparse.Namespace
) -> dict[Any, float]:
    """Measures the seconds of each piece of work, alternating them; the first round warms up."""
    times: dict[Any, list[float]] = {key: [] for key in works}
    for turn in range(args.rounds + 1):
        for key, work in works.items():
            took = seconds(work, args.threads)
            if turn:
                times[key].append(took)
    return {key: statistics.median(found) for key, found in times.items()}


def name(recurrence: str, bf16: bool) -> str:
    return f"{recurrence} {'bf16' if bf16 else 'float32'}"


def training(size: Size, args: argparse.Namespace) -> Iterable[Line]:
    """Measures whole updates on the middle batch of a pool."""
    words = pool(size)[POOL // 2]
    works = {
        version: partial(Trainer(Net(size, version[0]), size, version[1], "cpu").update, words)
        for version in VERSIONS
    }
    found = medians(works, args)
    for version, took in found.items():
        yield {
            "version": name(*version),
            "ms": took * 1e3,
            "ratio": found[VERSIONS[0]] / took,
            "sentences_per_s": BATCH / took,
            "target_words_per_s": int(words[3].sum()) / took,
            "symbols": [words[0].shape[1], words[2].shape[1]],
        }


def decoding(size: Size, args: argparse.Namespace) -> Iterable[Line]:
    """Measures searches of 16 sentences whose outputs are as long as their sources."""
    words, net = rectangle(size, 16, round(size.words) + 1), Net(size, "fused").eval()
    versions = [(beam, bf16) for beam in BEAMS for bf16 in (False, True)]
    works = {version: partial(search, net, words, *version) for version in versions}
    found = medians(works, args)
    for (beam, bf16), took in found.items():
        yield {
            "version": name(f"beam {beam}", bf16),
            "sentences_per_s": 16 / took,
            "ratio": found[versions[0]] / took,
        }


def memory(size: Size, args: argparse.Namespace) -> Iterable[Line]:
    """Measures the peak memory of a training step, each in its own process (Linux)."""
    for version in (("plain", False), ("fused", False), ("fused", True)):
        for length in LENGTHS:
            with multiprocessing.get_context("spawn").Pool(1) as process:
                peak = process.apply(peak_mib, (size, *version, length))
            yield {"version": name(*version), "shape": f"{BATCH}x{length}", "peak_mib": peak}


PARTS = {"training": training, "decoding": decoding, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--part", choices=PARTS, nargs="+", default=list(PARTS))
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
