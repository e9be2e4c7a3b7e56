"""A file is whole, the old or the new, whenever its writer is stopped."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from nmt.utils import files
from nmt.utils.errors import InputError


class Killed(BaseException):
    """Stands for a kill: nothing after it is done, cleaning up included."""


@pytest.fixture
def kill_at(monkeypatch):
    """kill_at(n): the n-th rename from now on is not made, and nothing is removed afterwards."""

    def arrange(number: int) -> None:
        real, calls = os.replace, 0

        def replace(old: Path, new: Path) -> None:
            nonlocal calls
            calls += 1
            if calls == number:
                raise Killed
            real(old, new)

        monkeypatch.setattr(os, "replace", replace)
        monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: None)

    return arrange


def write(path: Path, content: bytes, checksum: bool = True) -> None:
    files.write_atomically(path, lambda stream: [stream.write(content)][:0], checksum=checksum)


@pytest.mark.parametrize(("rename", "content"), [(1, b"old"), (2, b"old"), (3, b"new")])
def test_a_kill_while_writing_leaves_a_whole_file(tmp_path, kill_at, rename, content):
    path = tmp_path / "a.ckpt"
    write(path, b"old")
    kill_at(rename)
    with pytest.raises(Killed):
        write(path, b"new")
    assert path.read_bytes() == content
    files.verify(path)


@pytest.mark.parametrize(
    ("rename", "old", "new"),
    [(1, b"1", b"0"), (2, b"1", b"0"), (3, None, b"1")],
)
def test_a_kill_while_renaming_leaves_whole_files(tmp_path, kill_at, rename, old, new):
    last, previous = tmp_path / "last", tmp_path / "previous"
    write(previous, b"0")
    write(last, b"1")
    kill_at(rename)
    with pytest.raises(Killed):
        files.rename(last, previous)
    assert (last.read_bytes() if last.exists() else None) == old
    assert previous.read_bytes() == new
    for path in (last, previous):
        if path.exists():
            files.verify(path)


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.ckpt"
    write(path, b"old")
    before = sorted(tmp_path.iterdir())

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as error:
        write(path, b"new")
    assert error.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == before


def test_a_changed_file_is_refused(tmp_path):
    path = tmp_path / "a.ckpt"
    write(path, b"content")
    digest = files.verify(path)
    assert digest == files.sha256(path)
    assert (tmp_path / "a.ckpt.sha256").read_text() == f"{digest}  a.ckpt\n"
    path.write_bytes(b"cont")
    with pytest.raises(InputError, match=r"a\.ckpt: damaged"):
        files.verify(path)


def test_others_may_read_what_is_written(tmp_path):
    """Temporary files are the writer's alone; what they become obeys the umask."""
    before = os.umask(0o027)
    try:
        write(tmp_path / "a", b"x", checksum=False)
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_places_where_nothing_can_be_written_are_refused_early(tmp_path):
    """And what stands there stays: a pipe or a device would else be replaced by the file."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "ring").symlink_to("ring")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    refused = {
        "folder": "is a folder",
        "pipe": "is a device or a pipe, which would be replaced",
        "/dev/null": "is a device or a pipe, which would be replaced",
        "file/x": "is not a folder",
        "ring/x": "ring is not a folder",
        "x" * 300: "cannot be written (File name too long)",
        f"new/{'x' * 300}/x": "cannot be written (File name too long)",
        "/proc/x": "cannot be written (No such file or directory)",
    }
    for name, said in refused.items():
        with pytest.raises(InputError, match=re.escape(f"page={tmp_path / name}: ")) as error:
            files.check_writable("page", tmp_path / name)
        assert said in str(error.value)
    (tmp_path / "link").symlink_to("file")
    inputs = {"source": ["absent"], "checkpoint": ["wandb:a/b/c:d", str(tmp_path / "file")]}
    for name in ("file", "link", "folder/../file"):
        with pytest.raises(InputError) as error:
            files.check_writable("page", tmp_path / name, inputs)
        assert (
            str(error.value) == f"page={tmp_path / name}: is the file of checkpoint; name another"
        )
    (tmp_path / "link").unlink()
    for name in ("file", "new/one/x", "x" * 230):
        files.check_writable("page", tmp_path / name)
    files.check_writable("page", tmp_path / "absent", inputs)
    assert sorted(tmp_path.iterdir()) == before


def test_a_name_that_libraries_cannot_open_is_refused(tmp_path):
    files.check_utf8("data.cache", tmp_path / "漢字")
    with pytest.raises(InputError, match=r"^data\.cache=.*: a name that is no UTF-8"):
        files.check_utf8("data.cache", tmp_path / os.fsdecode(b"\xff"))
