"""Signals that arrive before anything can act on them: they are noted, not obeyed.

A batch system may ask a job to end while Python still imports libraries. Nothing that takes time may
be imported here.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType, TracebackType

NOTED = (signal.SIGTERM, signal.SIGUSR1)

_noted: list[int] = []
_process = 0


def note_signals() -> None:
    """Notes SIGTERM and SIGUSR1 from here on, those that the process was started with blocked too
    (`env --block-signal`), unless they are ignored (`nohup`)."""
    global _process
    _process = os.getpid()
    for number in NOTED:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _note)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NOTED)


def say_interrupts() -> None:
    """Has Ctrl-C end the process with a line in place of a traceback, wherever it comes."""

    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            print("nmt: stopped by Ctrl-C", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = say


def _end_at_sigterm() -> None:
    """Gives SIGTERM its usual effect in a process that was forked from one that handles it here.

    A handler of Python's would not do: one that is told while the process goes to sleep on a lock is
    called only when it wakes, and whoever ends a pool of workers waits for that.
    """
    module = getattr(signal.getsignal(signal.SIGTERM), "__module__", None)
    if module is not None and module.startswith("nmt."):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_end_at_sigterm)


def noted_signal() -> int:
    """The signal that was noted last, which is forgotten; 0 where there is none."""
    number = _noted[-1] if _noted else 0
    _noted.clear()
    return number


def obey_signals() -> None:
    """Ends the noting: what was noted, and what comes, has its usual effect."""
    for number in NOTED:
        if signal.getsignal(number) is _note:
            signal.signal(number, signal.SIG_DFL)
    noted = noted_signal()
    if noted:
        signal.raise_signal(noted)


def _note(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _process:  # a process forked from the one that notes
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    _noted.append(number)
