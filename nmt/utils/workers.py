"""Maps a function over batches with several threads on a CPU.

torch releases Python's global lock while it computes. Threads share the model and start quickly;
forked processes could hang, since a parallel region of OpenMP has run before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import torch

Task = TypeVar("Task")
Done = TypeVar("Done")


def map_batches(
    function: Callable[[Task], Done], items: Iterable[Task], workers: int, device: torch.device
) -> Iterator[Done]:
    """`map(function, items)`, in the order of the items, `workers` of them computed at a time.

    On a CPU each item is computed by one thread, so that the results are, to the bit, the same for
    any number of workers. Gradients and autocast are on or off as they are where it is called.

    Args:
        function: changes nothing that two calls share.
        workers: on a GPU one works, whatever this says.
        device: of what `function` computes.
    """
    if device.type != "cpu":
        yield from map(function, items)
        return
    with _one_thread():
        if workers == 1:
            yield from map(function, items)
            return
        pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
        try:
            yield from pool.map(_as_here(function), items)
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """torch computes with one thread here."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _as_here(function: Callable[[Task], Done]) -> Callable[[Task], Done]:
    """The function with gradients and autocast on or off, in any thread, as they are here."""
    gradients, bf16 = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    dtype = torch.get_autocast_dtype("cpu")

    def called(item: Task) -> Done:
        with torch.set_grad_enabled(gradients), _autocast(dtype) if bf16 else nullcontext():
            return function(item)

    return called


@contextmanager
def _autocast(dtype: torch.dtype) -> Iterator[None]:
    """As `torch.autocast`, but without clearing the cache of cast weights at its end.

    All threads share the cache. If a weight were cast again within a loop, its gradient would be
    summed in two parts. The cache is cleared when the autocast of the caller ends.
    """
    before = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    torch.autocast_increment_nesting()
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", dtype)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cpu", before[0])
        torch.set_autocast_dtype("cpu", before[1])
        torch.autocast_decrement_nesting()
