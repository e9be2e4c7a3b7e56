"""Programs as a person runs them, each in a process of its own, without importing the libraries anew.

`tests.helpers.server` forks for every process; `tests.helpers.hooks` has what a hook, Python statements
run before the program, is made of.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.helpers import ROOT
from tests.helpers.server import ENVIRONMENT, start_server

SILENT = ("logger=none", "trainer.enable_progress_bar=false", "report.heatmaps=0")
TINY = (
    *("regime=tiny", "trainer=cpu", *SILENT),
    "search.max_ratio=0.5",  # a model that has learned little writes as much as it may
    *("evaluation.resamples=20", "evaluation.train_sample=8"),
)


@dataclass
class Ended:
    """How a program ended, its streams those of all ranks, one after the other.

    Attributes:
        codes: exit code of each rank, or minus the number of the signal that killed it.
        out, err: what was written to standard output and to standard error.
        cpu_seconds: processor time of all ranks together.
    """

    codes: list[int]
    out: str
    err: str
    cpu_seconds: float

    @property
    def code(self) -> int:
        return self.codes[0]


class Process:
    """A program that runs: its streams are files, or pipes to this process."""

    def __init__(self, request: dict[str, Any], stdin: bytes, pipes: bool) -> None:
        self._outputs: list[tuple[IO[bytes], IO[bytes]]] = []
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(start_server()))
        with contextlib.ExitStack() as stack:
            given = stack.enter_context(tempfile.TemporaryFile())
            given.write(stdin)
            given.seek(0)
            descriptors = [given.fileno()]
            for _ in range(request["ranks"]):
                files = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
                self._outputs.append(files)
                descriptors += [file.fileno() for file in files]
            if pipes:
                (read, write), (answers, answer) = os.pipe(), os.pipe()
                descriptors[:2] = [read, answer]
                for descriptor in (read, answer):
                    stack.callback(os.close, descriptor)
                self.stdin = os.fdopen(write, "wb", buffering=0)
                self.stdout = os.fdopen(answers, "rb", buffering=0)
            message = json.dumps(request).encode()
            self._connection.sendall(f"{len(message):8d}".encode())
            socket.send_fds(self._connection, [message[:1]], descriptors)
            self._connection.sendall(message[1:])
        self._answers = self._connection.makefile("r", encoding="utf-8")
        self.pids: list[int] = json.loads(self._answers.readline())

    def send_signal(self, number: int) -> None:
        """To the first rank alone."""
        os.kill(self.pids[0], number)

    def end(self) -> None:
        """Kills all ranks that still run."""
        self._connection.close()
        self._answers.close()
        for stream in (self.stdin, self.stdout):
            if stream is not None:
                stream.close()

    def wait(self) -> Ended:
        """Waits for all ranks, which are killed when the request's seconds have passed."""
        line = self._answers.readline()
        assert line, "the server of the test run has ended"
        codes, seconds = json.loads(line)
        self.end()
        texts = []
        for files in zip(*self._outputs, strict=True):
            for file in files:
                file.seek(0)
            texts.append("".join(file.read().decode("utf-8", "replace") for file in files))
        for file in (file for files in self._outputs for file in files):
            file.close()
        return Ended(codes, *texts, seconds)


def start(
    module: str,
    *arguments: str,
    cwd: Path,
    hook: str = "",
    ranks: int = 1,
    stdin: bytes = b"",
    pipes: bool = False,
    env: dict[str, str] | None = None,
    timeout: float = 300,
) -> Process:
    """Starts `python -m <module>`; `hook` has the names of `tests.helpers.hooks` at hand.

    Args:
        module: by its dotted name, found from `cwd`.
        arguments: of the program.
        cwd: folder that it runs in, made where it does not exist.
        hook: Python statements run before it, in each rank.
        ranks: processes, each started as Lightning starts them.
        stdin: its whole standard input.
        pipes: standard input and output of the first rank are pipes instead.
        env: added to this process' environment.
        timeout: seconds after which it is killed.
    """
    cwd.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, **ENVIRONMENT, **(env or {})}
    env.pop("WANDB_SERVICE", None)  # of this process; a killed run would still be open in it
    request = {
        "module": module,
        "arguments": arguments,
        "cwd": str(cwd),
        "hook": hook,
        "ranks": ranks,
        "env": env | {"PYTHONPATH": os.pathsep.join([env["PYTHONPATH"], str(ROOT)])},
        "timeout": timeout,
    }
    return Process(request, stdin, pipes)


def run(command: str, *arguments: str, figures: bool = False, **options: Any) -> Ended:
    """Runs `python -m nmt.<command>` to its end, without `figures` drawing none.

    Arguments and options are those of `start`.
    """
    hook = options.pop("hook", "")
    if not figures:
        hook += "\nno_figures()"
    return start(f"nmt.{command}", *arguments, hook=hook, **options).wait()


def run_afresh(*command: str, cwd: Path) -> Ended:
    """Runs `python -m <command>` in a new interpreter, which imports what it needs."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
    )
    return Ended([done.returncode], done.stdout, done.stderr, float("nan"))
