"""Atomic writing of files, and files with checksums."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from nmt.utils.errors import InputError

CHECKSUM = ".sha256"
DIGESTS = 1 << 16  # bytes of a file of them that are read: it has two short lines
PARTIAL = ".partial"  # ends the name of a file that is being written
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what a full disk says


def write_atomically(
    path: Path, write: Callable[[BinaryIO], object], *, checksum: bool = False
) -> None:
    """Writes `path` through `write(stream)`; readers see the old content or the new, never a part.

    With `checksum`, `<path>.sha256` (as sha256sum prints it) lists the digest. Between the two
    renames it lists the old and the new one, so that a kill at any moment leaves a valid pair.

    Raises:
        OSError: naming a file, where the disk is full, too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=PARTIAL)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w+b") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        if checksum:
            digest = sha256(temporary)
            _write_digests(path, [digest, *listed_digests(path)])
            os.replace(temporary, path)
            _write_digests(path, [digest])
        else:
            os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        if error.errno is not None:
            error.filename = error.filename or str(path)  # a write names no file
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text atomically, as UTF-8; a lone surrogate, which cannot be UTF-8, becomes `?`."""
    write_atomically(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def write_json(path: Path, content: Any) -> None:
    """Writes plain data atomically, indented.

    Raises:
        ValueError: for a number that is not finite.
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
    write_text(path, f"{text}\n")


def check_writable(key: str, path: Path, inputs: Mapping[str, Iterable[str | Path]] = {}) -> None:
    """Checks that a file can be written later, by creating and removing a temporary one beside it.

    Args:
        inputs: files that the same command reads, by their keys; they need not exist.

    Raises:
        InputError: naming the key and the reason. A device, a pipe or an input file is refused, too,
            since the file that is written would replace it.
        OSError: where the disk is full.
    """
    try:
        for name, files in inputs.items():
            if any(path.samefile(file) for file in files if path.exists() and os.path.exists(file)):
                raise InputError(f"{key}={path}: is the file of {name}; name another")
        if path.is_dir():
            raise InputError(f"{key}={path}: is a folder; name a file")
        if path.exists() and not path.is_file():
            raise InputError(f"{key}={path}: is a device or a pipe, which would be replaced")
        above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
        if not above.is_dir():
            raise InputError(f"{key}={path}: cannot be written, since {above} is not a folder")
        longest = os.pathconf(above, "PC_NAME_MAX")
        if any(len(os.fsencode(part)) > longest for part in path.parts):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        descriptor, name = tempfile.mkstemp(dir=above, prefix=f".{path.name}.", suffix=PARTIAL)
        os.close(descriptor)
        os.unlink(name)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        raise InputError(f"{key}={path}: cannot be written ({error.strerror})") from error


def check_utf8(key: str, path: Path) -> None:
    """Refuses a path that libraries in C++ (Arrow, Thot) cannot open.

    Raises:
        InputError: naming the key.
    """
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{key}={path}: a name that is no UTF-8; take another") from error


def remove_partial(folders: Iterable[Path]) -> None:
    """Removes partial files of killed processes in folders that this process has locked."""
    for folder in folders:
        for path in folder.glob(f".*{PARTIAL}"):
            path.unlink(missing_ok=True)


def rename(old: Path, new: Path) -> None:
    """Renames a file with a checksum over another; a kill at any moment leaves valid pairs."""
    digests = listed_digests(old)
    _write_digests(new, [*digests, *listed_digests(new)])
    os.replace(old, new)
    _write_digests(new, digests)
    _sync_folder(new.parent)


def copy(old: Path, new: Path) -> None:
    """Copies a file with a checksum, atomically."""

    def write(stream: BinaryIO) -> None:
        with old.open("rb") as source:
            shutil.copyfileobj(source, stream, 1 << 22)

    write_atomically(new, write, checksum=True)


def verify(path: Path) -> str:
    """The SHA-256 of a file, which must be the one listed beside it, if one is listed.

    Raises:
        InputError: when it is not: the file is truncated or was changed.
    """
    digest = sha256(path)
    listed = listed_digests(path)
    if listed and digest not in listed:
        raise InputError(f"{path}: damaged: its SHA-256 is not the one in {path.name}{CHECKSUM}")
    return digest


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def listed_digests(path: Path) -> list[str]:
    """The SHA-256 of a file as listed beside it: with that of the earlier file where a kill came between
    writing the two; none without a list."""
    listing = Path(f"{path}{CHECKSUM}")
    if not listing.is_file():
        return []
    with listing.open("rb") as stream:
        lines = stream.read(DIGESTS).decode("utf-8", "replace").splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def _write_digests(path: Path, digests: list[str]) -> None:
    text = "".join(f"{digest}  {path.name}\n" for digest in dict.fromkeys(digests))
    write_text(Path(f"{path}{CHECKSUM}"), text)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
