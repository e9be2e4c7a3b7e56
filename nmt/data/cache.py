"""`build_once`: a cached folder, built once and atomically, also by concurrent processes."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from nmt.data.checksums import damage, write_checksums
from nmt.utils.errors import InputError, RunError
from nmt.utils.files import NO_ROOM
from nmt.utils.processes import signal_at_parents_death

log = logging.getLogger(__name__)
_building: list[Path] = []  # folders that this process is filling


def build_once(
    cache: Path, name: str, build: Callable[[Path], None], *, verify: bool = False
) -> Path:
    """The folder `cache/name`, filled by `build` if it does not exist yet.

    `build` fills a temporary folder, which is renamed when it is complete. Of several processes one
    builds and the others wait; the lock is dropped when that process and its children end.

    A damaged folder (`nmt.data.checksums`) is logged and built again. With `verify` all files are
    read to find damage, however large they are.

    Raises:
        InputError: where the cache cannot be written, or a file of `build` cannot be read.
        RunError: where the disk is full.
    """
    folder = cache / name
    try:
        if folder.is_dir() and damage(folder, whole=verify) is None:
            return folder
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f".{name}.lock"):
            if folder.is_dir():
                found = damage(folder, whole=verify)
                if found is None:
                    return folder
                log.warning("%s is damaged (%s); it is built again", folder, found)
                folder.rename(Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache)) / "damaged")
            for abandoned in cache.glob(f".{name}-*"):
                shutil.rmtree(abandoned, ignore_errors=True)
            unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache))
            _building.append(unfinished)
            try:
                build(unfinished)
                write_checksums(unfinished)
                unfinished.chmod(0o755)
                unfinished.rename(folder)
            finally:
                _building.remove(unfinished)
                shutil.rmtree(unfinished, ignore_errors=True)
    except OSError as error:
        if error.errno in NO_ROOM or str(error).startswith("Not enough disk space"):  # datasets
            raise RunError(f"data.cache={cache}: no space left for prepared text") from error
        if _is_elsewhere(error.filename, cache):  # it was read
            raise InputError(f"{error.filename}: {error.strerror}") from error
        raise InputError(
            f"data.cache={cache}: cannot be written ({error.strerror or error})"
        ) from error
    return folder


def _is_elsewhere(file: str | None, cache: Path) -> bool:
    """Whether an error is about a file that is neither in the cache nor on the way to it."""
    path, folder = Path(file or cache).absolute(), cache.absolute()
    return not (path.is_relative_to(folder) or folder.is_relative_to(path))


def _end_with_parent() -> None:
    """Has a forked helper process end when the process that builds a folder is killed.

    It would otherwise wait for work forever, and keep its memory and the lock.
    """
    if _building:
        signal_at_parents_death(signal.SIGKILL)


os.register_at_fork(after_in_child=_end_with_parent)
