"""Speed and memory of `plain` and `fused`, side by side in one run; see docs/performance.md.

    python -m benchmarks                           # both sizes, all parts
    python -m benchmarks --size laptop --part training --rounds 15
    python -m benchmarks.gpu                       # what only a GPU shows

Versions take turns, so that a busy machine slows them alike; medians are printed, and ratios to the
first line. On a CPU times are CPU seconds of one thread, but for the part `threads`: wall-clock time,
best on a machine without other work.
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial

import torch

from benchmarks.memory import measure
from benchmarks.threads import threads
from benchmarks.work import (
    BATCH,
    POOL,
    SCORING,
    SIZES,
    Net,
    Size,
    Trainer,
    pool,
    rectangle,
    seconds,
)
from nmt.config import SearchConfig
from nmt.search import beam_search

VERSIONS = [("plain", False), ("fused", False), ("plain", True), ("fused", True)]
BEAMS = [1, 5, 12]
LENGTHS = [50, 100, 200]


def name(recurrence: str, bf16: bool) -> str:
    return f"{recurrence} {'bf16' if bf16 else 'float32'}"


def training(size: Size, args: argparse.Namespace) -> None:
    """Whole updates on the middle batch of a pool."""
    words = pool(size, args.device)[POOL // 2]
    trainers = {
        version: Trainer(
            Net(size, version[0], args.scoring, args.device != "cpu"), size, version[1], args.device
        )
        for version in VERSIONS
    }
    for trainer in trainers.values():
        trainer.update(words)
    times: dict[tuple[str, bool], list[float]] = {version: [] for version in VERSIONS}
    for _ in range(args.rounds):
        for version, trainer in trainers.items():
            times[version].append(seconds(partial(trainer.update, words), args.device))
    shape = "x".join(str(part.shape[1]) for part in (words[0], words[2]))
    symbols = int(words[3].sum())
    print(f"\nTraining, {size.name} sizes, batch {BATCH}, {shape} symbols")
    print(
        f"{'':14} {'ms/update':>10} {'ratio':>6} {'sentences/s':>12} {'target words/s':>15} "
        f"{'peak MiB':>9}"
    )
    base = statistics.median(times[VERSIONS[0]])
    for version in VERSIONS:
        median = statistics.median(times[version])
        peak = measure(size.name, args.scoring, *version, words[2].shape[1], BATCH, args.device)
        print(
            f"{name(*version):14} {median * 1e3:10.1f} {base / median:6.2f} {BATCH / median:12.0f} "
            f"{symbols / median:15.0f} {peak:9.0f}",
            flush=True,
        )


def decoding(size: Size, args: argparse.Namespace) -> None:
    """Search of fixed length: no `</s>` before as many words as the source has, and no word more."""
    length = round(size.words) + 1
    source, mask = rectangle(size, 16, length, args.device)[:2]
    net = Net(size, "fused", args.scoring).to(args.device).eval()
    versions = [(beam, bf16) for beam in BEAMS for bf16 in (False, True)]
    times: dict[tuple[int, bool], list[float]] = {version: [] for version in versions}
    for turn in range(args.rounds + 1):
        for beam, bf16 in versions:
            settings = SearchConfig(beam_size=beam, min_ratio=1.0, max_ratio=1.0)

            def run(settings: SearchConfig = settings, bf16: bool = bf16) -> None:
                with torch.autocast(args.device, torch.bfloat16, enabled=bf16):
                    beam_search(net, source, mask, settings)

            took = seconds(run, args.device)
            if turn:
                times[beam, bf16].append(took)
    print(f"\nDecoding, {size.name} sizes, 16 sentences of {length} symbols at once")
    print(f"{'':18} {'sentences/s':>12} {'ratio':>6}")
    base = statistics.median(times[versions[0]])
    for version in versions:
        median = statistics.median(times[version])
        beam, bf16 = version
        searched = "greedy" if beam == 1 else f"beam {beam}"
        label = f"{searched} {'bf16' if bf16 else 'float32'}"
        print(f"{label:18} {len(source) / median:12.1f} {base / median:6.2f}", flush=True)


def memory(size: Size, args: argparse.Namespace) -> None:
    print(f"\nPeak memory of a training step, {size.name} sizes, batch {BATCH}, MiB")
    print(f"{'':14}" + "".join(f" {f'{BATCH}x{length}':>9}" for length in LENGTHS))
    for version in (("plain", False), ("fused", False), ("fused", True)):
        peaks = [measure(size.name, args.scoring, *version, n, BATCH, args.device) for n in LENGTHS]
        print(f"{name(*version):14}" + "".join(f" {peak:9.0f}" for peak in peaks), flush=True)


PARTS = {
    "training": training,
    "decoding": decoding,
    "memory": memory,
    "threads": threads,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--part", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--scoring", choices=SCORING, default="additive")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    for size in args.size:
        for part in args.part:
            PARTS[part](SIZES[size], args)


if __name__ == "__main__":
    main()
