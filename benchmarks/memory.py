"""Measures the peak memory of one training step, in its own process (Linux; on a GPU the allocator's).

python -m benchmarks.memory laptop additive fused bf16 50 cpu
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.work import BATCH, SIZES, Net, Trainer, rectangle


def measure(
    size: str, scoring: str, recurrence: str, bf16: bool, length: int, device: str
) -> float:
    """Returns the MiB that a step on a batch of one length adds at its peak."""
    words = [size, scoring, recurrence, "bf16" if bf16 else "float32", str(length), device]
    command = [sys.executable, "-m", "benchmarks.memory", *words]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def resident(field: str) -> float:
    """Reads this process's status in MiB: VmHWM (peak memory) or VmRSS (current memory)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 2**10
    raise LookupError(field)


def main() -> None:
    name, scoring, recurrence, precision, length, device = sys.argv[1:]
    torch.set_num_threads(1)
    size = SIZES[name]
    trainer = Trainer(Net(size, recurrence, scoring), size, precision == "bf16", device)
    trainer.gradient(rectangle(size, 2, 3, device))  # allocates gradients, loads libraries
    words = rectangle(size, BATCH, int(length), device)
    if device == "cpu":
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
