"""A file is whole, the old or the new, whenever its writer is stopped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nmt.utils.files import sha256, write_atomically, write_json, write_text


def test_a_file_is_replaced_whole(tmp_path: Path):
    path = tmp_path / "new/folder/a"
    write_text(path, "old")
    seen = []

    def write(stream):
        stream.write(b"half")
        stream.flush()
        seen.append(path.read_text())

    write_atomically(path, write)
    assert (seen, path.read_text()) == (["old"], "half")
    assert [file.name for file in path.parent.iterdir()] == ["a"]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_an_error_leaves_the_old_file(tmp_path: Path, monkeypatch, function):
    path = tmp_path / "a"
    write_text(path, "old")

    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="no space"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_writer_left_is_overwritten(tmp_path: Path):
    (tmp_path / ".a.partial").write_text("a long and useless beginning")
    write_text(tmp_path / "a", "é")
    assert (tmp_path / "a").read_bytes() == "é".encode()
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_text_and_data(tmp_path: Path):
    write_text(tmp_path / "a", "lone \ud800")
    assert (tmp_path / "a").read_text() == "lone ?"
    write_json(tmp_path / "b", {"ü": [1.5, None]})
    assert (tmp_path / "b").read_text() == '{\n "ü": [\n  1.5,\n  null\n ]\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "b", [float("nan")])
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (tmp_path / "c").touch()
    assert sha256(tmp_path / "c") == empty
