"""Maps a function over batches with several threads on a CPU.

torch releases Python's global lock while it computes. Threads share the model and start quickly;
forked processes could hang, since OpenMP has already run in the parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Task = TypeVar("Task")
Done = TypeVar("Done")


def map_batches(
    function: Callable[[Task], Done], items: Iterable[Task], workers: int, device: torch.device
) -> Iterator[Done]:
    """Yields `map(function, items)` in order, and computes `workers` items at a time.

    On a CPU one thread computes each item, so that the results are bit-identical for any number of
    workers.

    Args:
        function: must not change state that its calls share, and sets its own gradient mode and
            autocast, which each thread has for itself.
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
