"""Lines of files and streams: line ends, compression, and invalid text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.text.lines import batches_of_lines, check_file, decode_line, read_lines, read_parallel
from nmt.utils.errors import InputError

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "Zstandard": zstandard.ZstdCompressor().compress,
}
TEXT = "\ufeffdéjà vu\nzwei\u2028Zeilen\x85?\r\n\nalone\rhere\n\ufeffno end"
LINES = ["déjà vu", "zwei\u2028Zeilen\x85?", "", "alone\rhere", "\ufeffno end of it"]


@pytest.mark.parametrize("format_name", COMPRESS)
def test_only_line_feeds_end_lines(tmp_path: Path, format_name: str) -> None:
    """The format is detected from the first bytes. The file has two members, as after `cat a.gz b.gz`."""
    compress = COMPRESS[format_name]
    path = tmp_path / "text"
    path.write_bytes(compress(TEXT.encode()) + compress(b" of it\n"))
    assert list(read_lines(path)) == LINES


REFUSED = {
    "Latin-1": (b"fine\nfine\nd\xe9j\xe0\n", r":3: not UTF-8 \(byte 0xe9 at column 2\)"),
    "NUL": (b"fine\nf\0ne\n", ":2: NUL byte at column 2"),
    "UTF-16": ("\ufefffine\n".encode("utf-16-le"), ": UTF-16; convert it: iconv -f UTF-16"),
    "CR": (b"a b\rc d\re\r", ": lines end in CR; convert it"),
    "zip": (b"PK\3\4fine\n", ": a zip archive; unpack it"),
    "cut gzip": (gzip.compress(bytes(range(256)) * 99)[:-9], ":.: (cannot be read|NUL|not UTF-8)"),
    "cut xz": (lzma.compress(b"fine\n" * 9)[:-9], r":\d+: cannot be read further"),
    "cut bzip2": (bz2.compress(b"fine\n" * 9)[:-9], r":\d+: cannot be read further"),
    "damaged": (b"\x28\xb5\x2f\xfdrubbish", ":1: cannot be read further"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_content_that_is_not_utf8_by_line(tmp_path: Path, case: str) -> None:
    content, message = REFUSED[case]
    path = tmp_path / "text.en"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"text\.en{message}"):
        list(read_lines(path))


@pytest.mark.parametrize("case", ["Latin-1", "NUL"])
def test_streams_are_refused_like_files(case: str) -> None:
    content, message = REFUSED[case]
    numbered = enumerate(io.BytesIO(content), 1)
    with pytest.raises(InputError, match=rf"input{message}"):
        _ = [decode_line(raw, "input", number) for number, raw in numbered]


def test_parallel_files_must_have_equal_line_counts(tmp_path: Path) -> None:
    left, right, longer = (tmp_path / name for name in ("left", "right", "longer"))
    left.write_text("a\nb\nc\n")
    right.write_text("1\n2\n3\n")
    longer.write_text("1\n2\n3\n4\n5\n")
    assert list(read_parallel([left, right])) == [("a", "1"), ("b", "2"), ("c", "3")]
    assert list(islice(read_parallel([left, longer]), 2)) == [("a", "1"), ("b", "2")]
    with pytest.raises(InputError, match=r"left has 3, .*longer has 5 lines"):
        list(read_parallel([left, longer]))
    with pytest.raises(InputError, match=r"longer has 5, .*left has 3 lines"):
        list(read_parallel([longer, left]))


def test_refuses_missing_files_and_folders_by_key(tmp_path: Path) -> None:
    for path, problem in (
        (tmp_path / "nothing", "no such file"),
        (tmp_path, "a folder, not a file"),
    ):
        with pytest.raises(InputError, match=rf"^score\.source: {problem}: {path}$"):
            check_file(path, "score.source")


@settings(max_examples=50, deadline=None)
@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"))),
    most=st.integers(1, 5),
    ended=st.booleans(),
)
def test_lines_keep_their_order(lines, most, ended):
    ended = ended or not lines or not lines[-1]  # if False, the last line has no line feed
    content = "\n".join([*lines, *[""] * ended]).encode() if lines else b""
    batches = list(batches_of_lines(io.BytesIO(content), most))
    assert all(1 <= len(batch) <= most for batch in batches)
    assert [line for batch in batches for line in batch] == lines


def test_line_ends_and_byte_order_mark_are_dropped():
    content = "\ufeffa cat\r\n\ufeffb".encode()
    found = [line for batch in batches_of_lines(io.BytesIO(content), 5) for line in batch]
    assert found == ["a cat", "\ufeffb"]


def test_lines_before_invalid_utf8_are_returned():
    batches = batches_of_lines(io.BytesIO(b"a\nb\nc\nd\xff\ne\n"), 2)
    assert next(batches) == ["a", "b"]
    assert next(batches) == ["c"]
    with pytest.raises(InputError, match="standard input:4"):
        next(batches)


@pytest.mark.timeout(60)
def test_lines_are_returned_as_they_arrive():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as typed:
        batches = batches_of_lines(stream, 100)
        for line in (b"one\n", b"two\nthree\n", "\u2028\x85é\r\n".encode()):
            typed.write(line)
            assert "\n".join(next(batches)) == line.decode().removesuffix("\n").removesuffix("\r")
        typed.close()
        assert next(batches, None) is None
