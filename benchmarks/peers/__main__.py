"""Compares the speed of `nmt`, JoeyNMT and Marian in training and beam search.

    python -m benchmarks.peers
    python -m benchmarks.peers --only joeynmt --rounds 9 --threads 1 2

All systems get the same batches, and their models have the same sizes. Each round measures all systems in
turn. The first call installs each toolkit into its own environment. Prints one line of JSON per measurement:

- `peer`: the toolkit that is compared with `nmt`; `system`: the measured system, the peer or `nmt`
- `task`: `training`, or `beam 12` for beam search
- `order`: `mixed` for batches in random order, `sorted` for batches of sentences of similar length
- `rate`: target words (training) or sentences (search) per second, median over rounds; the seconds are CPU time
  with one thread, wall-clock time with more
- `ratio`: `rate` divided by the rate of the peer in its default order (`mixed` or `sorted`), median over rounds
- `multiply_adds`: millions of multiply-adds in matrix products per target word, for sentences of equal length
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from benchmarks.peers.toolkits import TOOLKITS
from benchmarks.work import (
    POOL,
    SIZES,
    Line,
    Net,
    Products,
    Size,
    Trainer,
    Words,
    pool,
    print_line,
    rectangle,
    search,
    seconds,
)

SENTENCES, SYMBOLS, BEAM = 16, 14, 12  # sentences per search, symbols per sentence, beam size
VERSIONS = {"plain float32": ("plain", False), "float32": ("fused", False), "bf16": ("fused", True)}


class Nmt:
    """Measures `nmt`; has the same methods as the classes of toolkits in `benchmarks.peers.toolkits`."""

    def __init__(self, size: Size, threads: int, recurrence: str, bf16: bool) -> None:
        self.trainer = Trainer(Net(size, recurrence), size, bf16, "cpu")
        self.threads = threads

    def train(self, words: Words) -> float:
        return seconds(self.work(words), self.threads)

    def search(self, words: Words, beam: int) -> float:
        return seconds(self.work(words, beam), self.threads)

    def multiply_adds(self, words: Words, beam: int | None = None) -> float:
        return Products(self.work(words, beam)).multiply_adds

    def work(self, words: Words, beam: int | None = None) -> Callable[[], object]:
        """Returns a function that runs an update, or a search if a beam is given."""
        net = self.trainer.net.train(beam is None)
        if beam is None:
            return partial(self.trainer.update, words)
        return partial(search, net, words, beam, self.trainer.bf16)


def compare(name: str, threads: int, rounds: int) -> Iterable[Line]:
    """Measures one toolkit and `nmt` alternately."""
    size = SIZES["laptop"]
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    peer = TOOLKITS[name](size, threads)
    systems: dict[tuple[str, str], Any] = {(name, "float32"): peer}
    systems |= {("nmt", each): Nmt(size, threads, *VERSIONS[each]) for each in VERSIONS}
    pools = {order: pool(size, ordered=order == "sorted") for order in ("mixed", "sorted")}
    sources = rectangle(size, SENTENCES, SYMBOLS)
    rates: dict[tuple[str, str, str, str], list[float]] = {}
    for turn in range(rounds + 1):
        for order in (*pools, ""):  # "" stands for beam search
            words = pools[order][(turn * 7 + 3) % POOL] if order else sources
            count = int(words[3].sum()) if order else SENTENCES
            task = "training" if order else f"beam {BEAM}"
            for (system, precision), each in systems.items():
                took = each.train(words) if order else each.search(words, BEAM)
                if turn:  # the first turn is a warm-up
                    rates.setdefault((system, task, order, precision), []).append(count / took)
    for (system, task, order, precision), measured in rates.items():
        base = rates[name, task, peer.own_order if order else "", "float32"]
        beam = () if order else (BEAM,)
        count = systems[system, precision].multiply_adds(sources, *beam)
        yield {
            "version": peer.version,
            "system": system,
            "task": task,
            "order": order,
            "precision": precision,
            "rate": statistics.median(measured),
            "ratio": statistics.median(a / b for a, b in zip(measured, base, strict=True)),
            "multiply_adds": count / sources[2].numel() / 1e6,
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
