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

FEWEST_SENTENCES = 2000  # minimum sentences in all items for which processes save time

_work: tuple[Callable[[Any], Any], Sequence[Any]]  # function and items, set in each worker


def map_in_processes(
    function: Callable[[Item], Result], items: Sequence[Item], sentences: int
) -> Iterator[Result]:
    """Yields the results in the order of the items; only results are copied between processes.

    The workers are forks of this process, one per core, so they see all its objects. This process does the
    work itself if there is one item or one core, or if `sentences` (of all items) is small. It also does so
    outside Linux, where forks are unsafe. `function` must not use threads, since forks have no threads.
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
        # Python warns that a fork may wait for a lock of a thread; `function` uses no such lock.
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        try:
            yield from pool.map(_apply, range(len(items)))
        except BaseException:  # such as a signal; does not wait for running work
            # also ends a worker that is starting, which the pool does not list yet
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.terminate()
            raise


def _start_worker(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    global _work
    _work = function, items
    for number in (signal.SIGINT, signal.SIGTERM):  # only the parent handles signals
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
