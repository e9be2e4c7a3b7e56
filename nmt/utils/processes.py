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

FEWEST_SENTENCES = 2000  # of all items; with fewer a fork costs more than it saves

_work: tuple[Callable[[Any], Any], Sequence[Any]]  # of a worker: the function, the items


def map_in_processes(
    function: Callable[[Item], Result], items: Sequence[Item], sentences: int
) -> Iterator[Result]:
    """Yields the results in the order of the items; only results are copied between processes.

    The workers are forks of this process, one a core, which see all its objects. Elsewhere than on Linux,
    where a fork is not safe, and for one item or core or few sentences, this process does the work.
    `function` must not use threads, such as OpenMP's: those of this process are not in its forks.
    """
    workers = min(shared_cores(), len(items))
    if workers < 2 or sentences < FEWEST_SENTENCES or sys.platform != "linux":
        yield from map(function, items)
        return
    context = multiprocessing.get_context("fork")
    with (
        warnings.catch_warnings(),
        ProcessPoolExecutor(workers, context, _start_worker, (function, items)) as pool,
    ):
        # Python warns of a fork beside threads: `function` takes no lock of theirs
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        try:
            yield from pool.map(_apply, range(len(items)))
        except BaseException:  # such as a signal: what has begun is not waited for
            for worker in pool._processes.values():
                worker.terminate()
            raise


def _start_worker(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    global _work
    _work = function, items
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent says what a signal means
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
