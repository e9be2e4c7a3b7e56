"""Utilities for devices: precision, threads, random seeds, names, memory."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from nmt.utils.errors import InputError, first_line
from nmt.utils.startup import shared_cores

Task = TypeVar("Task")
Done = TypeVar("Done")

ALIASES = {
    "32": "32-true",
    "bf16": "bf16-mixed",
    "64": "64-true",
}  # Lightning's names of precisions
# Pairs of (minimum number of hidden units, maximum number of threads). Smaller models use one thread, because
# small matrix products end before a second thread wakes up.
THREADS = ((1000, 16), (512, 8), (256, 4), (128, 2))


def resolve_precision(precision: str, accelerator: str) -> str:
    """Resolves `auto` to bf16-mixed if the hardware supports bf16, else to 32-true.

    Raises InputError for float16, whose gradients would underflow, because training does not scale the loss.
    """
    if str(precision).partition("-")[0] == "16":
        raise InputError(f"trainer.precision={precision}: type bf16-mixed or 32-true, or auto")
    if precision != "auto":
        return ALIASES.get(str(precision), precision)
    if uses_gpu(accelerator):
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        # Check for AMX or AVX-512 BF16. Later versions of torch may lack these private functions.
        tests = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
        fast = any(getattr(torch.cpu, test, bool)() for test in tests)
    return "bf16-mixed" if fast else "32-true"


def uses_gpu(accelerator: str) -> bool:
    """Whether `trainer.accelerator` resolves to a GPU on this machine."""
    return accelerator in ("auto", "gpu", "cuda") and not why_no_gpu()


def resolve_accelerator(accelerator: str) -> str:
    """Resolves `auto` and `gpu` to `cuda` or `cpu`; raises InputError for an unusable device.

    `auto` is not left to Lightning, which could choose a device without float64. The scores need float64.
    """
    if accelerator in ("gpu", "cuda") and (reason := why_no_gpu()):
        raise InputError(
            f"trainer.accelerator={accelerator}: {reason}; type trainer.accelerator=cpu, or auto"
        )
    if accelerator == "mps":
        raise InputError(
            "trainer.accelerator=mps: Apple's GPUs are not supported; type cpu, or auto"
        )
    if accelerator in ("auto", "gpu"):
        return "cuda" if uses_gpu(accelerator) else "cpu"
    return accelerator


@cache
def why_no_gpu() -> str:
    """Returns the reason why no GPU can be used, or an empty string if the GPU works.

    The GPU must multiply two matrices correctly. `torch.cuda.is_available` is not enough, because the wheels
    of torch have no code for some GPUs.
    """
    if not torch.cuda.is_available():
        apple = torch.backends.mps.is_available()
        return "Apple's GPUs are not supported" if apple else "no GPU found"
    index = int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count()
    try:
        ones = torch.ones(2, 2, device=torch.device("cuda", index))
        product = float((ones @ ones).sum())
    except RuntimeError as error:
        return f"{torch.cuda.get_device_name(index)} cannot be used ({first_line(error)})"
    return "" if product == 8 else f"{torch.cuda.get_device_name(index)} computes wrong numbers"


def set_threads(threads: int | str, accelerator: str, units: int, processes: int = 1) -> int:
    """Sets the number of CPU threads of this process, and returns this number.

    With a GPU, `auto` is one thread. On a CPU, `auto` depends on the machine and on `units`. It does not depend
    on the load, so that commands are deterministic. If torch was imported before nmt, for example in a notebook,
    `auto` is one thread too, because it is too late to stop waiting threads from spinning (`nmt.utils.startup`).

    Args:
        threads: a number, or `auto`.
        accelerator: the value of `trainer.accelerator`.
        units: number of hidden units of the model's recurrent networks.
        processes: number of processes of this run that share the cores of the machine.
    """
    if not isinstance(threads, int):
        alone = "GOMP_SPINCOUNT" not in os.environ or uses_gpu(accelerator)
        limit = 1 if alone else next((most for least, most in THREADS if units >= least), 1)
        threads = min(limit, shared_cores(processes))
    torch.set_num_threads(threads)
    return threads


def map_batches(
    function: Callable[[Task], Done], items: Iterable[Task], workers: int, device: torch.device
) -> Iterator[Done]:
    """Applies a function to items and yields the results in order; on a CPU, it uses `workers` threads.

    Results are bit-identical for any number of threads, which run in parallel because torch releases the global
    interpreter lock. Forked processes are not used, because they could hang if OpenMP has run in the parent.

    Args:
        function: must not change shared state. It must set gradient mode and autocast, because each thread
            has its own modes.
        workers: number of threads on a CPU. On a GPU, one thread is used.
        device: the device that `function` uses.
    """
    if device.type != "cpu":
        yield from map(function, items)
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from map(function, items) if workers == 1 else pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def queued(tensor: Tensor, device: torch.device) -> Tensor:
    """Starts a copy of a CPU tensor to a device, and does not wait for the copy."""
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def seed_random_numbers(seed: int, device: torch.device) -> None:
    """Seeds the random generators of the CPU and of one device like `torch.manual_seed`.

    This takes microseconds. `torch.manual_seed` is slower, because it seeds all types of devices and stores a
    stack trace for each unused type.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[index].manual_seed(seed)


def name_of(device: torch.device) -> str:
    """Names a device for display: the GPU's model, or the number of CPU threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


def processor() -> str:
    """Returns the model name of the CPU, or its architecture if the model name is unknown."""
    cpus = Path("/proc/cpuinfo")
    for line in cpus.read_text().splitlines() if cpus.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def peak_memory(device: torch.device) -> int:
    """Returns the peak memory in bytes: on a GPU, that of all tensors; on a CPU, that of the process."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
