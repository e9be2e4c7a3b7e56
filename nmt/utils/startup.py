"""Handling of signals that arrive while libraries are still being imported.

A batch system may ask a job to end that early. This module must not import anything that takes
time.
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
    """Replaces the traceback of Ctrl-C by one line."""

    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            print("nmt: stopped by Ctrl-C", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = say


def _end_at_sigterm() -> None:
    """Restores the default action of SIGTERM in a process forked from one that handles it.

    A handler in Python is not called while the process sleeps on a lock, and a pool that terminates
    its workers would wait for it.
    """
    module = getattr(signal.getsignal(signal.SIGTERM), "__module__", None)
    if module is not None and module.startswith("nmt."):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_end_at_sigterm)


def noted_signal() -> int:
    """The signal noted last, or 0; the notes are cleared."""
    number = _noted[-1] if _noted else 0
    _noted.clear()
    return number


def obey_signals() -> None:
    """Restores the default actions, and raises the signal that was noted, if any."""
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
