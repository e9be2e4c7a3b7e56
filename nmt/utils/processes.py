"""Worker processes that end with their parent."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from nmt.utils.startup import end_with_parent, shared_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

FEWEST_SENTENCES = 2000  # with fewer sentences in total, several processes do not save time

_work: tuple[Callable[[Any], Any], Sequence[Any]]  # function and items of a worker process


def follow_parent(worker: int = 0) -> None:
    """Makes this worker process ignore Ctrl-C and end when its parent ends.

    Without its parent, a worker would wait for tasks forever and keep the locks of the parent.

    Args:
        worker: index of the worker, which `DataLoader` passes. It is not used.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent must react to Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a Python handler of the parent could deadlock
    parent = multiprocessing.parent_process()
    assert parent is not None
    assert parent.pid is not None
    end_with_parent(parent.pid)


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
        except BaseException:  # for example Ctrl-C in a notebook
            # Do not wait for running tasks. Also end workers that are still starting and not in the pool's list.
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.terminate()
            raise


def _start_worker(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    global _work
    _work = function, items
    follow_parent()


def _apply(index: int) -> Any:
    function, items = _work
    return function(items[index])
