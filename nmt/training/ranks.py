"""Watches the processes of a distributed run, so that none waits for one that has died.

While torch waits for another rank it does not notice that its process has died: before the process
group exists it waits for half an hour, and runs no handler of a signal meanwhile. A thread watches
instead. It gives the main thread a few seconds to end by itself, as it does when a collective
operation with a dead rank fails, and then ends the process.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from nmt.utils.environment import rank

STARTER = "NMT_RANK_ZERO"  # in the environment of ranks that rank 0 has started: its process
POLL = 0.2  # seconds
GRACE = 5.0  # seconds for the main thread to end by itself
STUCK = 15.0  # seconds until a signal's handler must have been called; SLURM and torchrun leave 30
INTACT = "the earlier checkpoints are intact"


class Watch(threading.Thread):
    """Watches the ranks that this process has started, or the one that has started it.

    Attributes:
        heard: set when the handler of a signal was called.
        over: set when this process does not depend on the others any more.
    """

    def __init__(self) -> None:
        super().__init__(name="ranks", daemon=True)
        self.heard = threading.Event()
        self.over = threading.Event()
        self._children: Sequence[subprocess.Popen[bytes]] = ()
        self._parent = int(os.environ.get(STARTER, "0"))
        self._signals, waking = os.pipe()
        os.set_blocking(waking, False)
        os.set_blocking(self._signals, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        # a process forked from this one, a worker, would tell of its own signals
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))

    def watch(self, started: Sequence[subprocess.Popen[bytes]]) -> None:
        """Adds the processes of the ranks 1, 2, …, which this one has started."""
        self._children = started

    def dead(self) -> str | None:
        """Which rank has died, and how; None where all run on or have done their work."""
        for number, process in enumerate(self._children, 1):
            code = process.poll()
            if code is not None and code < 0:
                return f"rank {number} was killed by {signal.Signals(-code).name}"
            if code:
                return f"rank {number} ended with exit code {code}"
        if self._parent and os.getppid() != self._parent:
            return "rank 0 ended or was killed"
        return None

    def run(self) -> None:
        asked = False
        while not self.over.is_set():
            ready, _, _ = select.select([self._signals], [], [], POLL)
            asked = asked or bool(ready and signal.SIGTERM in os.read(self._signals, 4096))
            said = self.dead()
            if said is not None:
                self._end(f"{said}; {INTACT}", 1, GRACE, self.over)
            elif asked:
                said = "stopped by SIGTERM while it waited for another rank"
                self._end(said, 128 + signal.SIGTERM, STUCK, self.heard)
                asked = False
                self.heard.clear()

    def _end(self, said: str, code: int, seconds: float, unless: threading.Event) -> None:
        """Ends this process, and those it started, unless the main thread does something first."""
        if unless.wait(seconds):
            return
        number = rank()
        print(f"nmt: rank {number}: {said}" if number else f"nmt: {said}", file=sys.stderr)
        self.kill()
        sys.stderr.flush()
        os._exit(code)

    def kill(self) -> None:
        """Kills the ranks that this process has started."""
        for process in self._children:
            process.kill()


_watch: Watch | None = None


def watch_ranks() -> Watch:
    """The thread that watches the other ranks, started when first asked for."""
    global _watch
    if _watch is None:
        _watch = Watch()
        _watch.start()
    return _watch


def who_died() -> str | None:
    """Which rank has died, where that can be seen within two seconds."""
    if _watch is None:
        return None
    end = time.monotonic() + 2
    while (said := _watch.dead()) is None and time.monotonic() < end:
        time.sleep(POLL)
    return said


def heard_sigterm() -> None:
    """The handler of SIGTERM was called: the main thread does not wait for anything."""
    if _watch is not None:
        _watch.heard.set()


def need_no_rank() -> None:
    """Ends the watch: this process has nothing more to do with the others."""
    if _watch is not None:
        _watch.over.set()


def end_other_ranks() -> None:
    """Ends the ranks that this process started, for it ends with an error.

    They would wait for it in their next exchange.
    """
    need_no_rank()
    if _watch is not None:
        _watch.kill()
