"""Lines handed on as they come."""

from __future__ import annotations

import errno
import gzip
import io
import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.inference.lines import batches_of_lines
from nmt.utils.errors import InputError


@settings(max_examples=50, deadline=None)
@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"))),
    most=st.integers(1, 5),
)
def test_all_lines_come_in_order(lines, most):
    content = "".join(f"{line}\n" for line in lines).encode()
    batches = list(batches_of_lines(io.BytesIO(content), most))
    assert all(1 <= len(batch) <= most for batch in batches)
    assert [line for batch in batches for line in batch] == lines


def test_ends_of_lines_and_the_byte_order_mark_are_dropped():
    content = "\ufeffa cat\r\n\ufeffb".encode()
    assert list(batches_of_lines(io.BytesIO(content), 5)) == [["a cat", "\ufeffb"]]


@pytest.mark.parametrize(
    "content", [gzip.compress(b"a cat\n"), "a\nun \xe9t\xe9\n".encode("latin-1")]
)
def test_a_stream_that_is_not_utf8_is_refused(content):
    with pytest.raises(InputError, match=r"^standard input"):
        list(batches_of_lines(io.BytesIO(content), 5))


@pytest.mark.timeout(60)
def test_a_stream_that_fails_is_refused_after_its_lines():
    lines = iter([b"one\n", b"two\n"])

    class Failing(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            for line in lines:
                return line
            raise OSError(errno.EBADF, "Bad file descriptor")

    batches = batches_of_lines(Failing(), 2)
    assert next(batches) == ["one", "two"]
    with pytest.raises(InputError, match=r"cannot be read \(Bad file descriptor\)"):
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
