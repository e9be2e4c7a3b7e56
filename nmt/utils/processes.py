"""Processes that end when the one that started them does, however that ends."""

from __future__ import annotations

import ctypes
import sys


def signal_at_parents_death(number: int) -> None:
    """Has this process get a signal when its parent ends; on Linux, elsewhere nothing happens."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, number)
