"""Sharing a machine's GPUs among the jobs that run at the same time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

DEVICE_FILES = ("nvidia*", "dxg", "kfd")  # of a GPU in /dev: NVIDIA's, Windows' for Linux, AMD's


def visible_gpus(environment: Mapping[str, str]) -> list[str]:
    """The GPUs this process may use, by the names CUDA_VISIBLE_DEVICES knows them by."""
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        names = [name.strip() for name in listed.split(",")]
        # CUDA itself stops reading at the first name that is none: "0,-1,1" shows GPU 0 alone.
        end = next((i for i, name in enumerate(names) if name in ("", "-1")), len(names))
        return names[:end]
    if sys.platform == "linux" and not any(any(Path("/dev").glob(name)) for name in DEVICE_FILES):
        return []
    # torch knows how CUDA counts; it stays out of this process, which is to start at once
    count = "import torch; print(torch.cuda.device_count())"
    done = subprocess.run(
        [sys.executable, "-c", count], capture_output=True, text=True, check=False
    )
    return [str(index) for index in range(int(done.stdout))] if done.returncode == 0 else []


class Gpus:
    """Which jobs are on which GPU.

    With at least as many GPUs as jobs at a time, a GPU belongs to one job; with fewer, as few jobs
    as possible share one.
    """

    def __init__(self, names: Sequence[str], n_jobs: int) -> None:
        self.load = dict.fromkeys(names, 0)
        self.capacity = -(-n_jobs // len(self.load)) if self.load else 0

    def take(self, wanted: int) -> list[str] | None:
        """GPUs for a job, the least used first.

        Args:
            wanted: how many the job uses; below 0 means all. More than there are: it gets all, and
                its own check of `trainer.devices` says what is wrong.

        Returns:
            their names, or None while too few of them are free.
        """
        wanted = len(self.load) if wanted < 0 else min(wanted, len(self.load))
        free = sorted((load, i, name) for i, (name, load) in enumerate(self.load.items()))
        taken = [name for load, _, name in free[:wanted] if load < self.capacity]
        if len(taken) < wanted:
            return None
        for name in taken:
            self.load[name] += 1
        return sorted(taken, key=list(self.load).index)

    def give_back(self, names: Sequence[str]) -> None:
        """Frees what `take` has handed out."""
        for name in names:
            self.load[name] -= 1
