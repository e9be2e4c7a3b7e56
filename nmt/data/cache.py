"""Prepared text on disk: built once and atomically, then read memory-mapped."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
from filelock import FileLock

from nmt.utils.environment import signal_at_parents_death
from nmt.utils.errors import RunError
from nmt.utils.files import write_json
from nmt.utils.startup import shared_cores

log = logging.getLogger(__name__)

COMPLETE = "complete.json"  # written last: the folder's name, the size of each file, and the facts
PARALLEL_FROM = 20_000  # rows below which starting processes costs more than it saves
_building: list[Path] = []  # folders that this process is filling

Facts = dict[str, Any]


def build_once(
    cache: Path, name: str, build: Callable[[Path], Facts]
) -> tuple[datasets.Dataset, Facts]:
    """The rows in the folder `cache/name`, which `build` makes if it does not exist yet.

    `build` fills a temporary folder, which is renamed when it is complete. Of several processes one
    builds and the others wait. A folder that lacks a file, has one of another size, or was copied
    from another name is built again.

    Args:
        cache: folder of prepared text.
        name: contains a fingerprint of everything that the content depends on, the text included.
        build: writes Arrow files into the folder it is given; returns facts about them, plain data.

    Returns:
        The rows of the Arrow files, and the facts.

    Raises:
        RunError: if the cache cannot be written, or the disk is full.
    """
    folder = cache / name
    try:
        if not _is_complete(folder):
            cache.mkdir(parents=True, exist_ok=True)
            with FileLock(cache / f".{name}.lock"):
                if not _is_complete(folder):
                    _build(folder, build)
    except OSError as error:
        raise RunError(f"data.cache={cache}: {error}") from error
    files = sorted(map(str, folder.glob("*.arrow")))
    rows = datasets.concatenate_datasets([datasets.Dataset.from_file(file) for file in files])
    return rows, json.loads((folder / COMPLETE).read_text("utf-8"))["facts"]


def map_rows(
    rows: datasets.Dataset,
    function: Callable[..., dict[str, list[Any]]],
    features: datasets.Features,
    file: Path,
    fingerprint: str,
    **options: Any,
) -> datasets.Dataset:
    """`rows.map` from batches of rows to batches of new rows, in a file and on all cores."""
    return rows.map(
        function,
        batched=True,
        remove_columns=rows.column_names,
        features=features,
        num_proc=processes(len(rows)),
        cache_file_name=str(file),
        new_fingerprint=fingerprint,
        **options,
    )


def processes(rows: int) -> int | None:
    """Number of processes for so many rows: one per core, or None if one process is faster."""
    cores = shared_cores()
    return cores if rows >= PARALLEL_FROM and cores > 1 else None


def _build(folder: Path, build: Callable[[Path], Facts]) -> None:
    if folder.exists():
        log.warning("%s is damaged; it is built again", folder)
        shutil.rmtree(folder)
    for abandoned in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    _building.append(unfinished)
    try:
        facts = build(unfinished)
        content = {"name": folder.name, "files": _sizes(unfinished), "facts": facts}
        write_json(unfinished / COMPLETE, content)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    finally:
        _building.remove(unfinished)
        shutil.rmtree(unfinished, ignore_errors=True)


def _is_complete(folder: Path) -> bool:
    try:
        content = json.loads((folder / COMPLETE).read_text("utf-8"))
        return content["name"] == folder.name and content["files"] == _sizes(folder)
    except (OSError, ValueError, LookupError):
        return False


def _sizes(folder: Path) -> dict[str, int]:
    files = sorted(path for path in folder.iterdir() if path.name != COMPLETE)
    return {path.name: path.stat().st_size for path in files}


def _end_with_parent() -> None:
    # A worker of a killed process would wait for work forever, and keep its memory and the lock.
    if _building:
        signal_at_parents_death(signal.SIGKILL)


os.register_at_fork(after_in_child=_end_with_parent)
