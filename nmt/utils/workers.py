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
    workers. Gradients and autocast are on or off as in the caller.

    Args:
        function: must not change state that its calls share.
        workers: number of threads; ignored on a GPU, where one thread works.
        device: where `function` computes.
    """
    if device.type != "cpu":
        yield from map(function, items)
        return
    gradients, bf16 = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    dtype, threads = torch.get_autocast_dtype("cpu"), torch.get_num_threads()

    def work(item: Task) -> Done:
        with torch.set_grad_enabled(gradients), torch.autocast("cpu", dtype, enabled=bf16):
            return function(item)

    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from map(function, items) if workers == 1 else pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
