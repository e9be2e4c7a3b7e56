"""Devices: precision, threads, memory, names."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import sys
from pathlib import Path

import torch
from torch import Tensor

from nmt.utils.cores import cgroup_memory, choose_threads, physical_cores
from nmt.utils.environment import is_launched
from nmt.utils.errors import InputError
from nmt.utils.progress import counted

RANKS = 4  # on a core at most: more are only slower, and each is a process with all libraries


def resolve_precision(precision: str, accelerator: str) -> str:
    """`32-true` or `bf16-mixed`; `auto` takes bf16 where the device multiplies it faster."""
    if precision != "auto":
        return "32-true" if precision == "32" else precision
    if uses_gpu(accelerator):
        return (
            "bf16-mixed" if torch.cuda.is_bf16_supported(including_emulation=False) else "32-true"
        )
    return "bf16-mixed" if cpu_multiplies_bf16() else "32-true"


def uses_gpu(accelerator: str) -> bool:
    """Whether `trainer.accelerator` comes to a GPU on this machine."""
    return accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()


def check_accelerator(accelerator: str) -> None:
    """Raises InputError where a GPU is asked for and none is there."""
    if accelerator in ("gpu", "cuda") and not torch.cuda.is_available():
        raise InputError(
            f"trainer.accelerator={accelerator}: no GPU found; use trainer.accelerator=cpu, or auto"
        )


def check_devices(accelerator: str, devices: int, machines: int) -> None:
    """Refuses devices and machines that are not there, where this process starts the ranks itself.

    Raises:
        InputError: naming the key.
    """
    check_accelerator(accelerator)
    if is_launched():  # its launcher has shared out devices and cores
        return
    if machines > 1:
        raise InputError(
            f"trainer.num_nodes={machines}: nothing starts the ranks of the other machines; start "
            "this command on each with torchrun, or with srun (docs/distributed.md)"
        )
    if uses_gpu(accelerator):
        there, have = torch.cuda.device_count(), "GPU"
        most = there
    else:
        there, have = physical_cores(), "core"
        most = RANKS * there
    if devices > most:
        raise InputError(
            f"trainer.devices={devices}: at most {most}, for this process may use "
            f"{counted(there, have)}"
        )


def cpu_multiplies_bf16() -> bool:
    """Whether the processor has instructions for bf16 products: AMX tiles or AVX-512 BF16.

    Elsewhere bf16 products are emulated and slower than float32 ones.
    """
    # private functions, which a later version of torch may lack
    tests = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(torch.cpu, test, bool)() for test in tests)


def resolve_threads(threads: int | str, accelerator: str, units: int, processes: int) -> int:
    """The threads of a process; `auto` is one beside a GPU, and elsewhere as `choose_threads`."""
    if isinstance(threads, int):
        return threads
    return 1 if uses_gpu(accelerator) else choose_threads(units, processes)


def queued(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the CPU on a device, without waiting for its copy, or for what the device does."""
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def use_threads(threads: int | str) -> None:
    """Sets the threads of this process; one where nobody has resolved `auto`."""
    torch.set_num_threads(threads if isinstance(threads, int) else 1)


def seed_random_numbers(seed: int, device: torch.device) -> None:
    """Seeds the random numbers of the CPU and of a device, as `torch.manual_seed` would.

    This takes microseconds; `torch.manual_seed` seeds every device there may be, and keeps a stack
    trace for each that is not in use.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        index = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[index].manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


def name_of(device: torch.device) -> str:
    """The name of a device for people: the GPU's model, or the number of CPU threads."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads > 1 else ''}"


def processor() -> str:
    """The processor's own name, or else its architecture."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def host_memory() -> int:
    """Bytes that the processes here may hold: those of the machine, or of a container's or job's limit."""
    return int(min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), cgroup_memory()))


def device_memory() -> int:
    """Bytes of a GPU; only where there is one."""
    return int(torch.cuda.get_device_properties(0).total_memory)


def peak_memory(device: torch.device) -> int:
    """Bytes that this process has held at most: on a GPU in tensors, on a CPU altogether."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
