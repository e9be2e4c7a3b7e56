"""The number of cores this process may use, and of threads per update.

Nothing here imports torch: OpenMP and oneDNN read their settings when torch is imported.
"""

from __future__ import annotations

import math
import os
import platform
import re
import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path

SPIN = {"GOMP_SPINCOUNT": "10000", "KMP_BLOCKTIME": "1"}  # turns (GNU), milliseconds (Intel, LLVM)
# Products of 16 bits that oneDNN keeps after it has compiled them, one for each shape, 0.8 MB each;
# batches of all lengths have twice as many shapes as the 1,024 that it keeps by default.
COMPILED = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "4096"}
WAIT = "OMP_WAIT_POLICY"  # the standard's own word on it, for every library

# (hidden units, most threads of an update) from that size on: the products of smaller layers are
# done before a second thread has woken.
THREADS = ((1000, 16), (512, 8), (256, 4), (128, 2))


def set_up_libraries(environ: MutableMapping[str, str] | None = None) -> None:
    """Sets how long waiting OpenMP threads spin, and how many compiled kernels oneDNN keeps.

    By default OpenMP's threads spin for milliseconds, which delays the thread they wait for where
    other processes use the cores. To be called before torch is imported; later it has no effect.
    Child processes inherit the settings. Variables that the user has set are kept.
    """
    environ = os.environ if environ is None else environ
    if "torch" in sys.modules:
        return
    for name, value in (COMPILED if WAIT in environ else COMPILED | SPIN).items():
        environ.setdefault(name, value)


def choose_threads(units: int, processes: int) -> int:
    """The threads of one process's updates: what `trainer.threads=auto` stands for on a CPU.

    It depends on the machine's cores and the layers alone, not on the load of the machine, so that the
    same command gives the same weights. It is one where waiting threads would spin (torch was
    imported before `set_up_libraries`, as in a notebook), and on systems where more were not tested.

    Args:
        units: hidden units of the model's recurrent networks.
        processes: of this run on this machine, which share its cores.
    """
    bounded = WAIT in os.environ or all(name in os.environ for name in SPIN)
    tried = sys.platform == "linux" and platform.machine() == "x86_64"
    if not (bounded and tried):
        return 1
    most = next((threads for least, threads in THREADS if units >= least), 1)
    return min(most, shared_cores(processes))


def shared_cores(processes: int = 1) -> int:
    """Physical cores for each of `processes` processes of a run on this machine; at least 1.

    OMP_NUM_THREADS bounds it, which the launchers of sweeps set to a job's share. Of ranks that
    SLURM has started, each has the `--cpus-per-task` of its own.
    """
    cores = physical_cores()
    per_task = _number("SLURM_CPUS_PER_TASK")
    if per_task:
        cores = min(cores, per_task)
        processes = 1 if (_number("SLURM_NTASKS") or 1) > 1 else processes
    else:
        cores = min(cores, _number("SLURM_CPUS_ON_NODE") or cores)
    return max(1, min(cores // max(1, processes), _number("OMP_NUM_THREADS") or cores))


def physical_cores() -> int:
    """The cores that this process may use: by its affinity, less where a cgroup limits its time.

    The hardware threads of a core count once; where the system does not tell them apart, each does.
    """
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    cores = {_core(cpu) for cpu in os.sched_getaffinity(0)}
    return max(1, math.floor(min(len(cores), cgroup_quota())))


def cgroup_quota(
    mounted: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")
) -> float:
    """Processors whose time the cgroups (version 1 or 2) of this process allow; inf: no limit.

    Args:
        mounted: where cgroups are mounted.
        membership: file of the cgroups of the process.
    """
    quotas = [math.inf]
    for folder in cgroups("cpu", mounted, membership):
        # version 2: both numbers in a file; version 1: a file each, -1 for no limit
        text = _read(folder / "cpu.max") or " ".join(
            _read(folder / f"cpu.cfs_{part}_us") for part in ("quota", "period")
        )
        if match := re.fullmatch(r"\s*(\d+)\s+(\d+)\s*", text):
            quotas.append(int(match[1]) / int(match[2]))
    return min(quotas)


def cgroup_memory(
    mounted: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")
) -> float:
    """Bytes that the cgroups of this process allow; inf: no limit. See `cgroup_quota`."""
    limits = [math.inf]
    for folder in cgroups("memory", mounted, membership):
        # version 2 ("max" for no limit), version 1
        texts = [_read(folder / name) for name in ("memory.max", "memory.limit_in_bytes")]
        limits += [int(text) for text in texts if text.strip().isdigit()]
    return min(limits)


def cgroups(controller: str, mounted: Path, membership: Path) -> Iterator[Path]:
    """The folders of the cgroups (version 1 or 2) of this process that may bound what it gets."""
    for line in _read(membership).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for root in {mounted, mounted / controllers, mounted / controller}:
            yield from (root, *_below(root, path))


def _below(root: Path, path: str) -> Iterator[Path]:
    """The folders on the way from a root to a cgroup; in a container they may not be there."""
    for name in Path(path).parts[1:]:
        root /= name
        yield root


def _core(cpu: int) -> str:
    """An identifier of the physical core of a hardware thread."""
    topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    return _read(topology / "thread_siblings_list").strip() or str(cpu)


def _number(name: str) -> int | None:
    """A number above 0 in the environment; of `4,2` (OMP_NUM_THREADS of nested regions) the first."""
    first = os.environ.get(name, "").partition(",")[0]
    return int(first) if first.isdecimal() and int(first) else None


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
