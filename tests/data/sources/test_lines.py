"""Reading line-aligned files: what a line is, and what is said of a bad one."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from nmt.data.sources.lines import check_file, read_lines, read_parallel
from nmt.utils.errors import InputError

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
TEXT = "déjà vu\nzwei\u2028Zeilen\x85?\r\n\nalone\rhere\nno end"
LINES = ["déjà vu", "zwei\u2028Zeilen\x85?", "", "alone\rhere", "no end"]


@pytest.mark.parametrize(("suffix", "compress"), [("", bytes), *COMPRESS.items()])
def test_only_line_feeds_end_lines(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"text{suffix}"
    # Two members, as `cat a.gz b.gz` makes them.
    path.write_bytes(compress(TEXT.encode()) + compress(b" of it\n"))
    assert list(read_lines(path)) == [*LINES[:-1], "no end of it"]


def test_byte_order_mark_is_dropped_from_the_first_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes("\ufeffa\n\ufeffb\n".encode())
    assert list(read_lines(path)) == ["a", "\ufeffb"]


def test_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.en"
    path.write_bytes(b"fine\nfine\nd\xe9j\xe0\n")
    with pytest.raises(InputError, match=r"text\.en:3: not UTF-8 \(byte 0xe9 at column 2\)"):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_damaged_file_is_named(tmp_path: Path, suffix: str) -> None:
    compress = COMPRESS[suffix]
    path = tmp_path / f"text{suffix}"
    data = bytearray(compress(bytes(range(32, 127)) * 50 + b"\n"))
    data[4:12] = b"rubbish!"
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"text\{suffix}:1: "):
        list(read_lines(path))


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("frames", [1, 2])
def test_file_cut_short_is_named(tmp_path: Path, suffix: str, frames: int) -> None:
    compress = COMPRESS[suffix]
    lines = [f"line {number * number}" for number in range(3000)]
    data = compress("\n".join(lines).encode())
    path = tmp_path / f"text{suffix}"
    path.write_bytes(data * (frames - 1) + data[: len(data) // 2])
    read: list[str] = []
    with pytest.raises(InputError, match=rf"text\{suffix}:\d+: cannot be read further"):
        read.extend(read_lines(path))
    path.write_bytes(data * frames)
    assert list(read_lines(path))[-1] == lines[-1]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_damaged_second_frame_is_named(tmp_path: Path, suffix: str) -> None:
    compress = COMPRESS[suffix]
    path = tmp_path / f"text{suffix}"
    path.write_bytes(compress(b"a\nb\n") + b"rubbish!" + compress(b"c\n")[8:])
    with pytest.raises(InputError, match=rf"text\{suffix}:\d: cannot be read further"):
        list(read_lines(path))
    padding = b"\0" * 8 if suffix == ".xz" else b""
    path.write_bytes(compress(b"a\nb\n") + padding + compress(b"c\n") + padding)
    assert list(read_lines(path)) == ["a", "b", "c"]


def test_line_with_a_nul_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"fine\nf\0ne\n")
    with pytest.raises(InputError, match=r"text:2: NUL byte at column 2"):
        list(read_lines(path))


def test_parallel_files_stay_in_step(tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("a\nb\nc\n")
    right.write_text("1\n2\n3\n")
    assert list(read_parallel([left, right])) == [("a", "1"), ("b", "2"), ("c", "3")]
    assert list(read_parallel([left, right], limit=2)) == [("a", "1"), ("b", "2")]


def test_unequal_line_counts_are_told(tmp_path: Path) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    left.write_text("a\nb\n")
    right.write_text("1\n2\n3\n4\n5\n")
    with pytest.raises(InputError, match=r"left has 2, .*right has 5 lines"):
        list(read_parallel([left, right]))
    with pytest.raises(InputError, match=r"right has 5, .*left has 2 lines"):
        list(read_parallel([right, left]))


def test_missing_file_and_folder_are_refused_by_key(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data\.train\.source=.*nothing: no such file"):
        check_file(tmp_path / "nothing", "data.train.source")
    with pytest.raises(InputError, match=r"data\.train\.source=.*: not a file"):
        check_file(tmp_path, "data.train.source")
