"""Shows progress as a bar or a count on a terminal or in a notebook, and as a log line elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
import warnings
from collections.abc import Iterator

from nmt.utils.environment import rank
from nmt.utils.text import counted

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # tqdm warns in notebooks without ipywidgets
    from tqdm.auto import tqdm

log = logging.getLogger(__name__)

NOTEBOOK = not sys.modules.keys().isdisjoint({"ipykernel", "marimo"})


class Stage(tqdm):
    """The progress of one stage of a command, shown on rank 0 only.

    Args:
        title: description of the stage, such as `translating test`.
        total: number of units. If None, the number of finished units is shown, unless stdout is a terminal.
        unit: name of the unit in the singular; empty if nothing is counted.
        shown: whether to show the stage.
    """

    def __init__(
        self, title: str, total: int | None = None, unit: str = "", *, shown: bool = True
    ) -> None:
        shown = shown and rank() == 0
        counts = total is not None or (unit and not sys.stdout.isatty())
        terminal = False if NOTEBOOK else None  # with None, tqdm hides the bar outside terminals
        hidden = terminal if shown and counts else True
        super().__init__(
            total=total,
            desc=title,
            unit=f" {unit}s",
            dynamic_ncols=True,
            disable=hidden,
            position=0 if NOTEBOOK else None,  # a nested bar would print escape codes
        )
        if shown and self.disable:
            log.info("%s%s", title, "" if total is None else f": {counted(total, unit)}")

    def advance(self, amount: int = 1) -> None:
        """Adds `amount`, but not beyond `total`, because `amount` may include an estimate for other ranks."""
        self.update(amount if self.total is None else min(amount, self.total - self.n))


@contextlib.contextmanager
def timed(stage: str) -> Iterator[None]:
    """Logs the wall-clock time of the block, unless it raises."""
    start = time.perf_counter()
    yield
    log.info("%s: %.1f s", stage, time.perf_counter() - start)
