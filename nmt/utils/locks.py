"""One process at a time works in a folder: a lock that ends with its process, however that ends."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from nmt.utils.errors import InputError

log = logging.getLogger(__name__)

FILE = ".lock"
ATTEMPTS = 1000  # of which each may fail since another process has just removed the folder
HELD = (errno.EACCES, errno.EAGAIN)


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
    def take(cls, folder: Path) -> FolderLock:
        """Locks a folder, which is made where it does not exist.

        Where the file system has no locks a warning is logged, and nothing is locked.

        Raises:
            InputError: where another process holds it, naming host and process id, and where no
                folder can be made.
        """
        path, tried = folder / FILE, 0
        while True:
            tried += 1
            try:
                folder.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except (FileNotFoundError, FileExistsError) as error:
                if folder.exists() and not folder.is_dir():
                    raise
                if tried == ATTEMPTS:  # such as in /proc
                    raise InputError(f"{folder}: cannot be made ({error.strerror})") from error
                continue  # another process has just removed the folder
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in HELD:
                    log.warning(
                        "%s: cannot be locked (%s): see to it that no other process works there",
                        folder, error.strerror,
                    )  # fmt: skip
                    return cls(path, descriptor)
                holder = os.read(descriptor, 1000).decode("utf-8", "replace").strip()
                os.close(descriptor)
                raise InputError(
                    f"{folder}: {holder or 'another process'} works there; "
                    "wait until it has ended, or take another hydra.run.dir"
                ) from None
            if _is_at(path, descriptor):
                break
            os.close(descriptor)  # of a file that its holder has just removed
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        return cls(path, descriptor)

    def release(self) -> None:
        """Unlocks the folder; the file goes first, while nobody else can have locked it."""
        if _is_at(self.path, self.descriptor):
            self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file still is the one of this name."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
