"""One process at a time works in a folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import multiprocessing
import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from nmt.utils.errors import InputError
from nmt.utils.locks import FILE, FolderLock

FORK = multiprocessing.get_context("fork")


def hold(folder: Path, pipe: Any, helper: bool = False) -> None:
    FolderLock.take(folder)
    if helper and os.fork() == 0:  # as a process that makes batches
        time.sleep(2)
        os._exit(0)
    pipe.send(os.getpid())
    signal.pause()


def test_a_second_process_is_refused_and_a_killed_one_holds_nothing(tmp_path):
    here, there = FORK.Pipe()
    holder = FORK.Process(target=hold, args=(tmp_path, there, True))
    holder.start()
    number = here.recv()
    said = f"{tmp_path}: process {number} on {socket.gethostname()} works there"
    with pytest.raises(InputError, match=re.escape(said)):
        FolderLock.take(tmp_path)
    with pytest.raises(InputError, match=re.escape(said)):  # it was not unlocked by the attempt
        FolderLock.take(tmp_path)
    holder.kill()
    holder.join()
    lock = FolderLock.take(tmp_path)  # whatever the killed one's children do
    assert f"process {os.getpid()} on" in (tmp_path / FILE).read_text()
    lock.release()
    assert not list(tmp_path.iterdir())


def compete(folder: Path, turns: int) -> None:
    """Counts, in a file and without care, how often it had the folder."""
    mine = 0
    while mine < turns:
        try:
            lock = FolderLock.take(folder)
        except InputError:
            continue
        count = folder.parent / "count"
        count.write_text(str(int(count.read_text()) + 1))
        mine += 1
        lock.release()
        if mine % 3 == 0:  # and the folder goes, too, where the other one does not stop it
            with contextlib.suppress(OSError):
                folder.rmdir()


def test_two_processes_that_compete_never_hold_it_together(tmp_path):
    (tmp_path / "count").write_text("0")
    processes = [FORK.Process(target=compete, args=(tmp_path / "run", 60)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(30)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "180"


def test_where_there_are_no_locks_a_warning_is_given(tmp_path, monkeypatch, caplog):
    def none(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", none)
    lock = FolderLock.take(tmp_path)
    assert "cannot be locked (No locks available): make sure" in caplog.text
    lock.release()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a place where no folder can be made")
def test_a_folder_that_cannot_be_made_is_not_tried_for_ever():
    with pytest.raises(
        InputError, match=r"/proc/here: cannot be made \(No such file or directory\)"
    ):
        FolderLock.take(Path("/proc/here"))
