"""The same work here and in JoeyNMT 2.3.0: training at 256 units, and beam search of width 12.

    python -m benchmarks.joeynmt [--rounds 7] [--environment build/joeynmt]

The first call makes an environment of its own for JoeyNMT, from PyPI, that borrows this one's torch
so that both compute with the same library. The two take turns, a round each; medians of CPU seconds
of one thread are compared, or of wall-clock seconds with several (`--threads`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sysconfig
import time
import venv
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.work import BATCH, SIZES, Net, Trainer, pool, rectangle, seconds
from nmt.config import SearchConfig
from nmt.search import beam_search

WORKER = Path(__file__).with_name("worker.py")
SENTENCES, SYMBOLS, BEAM = 16, 14, 12  # of the search


def environment(folder: Path) -> Path:
    """The Python of JoeyNMT's environment, made if it is not there yet."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"making an environment for JoeyNMT in {folder} ...", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
        found = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
        borrowed = Path(found.stdout.strip()) / "borrowed.pth"
        borrowed.write_text(sysconfig.get_paths()["purelib"] + "\n")
        wanted = ["joeynmt==2.3.0", "importlib_metadata"]
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
        (folder / "ready").touch()
    return python


class Joey:
    """JoeyNMT in its own process: asked for a piece of work, it answers with its CPU seconds."""

    def __init__(self, python: Path, vocabulary: int, threads: int) -> None:
        self.process = subprocess.Popen(
            [python, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ask({"vocabulary": vocabulary, "threads": threads})

    def ask(self, work: dict[str, Any]) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(work), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("JoeyNMT's process ended; its message stands above")
        return float(answer)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--environment", type=Path, default=Path("build/joeynmt"))
    parser.add_argument("--vocabulary", type=int, default=SIZES["laptop"].vocabulary)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clock = time.process_time if args.threads == 1 else time.perf_counter
    torch.manual_seed(1)
    size = replace(SIZES["laptop"], vocabulary=args.vocabulary)
    joey = Joey(environment(args.environment), size.vocabulary, args.threads)
    mixed, ordered = pool(size, ordered=False), pool(size)
    source, mask = rectangle(size, SENTENCES, SYMBOLS)[:2]
    settings = SearchConfig(beam_size=BEAM, min_ratio=1.0, max_ratio=1.0)
    trainers = {bf16: Trainer(Net(size, "fused"), size, bf16, "cpu") for bf16 in (False, True)}
    plain = Trainer(Net(size, "plain"), size, False, "cpu")

    def search(bf16: bool) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            beam_search(trainers[bf16].net.eval(), source, mask, settings)
        trainers[bf16].net.train()

    training: dict[str, list[float]] = {}
    searching: dict[str, list[float]] = {}
    for turn in range(args.rounds + 1):
        # another place of the pool each turn, the same for all
        here = (turn * 7 + 3) % len(mixed)
        rates = {}
        for order, batches in (("mixed", mixed), ("sorted", ordered)):
            words = batches[here]
            count = int(words[3].sum())
            sentences = [
                row[: int(real.sum())].tolist()
                for tensor, mask_ in ((words[0], words[1]), (words[2], words[3]))
                for row, real in zip(tensor, mask_, strict=True)
            ]
            work = {"source": sentences[:BATCH], "target": sentences[BATCH:]}
            rates[f"JoeyNMT, {order}"] = count / joey.ask({"train": work})
            rates[f"plain float32, {order}"] = count / seconds(
                partial(plain.update, words), "cpu", clock
            )
            for bf16, trainer in trainers.items():
                label = f"fused {'bf16' if bf16 else 'float32'}, {order}"
                took = seconds(partial(trainer.update, words), "cpu", clock)
                rates[label] = count / took
        found = {
            "JoeyNMT": joey.ask({"search": source.tolist(), "steps": SYMBOLS, "beam": BEAM}),
            "float32": seconds(lambda: search(False), "cpu", clock),
            "bf16": seconds(lambda: search(True), "cpu", clock),
        }
        if turn:  # the first turn warms up
            for label, rate in rates.items():
                training.setdefault(label, []).append(rate)
            for label, took in found.items():
                searching.setdefault(label, []).append(SENTENCES / took)
    show("Training: target words a second", training, "JoeyNMT, mixed")
    show(f"Beam {BEAM}, fixed length: sentences a second", searching, "JoeyNMT")


def show(title: str, rates: dict[str, list[float]], base: str) -> None:
    print(f"\n{title}")
    for label, found in rates.items():
        ratio = statistics.median(
            one / other for one, other in zip(found, rates[base], strict=True)
        )
        print(f"{label:24} {statistics.median(found):9.1f} {ratio:7.2f} times {base}", flush=True)


if __name__ == "__main__":
    main()
