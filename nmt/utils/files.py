"""Files that are replaced whole: written beside the old one, then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what a full disk says


def write_atomically(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes `path` through `write(stream)`; readers see the old content or the new, never a part.

    The folder is made if needed. Only one process may write a file at a time: commands lock their
    folder. What a killed process leaves (`.NAME.partial`) is overwritten by the next write.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w+b") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except Exception:
        partial.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def write_text(path: Path, text: str) -> None:
    """Writes a text atomically, as UTF-8; a lone surrogate, which cannot be UTF-8, becomes `?`."""
    write_atomically(path, lambda stream: stream.write(text.encode("utf-8", "replace")))


def write_json(path: Path, content: Any) -> None:
    """Writes plain data atomically, indented.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
    write_text(path, f"{text}\n")


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
