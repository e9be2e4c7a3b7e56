"""Reads and checks lines of text files and streams, plain or compressed.

Only a line feed ends a line; a carriage return before the line feed is dropped. If characters such as
U+2028 or U+0085 also ended a line, as in `str.splitlines`, parallel files could get unequal lengths.
"""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from nmt.utils.environment import need
from nmt.utils.errors import InputError

BOM = "\ufeff"
READ_BYTES = 1 << 20
ENDINGS = (".gz", ".bz2", ".xz", ".zst")


def _open_zstandard(path: Path, mode: str) -> io.BufferedReader:
    zstandard: Any = need("zstandard", "train", str(path))
    frames = zstandard.ZstdDecompressor().stream_reader(
        path.open(mode), read_across_frames=True, closefd=True
    )
    return io.BufferedReader(frames, READ_BYTES)


ARCHIVES = {b"PK\3\4": "a zip archive", b"7z\xbc\xaf": "a 7z archive", b"Rar!": "a rar archive"}
FORMATS: dict[bytes, Callable[..., Any]] = {  # by the first bytes of a file
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
    b"\x28\xb5\x2f\xfd": _open_zstandard,
}


def check_file(path: str | Path, key: str) -> Path:
    """Returns the path of a file; raises InputError, naming `key`, if it is missing."""
    file = Path(path).expanduser()
    if not file.is_file():
        is_movable = key.startswith("data.") and not file.is_absolute()
        hint = "; a relative name starts in the current folder, or in data.root=FOLDER"
        raise InputError(f"{key}: no such file: {file.absolute()}{hint if is_movable else ''}")
    return file


def read_lines(path: Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, without their line ends.

    The first bytes, not the name, tell whether a file is compressed (gzip, bzip2, xz, Zstandard).

    Raises:
        InputError: if the text is not UTF-8, holds a NUL byte or is damaged (names file and line), or
            if the file is an archive of files (names the file).
    """
    number = 0
    try:
        with path.open("rb") as file:
            head = file.read(8)
        if archive := ARCHIVES.get(head[:4]):
            raise InputError(f"{path}: {archive}; unpack it, or compress the text with gzip")
        opener = next((FORMATS[magic] for magic in FORMATS if head.startswith(magic)), Path.open)
        with opener(path, "rb") as stream:
            for number, raw in enumerate(stream, 1):
                yield decode_line(raw, str(path), number)
    except InputError:
        raise
    except Exception as error:  # every compression library has its own errors
        raise InputError(f"{path}:{number + 1}: cannot be read further ({error})") from error


def decode_line(raw: bytes, name: str, number: int) -> str:
    """Decodes line `number`, from 1; drops the line end and, in line 1, a byte order mark.

    Raises:
        InputError: if the line is not UTF-8 or holds a NUL byte; names the file or stream.
    """
    if b"\0" in raw:
        raise InputError(f"{name}:{number}: NUL byte at column {raw.index(0) + 1}; remove it")
    try:
        line = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        column = error.start + 1
        raise InputError(
            f"{name}:{number}: not UTF-8 (byte {byte:#04x} at column {column});"
            " convert the text to UTF-8"
        ) from error
    return line.removeprefix(BOM) if number == 1 else line


def batches_of_lines(stream: BinaryIO, most: int) -> Iterator[list[str]]:
    """Yields lists of at most `most` lines of a stream, each list as soon as its lines are read.

    The lines before a faulty line are yielded before the error is raised.

    Raises:
        InputError: if `decode_line` refuses a line.
    """
    pending, number = b"", 0
    while chunk := stream.read1(READ_BYTES):  # type: ignore[attr-defined]
        *complete, pending = (pending + chunk).split(b"\n")
        for start in range(0, len(complete), most):
            lines: list[str] = []
            try:
                for n, raw in enumerate(complete[start : start + most], number + start + 1):
                    lines.append(decode_line(raw, "standard input", n))
            finally:
                yield lines
        number += len(complete)
    if pending:
        yield [decode_line(pending, "standard input", number + 1)]


def read_parallel(paths: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """Yields a tuple with line i of all files, for every i.

    Raises:
        InputError: if the files have unequal numbers of lines; names these numbers.
    """
    readers = [read_lines(path) for path in paths]
    for number, row in enumerate(itertools.zip_longest(*readers)):
        if None in row:
            counts = [
                number + (line is not None) + sum(1 for _ in reader)
                for line, reader in zip(row, readers, strict=True)
            ]
            listed = ", ".join(f"{path} has {n}" for path, n in zip(paths, counts, strict=True))
            raise InputError(f"unequal numbers of lines: {listed} lines")
        yield row
