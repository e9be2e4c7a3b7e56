"""Lines of a stream handed on as they come."""

from __future__ import annotations

import gzip
import io
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.lines import batches_of_lines
from nmt.utils.errors import InputError


@settings(max_examples=50, deadline=None)
@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"))),
    most=st.integers(1, 5),
    ended=st.booleans(),
)
def test_all_lines_come_in_order(lines, most, ended):
    ended = ended or not lines or not lines[-1]  # else the last line has no line feed
    content = "\n".join([*lines, *[""] * ended]).encode() if lines else b""
    batches = list(batches_of_lines(io.BytesIO(content), most))
    assert all(1 <= len(batch) <= most for batch in batches)
    assert [line for batch in batches for line in batch] == lines


def test_ends_of_lines_and_the_byte_order_mark_are_dropped():
    content = "\ufeffa cat\r\n\ufeffb".encode()
    found = [line for batch in batches_of_lines(io.BytesIO(content), 5) for line in batch]
    assert found == ["a cat", "\ufeffb"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"a cat\n", mtime=0), "compressed with gzip"),
        ("a\nun \xe9t\xe9\n".encode("latin-1"), "standard input:2: not UTF-8"),
    ],
)
def test_a_stream_that_is_not_utf8_is_refused(content, message):
    with pytest.raises(InputError, match=message):
        list(batches_of_lines(io.BytesIO(content), 5))


def test_lines_before_one_that_is_not_utf8_are_handed_on():
    batches = batches_of_lines(io.BytesIO(b"a\nb\nc\nd\xff\ne\n"), 2)
    assert next(batches) == ["a", "b"]
    with pytest.raises(InputError, match="standard input:4"):
        next(batches)


@pytest.mark.timeout(60)
def test_a_line_does_not_wait_for_the_next():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as typed:
        batches = batches_of_lines(stream, 100)
        for line in (b"one\n", b"two\nthree\n", "\u2028\x85é\r\n".encode()):
            typed.write(line)
            assert "\n".join(next(batches)) == line.decode().removesuffix("\n").removesuffix("\r")
        typed.close()
        assert next(batches, None) is None
