"""`build_once`: a cached folder, built once and atomically, also by concurrent processes."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from nmt.utils.environment import signal_at_parents_death
from nmt.utils.errors import InputError, RunError
from nmt.utils.files import NO_ROOM, write_json

log = logging.getLogger(__name__)
COMPLETE = "complete.json"  # written last: the folder's name, and the size of each of its files
_building: list[Path] = []  # folders that this process is filling


def build_once(cache: Path, name: str, build: Callable[[Path], None]) -> Path:
    """The folder `cache/name`, filled by `build` if it does not exist yet.

    `build` fills a temporary folder, which is renamed when it is complete. Of several processes one
    builds and the others wait. A folder that lacks a file, has one of another size, or was copied
    from another name is built again.

    Args:
        cache: folder of prepared text.
        name: contains a fingerprint of everything that the content depends on, the text included.
        build: writes the files into the folder it is given.

    Raises:
        InputError: if the cache cannot be written.
        RunError: if the disk is full.
    """
    folder = cache / name
    if _is_complete(folder):
        return folder
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f".{name}.lock"):
            if not _is_complete(folder):
                _build(folder, build)
    except OSError as error:
        if error.errno in NO_ROOM or str(error).startswith("Not enough disk space"):  # datasets
            raise RunError(f"data.cache={cache}: no space left for prepared text") from error
        if error.filename and not Path(error.filename).absolute().is_relative_to(cache.absolute()):
            raise InputError(f"{error.filename}: {error.strerror}") from error
        reason = error.strerror or error
        raise InputError(f"data.cache={cache}: cannot be written ({reason})") from error
    return folder


def _build(folder: Path, build: Callable[[Path], None]) -> None:
    if folder.exists():
        log.warning("%s is damaged; it is built again", folder)
        shutil.rmtree(folder)
    for abandoned in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    _building.append(unfinished)
    try:
        build(unfinished)
        write_json(unfinished / COMPLETE, {"name": folder.name, "files": _sizes(unfinished)})
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    finally:
        _building.remove(unfinished)
        shutil.rmtree(unfinished, ignore_errors=True)


def _is_complete(folder: Path) -> bool:
    try:
        listing = json.loads((folder / COMPLETE).read_text("utf-8"))
        return bool(listing == {"name": folder.name, "files": _sizes(folder)})
    except (OSError, ValueError):
        return False


def _sizes(folder: Path) -> dict[str, int]:
    files = sorted(path for path in folder.iterdir() if path.name != COMPLETE)
    return {path.name: path.stat().st_size for path in files}


def _end_with_parent() -> None:
    # A worker of a killed process would wait for work forever, and keep its memory and the lock.
    if _building:
        signal_at_parents_death(signal.SIGKILL)


os.register_at_fork(after_in_child=_end_with_parent)
