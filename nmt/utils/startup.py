"""Process settings to be made before torch is imported: signals, OpenMP, oneDNN and malloc."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
# Environment variable with the id of the process that started a rank or a job
PARENT = "NMT_PARENT"

SETTINGS = {
    # By default, waiting threads spin for milliseconds. If other processes use the CPU too, this
    # slows the thread for which the waiting threads wait. With too few spins, threads sleep between
    # the operations of an update, and a virtual machine wakes them slowly (docs/performance.md).
    "GOMP_SPINCOUNT": "20000",  # for GNU OpenMP, number of spins
    "KMP_BLOCKTIME": "1",  # for Intel and LLVM OpenMP, in milliseconds
    # By default, oneDNN caches kernels for 1,024 matrix products. Batches of all lengths need about twice as many.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "4096",
}
# Constants of glibc's malloc.h. By default, malloc returns large freed blocks to the kernel. This is slow,
# because the kernel clears all pages of a new block.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, LARGEST_KEPT_BLOCK_BYTES = 2**28, 2**25  # 256 MiB, and 32 MiB (glibc's maximum)


def end_on_signals() -> None:
    """Lets SIGINT, SIGTERM and SIGUSR1 end this process at once, and the death of the process in `PARENT`.

    Nothing is saved, because a run can be resumed however it ended. Python's handlers would be called only
    after C++ code returns, which may be waiting for another rank. SIGINT ends also a background job, in which
    shells ignore it. SIGHUP is left as it is, for `nohup`.
    """
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
    if parent := os.environ.pop(PARENT, ""):
        end_with_parent(int(parent))


def end_with_parent(parent: int) -> None:
    """Kills this process when the process `parent`, which started it, ends.

    Linux does this itself. On other systems a thread checks the parent every second.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)

    if sys.platform != "linux":
        threading.Thread(target=watch, daemon=True).start()
        return
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the call
        os.kill(os.getpid(), signal.SIGKILL)


def set_up_process() -> None:
    """Sets environment variables for OpenMP and oneDNN, and makes malloc keep freed memory.

    Variables that are already set are kept. If torch is already imported, none is set. Child processes inherit them.
    """
    if "torch" not in sys.modules:
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        libc.mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT_BLOCK_BYTES)


def shared_cores(processes: int = 1) -> int:
    """Divides the number of physical cores (at most OMP_NUM_THREADS) by `processes`; returns at least 1."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = min(physical_cores(), int(limit)) if limit.isdecimal() else physical_cores()
    return max(1, cores // max(1, processes))


def physical_cores() -> int:
    """Returns the number of physical cores that this process may use; hyper-threads do not count."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text() if siblings.is_file() else str(cpu))
    return len(cores)
