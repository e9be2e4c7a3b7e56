"""Reads lines of a stream in batches, without waiting for a batch to fill when input is slow."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import BinaryIO

from nmt.utils.errors import InputError

PATIENCE = 0.05  # seconds to wait for a further line before those at hand are handed on


def batches_of_lines(stream: BinaryIO, most: int) -> Iterator[list[str]]:
    """Lists of at most `most` lines; together they are all lines of the stream, in order.

    Only `\\n` ends a line (a `\\r` before it is dropped). Bytes that are not UTF-8 become U+FFFD.

    Raises:
        InputError: where the stream cannot be read; the lines before that are handed on first.
    """
    lines: queue.Queue[bytes | Exception | None] = queue.Queue(maxsize=4 * most)

    def read() -> None:
        try:
            for line in iter(stream.readline, b""):
                lines.put(line)
        except Exception as error:  # whoever waits for lines must hear of it
            lines.put(error)
        else:
            lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    ended, failure = False, None
    mark = "\ufeff"  # of the byte order, before the first line
    while not ended:
        gathered: list[str] = []
        while len(gathered) < most:
            try:
                line = lines.get(timeout=PATIENCE if gathered else None)
            except queue.Empty:
                break
            if line is None or isinstance(line, Exception):
                ended, failure = True, line
                break
            text = line.decode("utf-8", "replace").removeprefix(mark)
            mark = ""
            gathered.append(text.removesuffix("\n").removesuffix("\r"))
        if gathered:
            yield gathered
    if failure is not None:
        reason = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
        raise InputError(f"standard input: cannot be read ({reason})") from failure
