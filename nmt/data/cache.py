"""Caches prepared text on disk: writes it atomically, and reads it memory-mapped."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from filelock import FileLock

from nmt.utils.errors import InputError, RunError, first_line
from nmt.utils.files import sync_folder, write_json
from nmt.utils.progress import Stage

log = logging.getLogger(__name__)

Facts = dict[str, Any]

FACTS, ROWS = "facts.json", "rows.arrow"
CHECKSUM = "checksum"  # optional key in facts.json


class Stored(NamedTuple):
    """Memory-mapped rows of the cache, and a dictionary of facts about the rows."""

    rows: pa.Table
    facts: Facts


@contextmanager
def filling(cache: Path, name: str) -> Iterator[Path | None]:
    """Yields a temporary folder for `write_rows` and `write_facts`; None if `cache/name` exists.

    At the end of the block, the folder is renamed to `cache/name`. If several processes need the same
    folder, one process writes it and the others wait.

    Args:
        cache: folder of prepared text.
        name: folder name, with a fingerprint of everything that the content depends on.

    Raises:
        RunError: if the cache cannot be written, or the disk is full.
    """
    cache = cache.expanduser()
    folder, unfinished = cache / name, cache / f".{name}"
    try:
        if folder.is_dir():
            yield None
            return
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f".{name}.lock", mode=0o666):
            if folder.is_dir():  # another process has just written it
                yield None
                return
            shutil.rmtree(unfinished, ignore_errors=True)  # left by a killed process
            unfinished.mkdir()
            try:
                yield unfinished
                with (unfinished / ROWS).open("rb") as rows:
                    os.fsync(rows.fileno())
                unfinished.rename(folder)
                sync_folder(cache)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as error:
        if error.errno is None:  # an error of the network, while a text is read
            raise
        raise RunError(f"data.cache={cache}: {error}") from error


def read_stored(cache: Path, name: str) -> Stored:
    """Opens the folder `cache/name`.

    Raises:
        InputError: if the folder is damaged; the message says to delete it.
    """
    folder = cache.expanduser() / name
    try:
        facts = json.loads((folder / FACTS).read_text("utf-8"))
        if facts.pop(CHECKSUM, None) not in (None, _checksum(folder, facts)):
            raise ValueError("its files do not match their checksum")
        return Stored(open_rows(folder), facts)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"data.cache={cache.expanduser()}: damaged ({first_line(error)}); delete {folder} "
            "to rebuild it"
        ) from error


def write_facts(folder: Path, facts: Facts) -> None:
    """Writes facts about the rows of a folder; call `write_rows` first."""
    write_json(folder / FACTS, {**facts, CHECKSUM: _checksum(folder, facts)})


def _checksum(folder: Path, facts: Facts) -> str:
    """Returns a digest of the facts and of the size (not the content) of the rows file."""
    content = json.dumps([(folder / ROWS).stat().st_size, facts], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def write_rows(
    folder: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], title: str
) -> pa.Table:
    """Writes batches of rows to a folder, showing a progress bar, and returns a memory-mapped table."""
    with (
        Stage(title, unit="pair") as stage,
        pa.OSFile(str(folder / ROWS), "wb") as file,
        pa.ipc.new_stream(file, schema) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
            stage.advance(len(batch))
    return open_rows(folder)


def open_rows(folder: Path) -> pa.Table:
    """Opens the rows that `write_rows` has written to a folder."""
    return pa.ipc.open_stream(pa.memory_map(str(folder / ROWS))).read_all()
