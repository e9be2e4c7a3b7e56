"""Lines of a stream, gathered while they come fast and handed on at once when they do not."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import BinaryIO

PATIENCE = 0.05  # seconds to wait for a further line before those at hand are handed on


def batches_of_lines(stream: BinaryIO, most: int) -> Iterator[list[str]]:
    """Lists of at most `most` lines; together they are all lines of the stream, in order.

    Only `\\n` ends a line (a `\\r` before it is dropped). Bytes that are not UTF-8 become U+FFFD.
    """
    lines: queue.Queue[bytes | None] = queue.Queue(maxsize=4 * most)

    def read() -> None:
        for line in iter(stream.readline, b""):
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    ended = False
    while not ended:
        gathered: list[str] = []
        while len(gathered) < most:
            try:
                line = lines.get(timeout=PATIENCE if gathered else None)
            except queue.Empty:
                break
            if line is None:
                ended = True
                break
            gathered.append(line.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r"))
        if gathered:
            yield gathered
