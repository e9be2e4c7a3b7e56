"""Applies a function to many items in several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from nmt.utils.startup import shared_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

FEWEST_SENTENCES = 2000  # with fewer sentences in total, several processes do not save time

_work: tuple[Callable[[Any], Any], Sequence[Any]]  # function and items of a worker process


def map_in_processes(
    function: Callable[[Item], Result], items: Sequence[Item], sentences: int
) -> Iterator[Result]:
    """Applies a function to items in forked processes, one per core, and yields the results in order.

    The forks share the objects of this process, so only the results are copied. No forks are used for a single
    item or core, or if the total number of `sentences` is small, or outside Linux, because forks are unsafe
    there. `function` must not use threads, because threads do not survive a fork.
    """
    workers = min(shared_cores(), len(items))
    if workers < 2 or sentences < FEWEST_SENTENCES or sys.platform != "linux":
        yield from map(function, items)
        return
    context = multiprocessing.get_context("fork")
    others = multiprocessing.active_children()
    with (
        warnings.catch_warnings(),
        ProcessPoolExecutor(workers, context, _start_worker, (function, items)) as pool,
    ):
        # Python warns that a fork may deadlock on the lock of a thread. `function` uses no such lock.
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        try:
            yield from pool.map(_apply, range(len(items)))
        except BaseException:  # for example a signal
            # Do not wait for running tasks. Also end workers that are still starting and not in the pool's list.
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.terminate()
            raise


def _start_worker(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    global _work
    _work = function, items
    for number in (signal.SIGINT, signal.SIGTERM):  # remove the parent's handlers
        signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _apply(index: int) -> Any:
    function, items = _work
    return function(items[index])
