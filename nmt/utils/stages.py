"""How long the stages of a command take, each in a line of the log."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

log = logging.getLogger(__name__)


@contextlib.contextmanager
def timed(stage: str) -> Iterator[None]:
    """Logs the wall-clock time of what is done inside, if it comes to its end."""
    start = time.perf_counter()
    yield
    log.info("%s: %.1f s", stage, time.perf_counter() - start)
