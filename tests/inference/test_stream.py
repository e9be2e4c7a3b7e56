"""Lines handed on as they come."""

from __future__ import annotations

import errno
import io
import os
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.inference.stream import batches_of_lines
from nmt.utils.errors import InputError


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=60), most=st.integers(1, 5))
def test_all_lines_in_order_and_no_more(content, most):
    batches = list(batches_of_lines(io.BytesIO(content), most))
    assert all(1 <= len(batch) <= most for batch in batches)
    found = [line for batch in batches for line in batch]
    expected = content.removesuffix(b"\n").split(b"\n") if content else []
    lines = [line.decode("utf-8", "replace").removesuffix("\r") for line in expected]
    assert found == [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else found == []


def test_the_mark_of_the_byte_order_is_no_part_of_the_first_word():
    content = "\ufeffa cat\n\ufeffb\n".encode()
    assert list(batches_of_lines(io.BytesIO(content), 5)) == [["a cat", "\ufeffb"]]


def test_full_batches_where_the_input_is_fast():
    batches = list(batches_of_lines(io.BytesIO(b"a\n" * 25), 10))
    assert [len(batch) for batch in batches] == [10, 10, 5]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EBADF, "Bad file descriptor"), "cannot be read (Bad file descriptor)"),
        (IsADirectoryError(errno.EISDIR, "Is a directory"), "cannot be read (Is a directory)"),
        (MemoryError(), "cannot be read (MemoryError)"),
    ],
)
def test_a_stream_that_cannot_be_read_ends_with_a_refusal(error, said):
    """Once the lines that were read are handed on, and never with waiting for ever."""
    lines = iter([b"one\n", b"two\n"])

    class Failing(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            for line in lines:
                return line
            raise error

    batches = batches_of_lines(Failing(), 2)
    assert next(batches) == ["one", "two"]
    with pytest.raises(InputError, match=re.escape(f"standard input: {said}")):
        next(batches)


@pytest.mark.timeout(60)
def test_a_line_does_not_wait_for_the_next():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream, os.fdopen(writing, "wb", buffering=0) as typed:
        batches = batches_of_lines(stream, 100)
        for line in (b"one\n", b"two\nthree\n", "\u2028\x85é\r\n".encode()):
            typed.write(line)
            started = time.monotonic()
            found: list[str] = []
            while len(found) < line.count(b"\n"):
                found += next(batches)
            assert time.monotonic() - started < 30
            assert "\n".join(found) == line.decode().removesuffix("\n").removesuffix("\r")
        typed.close()
        assert next(batches, None) is None
