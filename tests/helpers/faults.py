"""Kills and full disks at an exact file operation, in a forked process.

Python's audit events come before each operation on a file; a hook counts those that change a folder
(opening for writing, renaming, removing, making a folder, changing a mode), and `os.fsync` is counted
beside them. At the chosen one the process is killed as `kill -9` does, or the operation fails.
"""

from __future__ import annotations

import errno
import os
import pickle
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass
class Outcome:
    """How a process ended.

    Attributes:
        operations: it has begun, by name.
        killed: whether it was.
        error: what it raised, or None.
    """

    operations: list[str]
    killed: bool
    error: BaseException | None


def counted(action: Callable[[], Any], folder: Path) -> list[str]:
    """The operations by which `action` changes a folder."""
    outcome = _in_a_fork(action, folder, 0, None)
    assert outcome.error is None, outcome.error
    return outcome.operations


def killed_at(number: int, action: Callable[[], Any], folder: Path) -> None:
    """Runs `action` in a process that is killed before its operation of this number (from 1)."""
    outcome = _in_a_fork(action, folder, number, None)
    assert outcome.killed, f"ended before its operation {number}: {outcome.error!r}"


def full_from(number: int, action: Callable[[], Any], folder: Path) -> BaseException | None:
    """What `action` raises where the disk is full from its operation of this number on.

    Removing and renaming still work.
    """
    return _in_a_fork(action, folder, number, errno.ENOSPC).error


def hook(folder: Path, number: int, failure: int | None, begun: Callable[[str], Any]) -> None:
    """Counts, in this process and for ever, and does at the operation `number` what was chosen."""
    count = 0

    def at_operation(name: str) -> None:
        nonlocal count
        count += 1
        begun(name)
        if failure is None and count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        frees = name in ("os.remove", "os.rename", "os.rmdir", "os.chmod")
        if failure is not None and count >= number > 0 and not frees:
            raise OSError(failure, os.strerror(failure))

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        changes = event in CHANGES or (event == "open" and int(arguments[2] or 0) & WRITING)
        if not changes or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        if os.path.abspath(os.fsdecode(arguments[0])).startswith(str(folder)):
            at_operation(event)

    def fsync(descriptor: int) -> None:
        at_operation(
            "os.fsync"
        )  # a killed process' files need no flush; a disk would take its time

    os.fsync = fsync
    sys.addaudithook(heard)


def _in_a_fork(
    action: Callable[[], Any], folder: Path, number: int, failure: int | None
) -> Outcome:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(read)
            hook(folder, number, failure, lambda name: os.write(write, f"{name}\n".encode()))
            error: BaseException | None = None
            try:
                action()
            except BaseException as raised:
                error = raised
            try:
                told = pickle.dumps(error)
            except Exception:
                told = pickle.dumps(RuntimeError(repr(error)))
            os.write(write, b"\0" + told)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        names, _, error = stream.read().partition(b"\0")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    return Outcome(
        names.decode().split(), status == -signal.SIGKILL, pickle.loads(error) if error else None
    )
