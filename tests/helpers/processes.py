"""Runs programs as users do, in processes that need not import the libraries again.

`tests.helpers.server` forks each process. A hook is a string of Python statements that run before the
program; they can call the functions of `tests.helpers.hooks`.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping
from multiprocessing.connection import Client
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.helpers import ROOT
from tests.helpers.server import ENVIRONMENT, start_server

SILENT = ("logger=none", "trainer.enable_progress_bar=false")
TINY = (
    "regime=tiny",
    "trainer=cpu",
    *SILENT,
    "search.max_ratio=0.5",  # barely trained models often reach this limit
    "evaluation.resamples=20",
    "evaluation.train_sample=8",
)
LONGEST_S = 300  # time limit of a program


class Ended(NamedTuple):
    """How a program ended; `out` and `err` are the joined output of all ranks, in order."""

    codes: list[int]  # exit code of each rank, or -n if signal n killed the rank
    out: str
    err: str

    @property
    def code(self) -> int:
        return self.codes[0]


def running(pid: int) -> bool:
    """Tells whether a process runs and is not a zombie."""
    path = Path(f"/proc/{pid}/stat")
    try:
        return path.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants(pid: int) -> list[int]:
    """Returns the ids of the processes that a process has started, and of those that they have started."""
    listed = [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    children = [int(child) for each in listed for child in each]
    return children + [each for child in children for each in descendants(child)]


def wait_until_gone(pids: list[int], seconds: float) -> None:
    """Waits until no process runs any more; fails after some seconds."""
    end = time.monotonic() + seconds
    while alive := [pid for pid in pids if running(pid)]:
        assert time.monotonic() < end, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in alive]
        time.sleep(0.02)


class Process:
    """A program that runs in one process per element of `requests` (arguments of `tests.helpers.server.become`)."""

    def __init__(
        self, requests: list[dict[str, Any]], stdin: bytes | Path, stdout: Path | None
    ) -> None:
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        (folder / "in").write_bytes(stdin if isinstance(stdin, bytes) else b"")
        given = stdin if isinstance(stdin, Path) else folder / "in"
        self._written = [
            (stdout or folder / f"out{n}", folder / f"err{n}") for n in range(len(requests))
        ]
        self._connections = [Client(start_server()) for _ in requests]
        for connection, request, files in zip(
            self._connections, requests, self._written, strict=True
        ):
            connection.send(request | {"streams": (given, *files)})
        self.pids: list[int] = [connection.recv() for connection in self._connections]

    def send_signal(self, number: int) -> None:
        """Sends a signal to the first rank."""
        os.kill(self.pids[0], number)

    def wait(self) -> Ended:
        """Waits for all ranks, and kills a rank that does not end within `LONGEST_S`."""
        for connection, pid in zip(self._connections, self.pids, strict=True):
            if not connection.poll(LONGEST_S):
                os.killpg(pid, signal.SIGKILL)
        codes = [connection.recv() for connection in self._connections]
        out, err = (
            "".join(file.read_text("utf-8", "replace") for file in files if file.is_file())
            for files in zip(*self._written, strict=True)
        )
        return Ended(codes, out, err)


def start(
    module: str,
    *arguments: str,
    cwd: Path,
    hook: str = "",
    ranks: int = 1,
    stdin: bytes | Path = b"",
    stdout: Path | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Process:
    """Starts `python -m <module>` in a folder, which is created if it does not exist.

    Args:
        module, arguments: the module, which may be a file in `cwd`, and its arguments.
        cwd: the program's working folder.
        hook: Python statements that each rank runs before the program.
        ranks: number of processes; each gets the environment variables that Lightning sets.
        stdin, stdout: each may be a named pipe. Otherwise `stdin` is the whole input.
        env: environment variables, added to those of this process.
    """
    cwd.mkdir(parents=True, exist_ok=True)
    whole = {**os.environ, **ENVIRONMENT, **env}
    whole.pop("WANDB_SERVICE", None)  # else a killed run stays open in the W&B service of the tests
    whole["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
    ours: list[dict[str, str]] = [{}]
    if ranks > 1:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        whole |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        whole |= {"NODE_RANK": "0", "WORLD_SIZE": str(ranks)}
        ours = [{"LOCAL_RANK": str(rank)} for rank in range(ranks)]
    request = {"words": [module, *arguments], "cwd": cwd, "hook": hook}
    return Process([request | {"env": whole | each} for each in ours], stdin, stdout)


def run(command: str, *arguments: str, figures: bool = False, **options: Any) -> Ended:
    """Runs `python -m nmt.<command>` to its end, without figures if `figures` is false.

    The arguments and other options are those of `start`.
    """
    hook = options.pop("hook", "")
    if not figures:
        hook += "\nno_figures()"
    return start(f"nmt.{command}", *arguments, hook=hook, **options).wait()
