"""Reads and checks lines of text files and streams, plain or compressed.

Only a line feed ends a line, and a carriage return before it is dropped. `str.splitlines` would also split
at characters such as U+2028 and U+0085. Parallel files could then get different numbers of lines.
"""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from nmt.utils.environment import need
from nmt.utils.errors import InputError

BOM = "\ufeff"
READ_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 26  # a longer line is not text; a small compressed file may unpack to it
ENDINGS = (".gz", ".bz2", ".xz", ".zst")


def _open_zstandard(path: Path, mode: str) -> io.BufferedReader:
    zstandard: Any = need("zstandard", "train", str(path))
    frames = zstandard.ZstdDecompressor().stream_reader(
        path.open(mode), read_across_frames=True, closefd=True
    )
    return io.BufferedReader(frames, READ_BYTES)


UTF_16 = (b"\xff\xfe", b"\xfe\xff")
ARCHIVES = {b"PK\3\4": "a zip archive", b"7z\xbc\xaf": "a 7z archive", b"Rar!": "a rar archive"}
FORMATS: dict[bytes, Callable[..., Any]] = {  # keys: first bytes of a file
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
    b"\x28\xb5\x2f\xfd": _open_zstandard,
}


def check_file(path: str | Path, key: str) -> Path:
    """Returns the path of a file; if it is missing, raises an InputError that names `key`."""
    file = Path(path).expanduser()
    if file.is_dir():
        raise InputError(f"{key}: a folder, not a file: {file.absolute()}")
    if not file.is_file():
        is_movable = key.startswith("data.") and not file.is_absolute()
        hint = "; a relative name starts in the current folder, or in data.root=FOLDER"
        raise InputError(f"{key}: no such file: {file.absolute()}{hint if is_movable else ''}")
    return file


def read_lines(path: Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, without their line ends.

    Compressed files (gzip, bzip2, xz, Zstandard) are recognised by their first bytes, not by their name.

    Raises:
        InputError: if the file is an archive, or if a line is damaged, too long, not UTF-8, or contains a NUL
            byte. The message names the file and, except for an archive, the line.
    """
    number = 0
    try:
        with path.open("rb") as file:
            head = file.read(8)
        if archive := ARCHIVES.get(head[:4]):
            raise InputError(f"{path}: {archive}; unpack it, or compress the text with gzip")
        if head.startswith(UTF_16):
            raise InputError(f"{path}: UTF-16; convert it: iconv -f UTF-16 -t UTF-8")
        opener = next((FORMATS[magic] for magic in FORMATS if head.startswith(magic)), Path.open)
        with opener(path, "rb") as stream:
            read = partial(stream.readline, MAX_LINE_BYTES + 1)
            for number, raw in enumerate(iter(read, b""), 1):
                if len(raw) > MAX_LINE_BYTES:
                    raise InputError(f"{path}:{number}: longer than {MAX_LINE_BYTES >> 20} MiB")
                if number == 1 and b"\r" in raw.rstrip() and b"\n" not in raw:
                    raise InputError(f"{path}: lines end in CR; convert it: tr '\\r' '\\n'")
                yield decode_line(raw, str(path), number)
    except InputError:
        raise
    except Exception as error:  # each compression library raises its own exceptions
        raise InputError(f"{path}:{number + 1}: cannot be read further ({error})") from error


def decode_line(raw: bytes, name: str, number: int) -> str:
    """Decodes a line, and removes the line end and, in line 1, the byte order mark.

    Raises:
        InputError: if the line is not UTF-8 or contains a NUL byte. The message contains `name`.
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
    """Yields lists of up to `most` lines of a stream, as soon as these lines are read.

    If a line is faulty, yields the lines before it and then raises the error.

    Raises:
        InputError: if `decode_line` raises it.
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
    """Yields line 1 of all files as a tuple, then line 2 of all files, and so on.

    Raises:
        InputError: if the files have different numbers of lines. The message contains these numbers.
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
