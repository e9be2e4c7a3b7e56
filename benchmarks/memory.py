"""Peak memory of one training step, in a process of its own (Linux; on a GPU the allocator's).

python -m benchmarks.memory --size laptop --recurrence fused --bf16 --rows 80 --length 50
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.work import SCORING, SIZES, Net, Trainer, rectangle


def measure(
    size: str, scoring: str, recurrence: str, bf16: bool, length: int, rows: int, device: str
) -> float:
    """MiB that a step adds at its peak to what stands before it."""
    command = [
        sys.executable, "-m", "benchmarks.memory", "--size", size, "--recurrence", recurrence,
        "--scoring", scoring, "--length", str(length), "--rows", str(rows), "--device", device,
    ]  # fmt: skip
    done = subprocess.run(command + ["--bf16"] * bf16, capture_output=True, text=True, check=True)
    return float(done.stdout)


def resident(field: str) -> float:
    """A line of this process's status in MiB: VmHWM, the peak, or VmRSS, what is held now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 2**10
    raise LookupError(field)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="laptop")
    parser.add_argument("--recurrence", choices=["plain", "fused"], default="fused")
    parser.add_argument("--scoring", choices=SCORING, default="additive")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--length", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    size = SIZES[args.size]
    trainer = Trainer(Net(size, args.recurrence, args.scoring), size, args.bf16, args.device)
    trainer.gradient(rectangle(size, 2, 3, args.device))  # gradients and libraries stand before
    words = rectangle(size, args.rows, args.length, args.device)
    if args.device == "cpu":
        before = resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
        trainer.gradient(words)
        print(resident("VmHWM") - before)
        return
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    trainer.gradient(words)
    print((torch.cuda.max_memory_allocated() - before) / 2**20)


if __name__ == "__main__":
    main()
