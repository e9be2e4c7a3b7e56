"""Programs as a person runs them, each in a process of its own, without importing the libraries anew.

`tests.helpers.server` forks for every process; `tests.helpers.hooks` has what a hook, Python statements
run before the program, is made of.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

from tests.helpers import ROOT
from tests.helpers.server import ENVIRONMENT, start_server

SILENT = ("logger=none", "trainer.enable_progress_bar=false", "report.heatmaps=0")
TINY = (
    "regime=tiny",
    "trainer=cpu",
    *SILENT,
    "search.max_ratio=0.5",  # a model that has learned little writes as much as it may
    "evaluation.resamples=20",
    "evaluation.train_sample=8",
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
    """A program that runs: its streams are files, or (the first two) pipes to this process."""

    def __init__(self, request: dict[str, Any], stdin: bytes, pipes: bool) -> None:
        self._folder = tempfile.TemporaryDirectory()
        written = [f"{name}{rank}" for rank in range(request["ranks"]) for name in ("out", "err")]
        streams = [Path(self._folder.name, name) for name in ("in", *written)]
        self._written = streams[1:]
        for pipe in streams[:2] if pipes else ():
            os.mkfifo(pipe)
        if not pipes:
            streams[0].write_bytes(stdin)
        self._connection = Client(str(start_server()))
        self._connection.send(request | {"streams": list(map(str, streams))})
        self.pids: list[int] = self._connection.recv()
        self.stdin = streams[0].open("wb", buffering=0) if pipes else None
        self.stdout = streams[1].open("rb", buffering=0) if pipes else None

    def send_signal(self, number: int) -> None:
        """To the first rank alone."""
        os.kill(self.pids[0], number)

    def end(self) -> None:
        """Kills all ranks that still run."""
        self._connection.close()
        for stream in (self.stdin, self.stdout):
            if stream is not None:
                stream.close()
        self._folder.cleanup()

    def wait(self) -> Ended:
        """Waits for all ranks, which are killed when the request's seconds have passed."""
        codes, seconds = self._connection.recv()
        texts = [
            path.read_text("utf-8", "replace") if path.is_file() else "" for path in self._written
        ]
        self.end()
        return Ended(codes, "".join(texts[::2]), "".join(texts[1::2]), seconds)


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
