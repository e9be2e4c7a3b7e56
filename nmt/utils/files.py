"""Writes files atomically, hashes them, locks folders, and checks file names."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from nmt.utils.errors import InputError, causes


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a temporary file with `write(stream)`, then renames it to `path`.

    Other processes see either the old or the new content, never a part of it. The folder is created if
    needed. If the process is killed, the next write overwrites its temporary file `.NAME.partial`. If the
    write fails with an OSError, the error names `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w+b") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except Exception as error:
        partial.unlink(missing_ok=True)
        for cause in causes(error):  # torch converts an OSError to a RuntimeError
            if isinstance(cause, OSError) and cause.errno:
                raise OSError(cause.errno, os.strerror(cause.errno), str(path)) from error
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Makes renames in a folder survive a power failure, if the file system supports this (SMB does not)."""
    folder = os.open(path, os.O_RDONLY)
    with contextlib.suppress(OSError):
        os.fsync(folder)
    os.close(folder)


def write_text(path: Path, text: str) -> None:
    """Writes a text atomically as UTF-8; lone surrogates are replaced by `?`."""
    write_atomically(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def write_json(path: Path, content: Any) -> None:
    """Writes plain data atomically as indented JSON; raises ValueError for NaN and infinity."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
    write_text(path, f"{text}\n")


def matching(pattern: str | Path) -> list[Path]:
    """Returns the path if it exists, otherwise the sorted paths that match it as a glob.

    `~` is expanded to the home folder. Existing folders at the start of the path are not part of the glob,
    since their names may contain brackets.
    """
    path = Path(pattern).expanduser()
    if path.exists():
        return [path]
    root = next(parent for parent in path.parents if parent.is_dir())
    found = glob.iglob(str(path.relative_to(root)), root_dir=root, recursive=True)
    return sorted(root / name for name in found)


@contextlib.contextmanager
def refuse_unreadable(path: Path | str, kind: str) -> Iterator[None]:
    """Converts errors while a file is read to an InputError that names the file.

    `kind` is the expected content, such as `a table of scores`.
    """
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: not {kind}: {error}") from error


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextlib.contextmanager
def locked(folder: Path, key: str) -> Iterator[None]:
    """Locks a folder, so that only one command uses it; creates the folder if needed.

    Raises InputError if another process has locked the folder. `key` is the folder's configuration key.
    """
    # With this mode, other users can lock a shared folder too.
    lock = FileLock(folder / ".lock", timeout=0, mode=0o666)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise InputError(
            f"{key}={folder}: another command works in this folder; wait until it ends, or name "
            "another folder"
        ) from None
    except OSError as error:
        reason = f"{error.strerror}: {error.filename or folder}"
        raise InputError(
            f"{key}={folder}: cannot be locked ({reason}); name another folder"
        ) from error
    try:
        yield
    finally:
        lock.release()


def check_set_name(name: str) -> str:
    """Returns the name of a test set; raises InputError if it cannot be part of a file name."""
    if not re.fullmatch(r"\w[\w.+-]{0,79}", name) or name.endswith(".detok"):
        raise InputError(
            f"data.test.{name!r}: file names contain the name of a test set; use up to 80 letters, "
            "digits, '_', '-', '.' and '+'"
        )
    return name
