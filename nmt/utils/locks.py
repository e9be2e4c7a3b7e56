"""The lock of a folder that one process writes into."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.utils.errors import InputError

FILE = ".lock"


class FolderInUse(InputError):
    """Another process works in a folder."""


@contextlib.contextmanager
def locked(folder: Path, key: str) -> Iterator[None]:
    """Holds the lock of a folder, which is made if needed. The system drops it with the process.

    Args:
        folder: its path.
        key: configuration key that names it, for the message.

    Raises:
        FolderInUse: another process holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / FILE, timeout=0):
            yield
    except Timeout:
        raise FolderInUse(
            f"{key}={folder}: another command works in this folder; wait until it ends, or name "
            "another folder"
        ) from None
