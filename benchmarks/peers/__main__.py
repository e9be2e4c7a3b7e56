"""Compares training and beam search with JoeyNMT and Marian: the same words, batches and sizes.

    python -m benchmarks.peers
    python -m benchmarks.peers --only joeynmt --rounds 9 --threads 1 2
    python -m benchmarks.peers.quality FOLDER      # BLEU after the same time

The first call installs each toolkit into its own environment. The systems alternate in each round.
Prints one line of JSON per figure:

- `peer`, `system`: the compared toolkit, and the system that did the work: the peer or `nmt`
- `task`: `training` (target words per second) or `beam 12` (sentences per second)
- `order`: `mixed` batches have sentences in random order, `sorted` batches sentences of similar length
- `rate`: the median, per CPU second with one thread, per wall-clock second with several
- `ratio`: the median over rounds of the rate divided by the peer's rate with its own order of batches
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable
from functools import partial

import torch

from benchmarks.peers.toolkits import TOOLKITS
from benchmarks.work import (
    SIZES,
    Line,
    Net,
    Trainer,
    pool,
    print_line,
    rectangle,
    search,
    seconds,
)

SENTENCES, SYMBOLS, BEAM = 16, 14, 12  # of the search
VERSIONS = {
    "plain float32": ("plain", False),
    "float32": ("fused", False),
    "bf16": ("fused", True),
}


def compare(name: str, threads: int, rounds: int) -> Iterable[Line]:
    """Measures one toolkit and this program, alternating them."""
    size = SIZES["laptop"]
    peer = TOOLKITS[name](size, threads)
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
            add(turn, count, peer.train(words), name, "training", order, "float32")
            for label in VERSIONS:
                took = own(label, lambda trainer, words=words: trainer.update(words))  # type: ignore[misc]
                add(turn, count, took, "nmt", "training", order, label)
        task = f"beam {BEAM}"
        add(turn, SENTENCES, peer.search(sources, BEAM), name, task, "", "float32")
        for label in ("float32", "bf16"):
            bf16 = VERSIONS[label][1]
            took = own(label, lambda t, bf16=bf16: search(t.net.eval(), sources, BEAM, bf16))  # type: ignore[misc]
            trainers[label].net.train()
            add(turn, SENTENCES, took, "nmt", task, "", label)
    for (system, task, order, precision), found in rates.items():
        own_order = peer.own_order if order else ""
        base = rates[name, task, own_order, "float32"]
        yield {
            "version": peer.version,
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
    parser.add_argument("--only", choices=TOOLKITS, nargs="+", default=list(TOOLKITS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    args = parser.parse_args()
    for name in args.only:
        for threads in args.threads:
            for line in compare(name, threads, args.rounds):
                print_line({"peer": name, "threads": threads} | line)


if __name__ == "__main__":
    main()
