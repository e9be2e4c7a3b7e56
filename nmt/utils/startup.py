"""Settings to make before torch is imported: OpenMP's threads, and freed memory."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

SETTINGS = {
    # Waiting threads spin for milliseconds by default. If another process occupies a core, they hold up
    # the thread that they wait for (docs/performance.md).
    "GOMP_SPINCOUNT": "300",  # GNU OpenMP, in spins
    "KMP_BLOCKTIME": "1",  # Intel and LLVM OpenMP, in milliseconds
    # Batches of all lengths need about twice the 1,024 matrix products that oneDNN caches by default.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "4096",
}
# Settings of malloc (glibc's malloc.h). By default, malloc returns freed large blocks to the system,
# which then clears each new block page by page.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGEST_KEPT_BLOCK_BYTES = 2**28, 2**25  # 256 and 32 MiB (glibc's maximum)


def set_up_process() -> None:
    """Limits how long OpenMP's threads spin, if torch is not yet imported, and makes malloc keep freed memory.

    Environment variables that are already set stay; child processes inherit all variables.
    """
    if "torch" not in sys.modules:
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        libc.mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT_BLOCK_BYTES)


def shared_cores(processes: int = 1) -> int:
    """Physical cores (at most OMP_NUM_THREADS) divided by `processes` that share them; at least 1."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = min(physical_cores(), int(limit)) if limit.isdecimal() else physical_cores()
    return max(1, cores // max(1, processes))


def physical_cores() -> int:
    """Cores that this process may use; the hardware threads of a core count once."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text() if siblings.is_file() else str(cpu))
    return len(cores)
