"""Reads the rows of history in a `.wandb` file.

The file is a log in LevelDB's format: blocks of 32 KiB with fragments of records, each with a header
of a checksum (4 bytes), a length (2) and a kind (1). The records are W&B's protocol buffers.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = 32768
IDENTITY = 7  # bytes at the start of the file
HEADER = struct.Struct("<IHB")
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def read_rows(file: Path, begin: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each row of history that is on disk as a whole, and the block in which its record ends.

    Args:
        file: may still be written to; it is read to the end that it has.
        begin: block to begin with; a record that began before it is passed over.
    """
    from wandb.proto import wandb_internal_pb2 as messages

    for block, content in _records(file, begin):
        record = messages.Record.FromString(content)  # type: ignore[attr-defined]
        if record.WhichOneof("record_type") == "history":
            yield (
                block,
                {
                    item.key or ".".join(item.nested_key): json.loads(item.value_json)
                    for item in record.history.item
                },
            )


def _records(file: Path, begin: int) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as stream:
        stream.seek(begin * BLOCK)
        number = begin
        parts: list[bytes] | None = None
        while block := stream.read(BLOCK):
            place = 0 if number else IDENTITY
            while place + HEADER.size <= len(block):
                _, length, kind = HEADER.unpack_from(block, place)
                place += HEADER.size
                fragment = block[place : place + length]
                if len(fragment) < length or kind not in (FULL, FIRST, MIDDLE, LAST):
                    return  # what a killed process has not written to its end
                place += length
                if kind in (FULL, FIRST):
                    parts = []
                if parts is None:
                    continue
                parts.append(fragment)
                if kind in (FULL, LAST):
                    yield number, b"".join(parts)
                    parts = None
            number += 1
