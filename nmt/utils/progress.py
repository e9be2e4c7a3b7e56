"""Progress of a stage of work: a bar on a terminal, lines of the log elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm

from nmt.utils.environment import rank
from nmt.utils.text import counted

log = logging.getLogger(__name__)

INTERVAL_S = 10.0  # between two lines of the log


class Stage:
    """A stage of a command, shown on rank 0 as a bar of tqdm or as lines of the log.

    Args:
        title: what is done, such as `translating test`.
        total: the amount of work; None if it is not known.
        unit: what is counted, in the singular.
        shown: whether to show the stage at all.
    """

    def __init__(
        self, title: str, total: int | None = None, unit: str = "", *, shown: bool = True
    ) -> None:
        self.title, self.total, self.unit = title, total, unit
        self.done = 0
        self._shown = shown and rank() == 0
        self._bar: Any = None
        self._logged = time.monotonic()

    def __enter__(self) -> Stage:
        if self._shown and self.total is not None and has_terminal():
            unit = f" {self.unit}s"
            self._bar = tqdm(total=self.total, desc=self.title, unit=unit, dynamic_ncols=True)
        elif self._shown:
            amount = "" if self.total is None else f": {counted(self.total, self.unit)}"
            log.info("%s%s", self.title, amount)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, amount: int = 1) -> None:
        """Counts work that is done, at most `total`: the work of other ranks is an estimate."""
        before = self.done
        self.done += amount
        if self.total is not None:
            self.done = min(self.done, self.total)
        if self._bar is not None:
            self._bar.update(self.done - before)
        elif self._shown and time.monotonic() - self._logged > INTERVAL_S:
            self._logged = time.monotonic()
            of = "" if self.total is None else f" of {self.total:,}"
            log.info("%s: %s%s %ss", self.title, f"{self.done:,}", of, self.unit)


@contextlib.contextmanager
def timed(stage: str) -> Iterator[None]:
    """Logs the wall-clock time of the block, unless it raises."""
    start = time.perf_counter()
    yield
    log.info("%s: %.1f s", stage, time.perf_counter() - start)


def has_terminal() -> bool:
    """Whether standard error is a terminal, where bars can be drawn."""
    return sys.stderr is not None and sys.stderr.isatty()
