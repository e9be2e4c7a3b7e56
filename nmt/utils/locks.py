"""`FolderLock`: an exclusive lock of a folder, dropped when its process ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nmt.utils.errors import InputError
from nmt.utils.files import NO_ROOM

log = logging.getLogger(__name__)

FILE = ".lock"
ATTEMPTS = 1000  # of which each may fail since another process has just removed the folder
HELD = (errno.EACCES, errno.EAGAIN)


class FolderInUse(InputError):
    """Another process works in a folder."""


@dataclass
class FolderLock:
    """The lock of a folder, held by this process from `take` to `release`.

    It is a record lock (`fcntl`): the system drops it when the process ends, a killed one included,
    and processes that were forked from it, such as those that make batches, do not hold it. On a
    network file system it holds between machines as far as that file system's locks do.
    """

    path: Path
    descriptor: int

    @classmethod
    def take(cls, folder: Path, key: str = "hydra.run.dir") -> FolderLock:
        """Locks a folder, which is made where it does not exist.

        Where the file system has no locks a warning is logged, and nothing is locked.

        Args:
            folder: its path.
            key: by which it is chosen.

        Raises:
            FolderInUse: where another process holds it, naming host and process id.
            InputError: where no folder can be made, or nothing written into it.
            OSError: where the disk is full.
        """
        path, tried = folder / FILE, 0
        while True:
            tried += 1
            try:
                folder.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except (FileNotFoundError, FileExistsError) as error:
                if tried == ATTEMPTS or (folder.exists() and not folder.is_dir()):
                    raise InputError(
                        f"{key}={folder}: cannot be made ({error.strerror})"
                    ) from error
                continue  # another process has just removed the folder
            except OSError as error:
                if error.errno in NO_ROOM:
                    raise
                raise InputError(f"{key}={folder}: cannot be written ({error.strerror})") from error
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in HELD:
                    log.warning(
                        "%s: cannot be locked (%s): make sure that no other process uses it",
                        folder, error.strerror,
                    )  # fmt: skip
                    return cls(path, descriptor)
                holder = os.read(descriptor, 1000).decode("utf-8", "replace").strip()
                os.close(descriptor)
                raise FolderInUse(
                    f"{folder}: {holder or 'another process'} works there; "
                    f"wait until it has ended, or take another {key}"
                ) from None
            if _is_at(path, descriptor):
                break
            os.close(descriptor)  # of a file that its holder has just removed
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        except OSError as error:
            error.filename = str(path)  # a write names no file
            path.unlink(missing_ok=True)
            os.close(descriptor)
            raise
        return cls(path, descriptor)

    def release(self) -> None:
        """Unlocks the folder; the file goes first, while nobody else can have locked it."""
        if _is_at(self.path, self.descriptor):
            self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


@contextlib.contextmanager
def locked(folder: Path, key: str) -> Iterator[None]:
    """A folder that this process works in alone. Raises as `FolderLock.take`."""
    lock = FolderLock.take(folder, key)
    try:
        yield
    finally:
        lock.release()


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file still is the one of this name."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
