"""Compares training and beam search with JoeyNMT: the same words, batches and sizes.

    python -m benchmarks.peers
    python -m benchmarks.peers --rounds 9 --threads 1 2
    python -m benchmarks.peers.quality FOLDER      # BLEU after the same time, also of Marian

The first call installs JoeyNMT into its own environment. The systems alternate in each round. Prints
one line of JSON per figure:

- `peer`, `system`: the compared toolkit, and the system that did the work: the peer or `nmt`
- `task`: `training` (target words per second) or `beam 12` (sentences per second)
- `order`: `mixed` batches have sentences in random order, as JoeyNMT's own, `sorted` batches sentences of
  similar length
- `rate`: the median, per CPU second with one thread, per wall-clock second with several
- `ratio`: the median over rounds of the rate divided by JoeyNMT's rate with its own order of batches
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.peers.environment import JOEYNMT, install_joeynmt
from benchmarks.work import (
    SIZES,
    Line,
    Net,
    Trainer,
    Words,
    pool,
    print_line,
    rectangle,
    search,
    seconds,
)

WORKER = Path(__file__).with_name("joeynmt_worker.py")
SENTENCES, SYMBOLS, BEAM = 16, 14, 12  # of the search
VERSIONS = {
    "plain float32": ("plain", False),
    "float32": ("fused", False),
    "bf16": ("fused", True),
}


class JoeyNMT:
    """JoeyNMT in its own process, which answers each piece of work with its seconds."""

    def __init__(self, vocabulary: int, threads: int) -> None:
        self.process = subprocess.Popen(
            [install_joeynmt(), WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ask({"vocabulary": vocabulary, "threads": threads})

    def ask(self, work: dict[str, Any]) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(work), file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def train(self, words: Words) -> float:
        return self.ask({"train": [sentences(*words[:2]), sentences(*words[2:])]})

    def search(self, words: Words, beam: int) -> float:
        """Measures a search whose outputs are as long as the sources."""
        source = sentences(*words[:2])
        return self.ask({"search": source, "steps": len(source[0]), "beam": beam})


def sentences(words: Any, mask: Any) -> list[list[int]]:
    """Returns the ids of each sentence of a batch, without padding."""
    return [row[: int(real.sum())].tolist() for row, real in zip(words, mask, strict=True)]


def compare(threads: int, rounds: int) -> Iterable[Line]:
    """Measures JoeyNMT and this program, alternating them."""
    size = SIZES["laptop"]
    peer = JoeyNMT(size.vocabulary, threads)
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    trainers = {
        label: Trainer(Net(size, recurrence), size, bf16, "cpu")
        for label, (recurrence, bf16) in VERSIONS.items()
    }
    pools = {order: pool(size, ordered=order == "sorted") for order in ("mixed", "sorted")}
    sources = rectangle(size, SENTENCES, SYMBOLS)
    rates: dict[tuple[str, str, str, str], list[float]] = {}

    def add(turn: int, work: int, took: float, *key: str) -> None:
        if turn:  # the first turn warms up
            rates.setdefault(key, []).append(work / took)  # type: ignore[arg-type]

    def own(label: str, work: Callable[[Trainer], object]) -> float:
        return seconds(partial(work, trainers[label]), threads)

    for turn in range(rounds + 1):
        for order, batches in pools.items():
            words = batches[(turn * 7 + 3) % len(batches)]
            count = int(words[3].sum())
            add(turn, count, peer.train(words), "joeynmt", "training", order, "float32")
            for label in VERSIONS:
                took = own(label, lambda trainer, words=words: trainer.update(words))  # type: ignore[misc]
                add(turn, count, took, "nmt", "training", order, label)
        task = f"beam {BEAM}"
        add(turn, SENTENCES, peer.search(sources, BEAM), "joeynmt", task, "", "float32")
        for label in ("float32", "bf16"):
            bf16 = VERSIONS[label][1]
            took = own(label, lambda t, bf16=bf16: search(t.net.eval(), sources, BEAM, bf16))  # type: ignore[misc]
            trainers[label].net.train()
            add(turn, SENTENCES, took, "nmt", task, "", label)
    for (system, task, order, precision), found in rates.items():
        base = rates["joeynmt", task, order and "mixed", "float32"]
        yield {
            "peer": "joeynmt",
            "threads": threads,
            "version": JOEYNMT,
            "system": system,
            "task": task,
            "order": order,
            "precision": precision,
            "rate": statistics.median(found),
            "ratio": statistics.median(a / b for a, b in zip(found, base, strict=True)),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    args = parser.parse_args()
    for threads in args.threads:
        for line in compare(threads, args.rounds):
            print_line(line)


if __name__ == "__main__":
    main()
