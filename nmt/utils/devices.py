"""Devices: precision, threads, work in threads, random numbers, names, memory."""

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

# (minimum hidden units, maximum threads). With fewer units one thread works, since small matrix
# products end before a second thread wakes up.
THREADS = ((1000, 16), (512, 8), (256, 4), (128, 2))


def resolve_precision(precision: str, accelerator: str) -> str:
    """Resolves `auto` to bf16-mixed if the device multiplies bf16 faster than float32, else to 32-true.

    Raises InputError for float16: its gradients would underflow, since CUDA graphs compute them without
    loss scaling.
    """
    if str(precision).partition("-")[0] == "16":
        raise InputError(f"trainer.precision={precision}: type bf16-mixed or 32-true, or auto")
    if precision != "auto":
        return "32-true" if precision == "32" else precision
    if uses_gpu(accelerator):
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        # AMX tiles or AVX-512 BF16. A later torch may lack these private functions.
        tests = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
        fast = any(getattr(torch.cpu, test, bool)() for test in tests)
    return "bf16-mixed" if fast else "32-true"


def uses_gpu(accelerator: str) -> bool:
    """Whether `trainer.accelerator` resolves to a GPU on this machine."""
    return accelerator in ("auto", "gpu", "cuda") and not why_no_gpu()


def resolve_accelerator(accelerator: str) -> str:
    """Resolves `auto` and `gpu` to `cuda` or `cpu`; raises InputError for an unusable device.

    Lightning's `auto` may choose a device without float64, which sums of scores need.
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
    """Says why no GPU can be used; empty if the GPU computes a test product correctly.

    Torch's wheels lack code for some GPUs that `torch.cuda.is_available` counts.
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
    """Sets the CPU threads of this process, and returns their number.

    `auto` means one thread with a GPU. On a CPU the number depends on the machine and on `units`, not on
    the load, so that a command is deterministic. The number is also one if waiting threads would spin,
    as in a notebook that imported torch before nmt.

    Args:
        threads: a number, or `auto`.
        accelerator: `trainer.accelerator`.
        units: hidden units of the model's recurrent networks.
        processes: number of processes of this run that share the machine's cores.
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
    """Yields `map(function, items)` in order; on a CPU, `workers` threads compute one item each.

    The results are bit-identical for any number of workers. torch releases Python's global lock while
    it computes. Threads share the model and start quickly; forked processes could hang, since OpenMP
    has already run in the parent.

    Args:
        function: must not change state that its calls share, and must set gradient mode and autocast,
            since each thread has its own modes.
        workers: number of threads; ignored on a GPU, where one thread works.
        device: where `function` computes.
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
    """Copies a CPU tensor to a device without waiting for the copy."""
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def seed_random_numbers(seed: int, device: torch.device) -> None:
    """Seeds the generators of the CPU and of one device, as `torch.manual_seed` would.

    This takes microseconds; `torch.manual_seed` seeds all kinds of devices, and stores a stack trace
    for each unused one.
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
    """Returns the processor's model name, or else its architecture."""
    cpus = Path("/proc/cpuinfo")
    for line in cpus.read_text().splitlines() if cpus.is_file() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def peak_memory(device: torch.device) -> int:
    """Returns the peak memory in bytes: of tensors on a GPU, of the whole process on a CPU."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
