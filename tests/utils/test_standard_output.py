"""Standard output that is closed, full, without a reader, or of another encoding: a line, no traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import pytest

from nmt.cli.command import exit_code
from nmt.utils.files import write_text
from nmt.utils.standard_output import print_whole

FULL = "nmt: standard output: cannot be written: No space left on device\n"


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[TextIO | None], None]]:
    """put(stream): from here on the stream is standard output; closing it at the end raises nothing."""
    streams = []

    def instead(stream: TextIO | None) -> None:
        streams.append(stream)
        monkeypatch.setattr(sys, "stdout", stream)

    yield instead
    for stream in streams:
        if stream is not None:
            stream.close()


def without_a_reader() -> TextIO:
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "w")


def of_hydra() -> None:
    """As `--help` ends."""
    print("text")
    sys.exit(0)


WAYS = {
    "the list": lambda: print_whole("text\n"),
    "a command": lambda: exit_code(lambda: print("text"), "train", []),
    "the help of a command": lambda: exit_code(of_hydra, "train", []),
}


@pytest.mark.parametrize("way", WAYS)
def test_full(put, capsys, way):
    put(Path("/dev/full").open("w"))  # noqa: SIM115
    assert WAYS[way]() == 1
    assert capsys.readouterr().err == FULL


@pytest.mark.parametrize("way", WAYS)
def test_nobody_reads_it_any_longer(put, capsys, way):
    put(without_a_reader())
    assert WAYS[way]() == 0
    assert capsys.readouterr().err == ""


def test_closed(put, capsys):
    put(None)
    assert print_whole("text") == 2
    said = "nmt: standard output: closed; give it a file, such as `> file.txt`\n"
    assert capsys.readouterr().err == said


def test_what_is_printed_is_utf8_whatever_the_locale(put, tmp_path):
    put((tmp_path / "out").open("w", encoding="ascii"))
    assert print_whole("Zürich…") == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == "Zürich…"


def test_without_standard_error_nothing_of_it_is_on_standard_output(monkeypatch, capsys):
    def wrong() -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "some file")

    monkeypatch.setattr(sys, "stderr", None)
    assert exit_code(wrong, "train", []) == 1
    assert capsys.readouterr().out == ""


def test_of_a_rename_that_fails_the_name_that_was_to_be_had_is_said(tmp_path, capsys):
    (tmp_path / "metrics.csv").mkdir()
    exit_code(lambda: write_text(tmp_path / "metrics.csv", "text"), "train", [])
    said = f"nmt: {tmp_path}/metrics.csv: cannot be read or written: Is a directory\n"
    assert capsys.readouterr().err == said


def test_a_name_that_is_too_long_is_refused(tmp_path, capsys):
    """Wherever it is noticed: it was typed."""
    path = tmp_path / ("x" * 300)
    assert exit_code(lambda: path.read_text(), "train", []) == 2
    said = f"nmt: {path}: cannot be read or written: File name too long\n"
    assert capsys.readouterr().err == said
