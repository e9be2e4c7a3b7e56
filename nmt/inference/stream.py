"""Reads lines of a stream in batches, without waiting for a batch to fill when input is slow."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import BinaryIO

from nmt.data.lines import decode_line
from nmt.utils.errors import InputError

NAME = "standard input"
WAIT_S = 0.05  # for a further line, before those at hand are yielded


def batches_of_lines(stream: BinaryIO, most: int) -> Iterator[list[str]]:
    """Lists of at most `most` lines; together they are all lines of the stream, in order.

    Raises:
        InputError: if the stream cannot be read, or a line is not text as in `decode_line`; the
            lines before it are yielded first.
    """
    lines: queue.Queue[bytes | Exception | None] = queue.Queue(maxsize=4 * most)

    def read() -> None:
        try:
            for line in iter(stream.readline, b""):
                lines.put(line)
        except Exception as error:  # raised by whoever waits for lines
            lines.put(error)
        else:
            lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    line: bytes | Exception | None = b""
    number, failure = 0, None
    while line is not None and failure is None:
        gathered: list[str] = []
        while len(gathered) < most:
            try:
                line = lines.get(timeout=WAIT_S if gathered else None)
                if line is None:
                    break
                if isinstance(line, Exception):
                    reason = getattr(line, "strerror", None) or str(line) or type(line).__name__
                    raise InputError(f"{NAME}: cannot be read ({reason})") from line
                number += 1
                gathered.append(decode_line(line, NAME, number))
            except queue.Empty:
                break
            except InputError as error:
                failure = error
                break
        if gathered:
            yield gathered
    if failure is not None:
        raise failure
