"""Handlers of stopping signals, and child processes that end with their parent."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)


@contextlib.contextmanager
def on_stopping_signals(handle: Callable[[int], object]) -> Iterator[None]:
    """Inside, signals that stop a process call `handle` with their number.

    Those that are ignored stay so (nohup); outside the main thread nothing changes.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {
            number: signal.signal(number, lambda number, frame: handle(number))
            for number in STOPPING
            if signal.getsignal(number) is not signal.SIG_IGN
        }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def signal_at_parents_death(number: int) -> None:
    """Has this process get a signal when its parent ends; on Linux, elsewhere nothing happens."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, number)
