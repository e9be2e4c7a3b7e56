"""Lines of text files, plain or compressed, checked as they are read.

Only a line feed ends a line (a carriage return before it is dropped): characters such as U+2028 or
U+0085, at which `str.splitlines` also cuts, would put two files out of step.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import zstandard

from nmt.utils.errors import InputError

BOM = "\ufeff"


class _Frames(io.RawIOBase):
    """The decompressed bytes of a file of one or more compressed frames.

    The libraries' own readers report no error for a file that is cut short (Zstandard) or whose
    second frame is damaged (xz); this one does.
    """

    def __init__(self, path: Path, frame: Callable[[], Any]) -> None:
        """`frame` makes a decompressor of one frame, with `decompress`, `eof` and `unused_data`."""
        self._file = path.open("rb")
        self._make = frame
        self._frame = frame()
        self._begun = False
        self._rest = b""  # compressed bytes after the end of a frame
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._rest or self._file.read(1 << 15)
            if not data:
                if self._begun and not self._frame.eof:
                    raise EOFError("the file ends in the middle of a compressed frame")
                return 0
            if self._frame.eof:
                data, self._rest = data.lstrip(b"\0"), b""  # frames of xz may be padded
                if not data:
                    continue
                self._frame = self._make()
            self._begun = True
            self._ready = self._frame.decompress(data)
            self._rest = self._frame.unused_data
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def _open_frames(path: Path, frame: Callable[[], Any]) -> io.BufferedReader:
    return io.BufferedReader(_Frames(path, frame), 1 << 20)


OPENERS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".xz": lambda path: _open_frames(path, lzma.LZMADecompressor),
    ".zst": lambda path: _open_frames(path, lambda: zstandard.ZstdDecompressor().decompressobj()),
}
DAMAGED = (EOFError, OSError, lzma.LZMAError, zlib.error, zstandard.ZstdError)


def check_file(path: str | Path, key: str) -> Path:
    """The path of a file that exists and can be read.

    Raises:
        InputError: naming `key` and what is wrong with the path.
    """
    try:
        file = Path(path).expanduser()
        if not file.exists():
            raise InputError(f"{key}={path}: no such file")
        if not file.is_file():
            raise InputError(f"{key}={path}: not a file")
        file.open("rb").close()
    except (OSError, RuntimeError) as error:  # the second: a ~ of nobody
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{key}={path}: cannot be read ({reason})") from error
    return file


class Stamp(NamedTuple):
    """Inode, size and time of a file: they change when it is written to or replaced."""

    inode: int
    size: int
    modified: int  # nanoseconds

    @classmethod
    def of(cls, path: Path) -> Stamp:
        status = path.stat()
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


def check_unchanged(path: Path, stamp: Stamp) -> None:
    """Raises InputError where a file is no longer what it was when `stamp` was taken."""
    try:
        unchanged = Stamp.of(path) == stamp
    except OSError:
        unchanged = False
    if not unchanged:
        raise InputError(f"{path}: changed while it was read; start again when it is complete")


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a UTF-8 file (plain, .gz, .xz, .zst) without their ends, one at a time.

    Raises:
        InputError: naming file and line where the text is not UTF-8, holds a NUL byte, or the file is
            damaged.
    """
    number = 0
    try:
        with OPENERS.get(path.suffix, lambda path: path.open("rb"))(path) as stream:
            for number, raw in enumerate(stream, 1):
                if b"\0" in raw:
                    raise InputError(
                        f"{path}:{number}: NUL byte at column {raw.index(0) + 1}; a UTF-16 file must"
                        " be converted to UTF-8, a stray NUL removed"
                    )
                line = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
                yield line.removeprefix(BOM) if number == 1 else line
    except UnicodeDecodeError as error:
        byte, column = error.object[error.start], error.start + 1
        raise InputError(
            f"{path}:{number}: not UTF-8 (byte {byte:#04x} at column {column});"
            " convert the file to UTF-8"
        ) from error
    except DAMAGED as error:
        raise InputError(f"{path}:{number + 1}: cannot be read further ({error})") from error


def read_parallel(paths: Sequence[Path], limit: int | None = None) -> Iterator[tuple[str, ...]]:
    """Line i of every file, for every i.

    Args:
        paths: files of equally many lines.
        limit: stop after this many lines; what follows is not read.

    Raises:
        InputError: with the number of lines of both where one file ends before the first one, or the
            first before another.
    """
    readers = [read_lines(path) for path in paths]
    number = 0
    while limit is None or number < limit:
        row = [next(reader, None) for reader in readers]
        if None in row:
            if any(line is not None for line in row):
                counts = [
                    number + (0 if line is None else 1 + sum(1 for _ in reader))
                    for line, reader in zip(row, readers, strict=True)
                ]
                listed = ", ".join(
                    f"{path} has {count}" for path, count in zip(paths, counts, strict=True)
                )
                raise InputError(f"unequal numbers of lines: {listed} lines")
            return
        yield tuple(cast(list[str], row))
        number += 1
