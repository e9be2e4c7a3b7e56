"""If a writer is interrupted, the file has either its old or its complete new content."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from nmt.utils.errors import InputError
from nmt.utils.files import locked, matching, sha256, write_atomically, write_json, write_text


def test_write_replaces_a_file_atomically(tmp_path: Path):
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
def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch, function):
    path = tmp_path / "a"
    write_text(path, "old")

    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="no space"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_write_overwrites_a_partial_file(tmp_path: Path):
    (tmp_path / ".a.partial").write_text("a long and useless beginning")
    write_text(tmp_path / "a", "é")
    assert (tmp_path / "a").read_bytes() == "é".encode()
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_write_text_and_json(tmp_path: Path):
    write_text(tmp_path / "a", "lone \ud800")
    assert (tmp_path / "a").read_text() == "lone ?"
    write_json(tmp_path / "b", {"ü": [1.5, None]})
    assert (tmp_path / "b").read_text() == '{\n "ü": [\n  1.5,\n  null\n ]\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "b", [float("nan")])
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (tmp_path / "c").touch()
    assert sha256(tmp_path / "c") == empty


def test_write_works_without_folder_fsync(tmp_path: Path, monkeypatch):
    """On SMB and some FUSE file systems, fsync of a folder fails."""
    sync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse_folders)
    write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"


def test_lock_file_is_writable_by_all_users(tmp_path: Path):
    with locked(tmp_path / "shared", "output"):
        pass
    assert stat.S_IMODE((tmp_path / "shared/.lock").stat().st_mode) == 0o666


def test_refuses_a_folder_that_cannot_be_locked(tmp_path: Path):
    (tmp_path / "file").touch()
    (tmp_path / "shared/.lock").mkdir(parents=True)
    for name in ("file", "shared"):
        message = (
            rf"^output={tmp_path}/{name}: cannot be locked \(.+: .+{name}.*name another folder"
        )
        with pytest.raises(InputError, match=message), locked(tmp_path / name, "output"):
            pass


def test_errors_inside_a_lock_are_kept(tmp_path: Path):
    with pytest.raises(FileNotFoundError), locked(tmp_path, "output"):
        (tmp_path / "missing").read_text()
    with locked(tmp_path, "output"):
        pass


def test_matching_expands_globs_below_brackets_and_home(tmp_path: Path, monkeypatch):
    folder = tmp_path / "[corpus]"
    for name in ("b", "a"):
        write_text(folder / name / "run", name)
    assert (
        matching(folder / "*")
        == matching(f"{tmp_path}/[[]corpus]/*")
        == [folder / "a", folder / "b"]
    )
    assert matching(folder) == [folder]
    assert matching(folder / "c*") == []
    monkeypatch.setenv("HOME", str(folder))
    assert matching("~/[a]/run") == [folder / "a/run"]
