"""Ctrl-C while libraries are still being imported. This module imports nothing that takes time."""

from __future__ import annotations

import os
import signal
from types import FrameType


def end_at_interrupt() -> None:
    """Ends the process at Ctrl-C with one line, as long as nothing else handles it.

    A KeyboardInterrupt inside an import is often caught, or turned into another error.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_at_interrupt() -> None:
    """Restores KeyboardInterrupt, for programs that clean up."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"nmt: stopped by Ctrl-C\n")
    os._exit(128 + number)
