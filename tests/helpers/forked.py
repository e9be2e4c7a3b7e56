"""Commands as a person runs them, each in a process of its own, without paying the imports anew.

A server process imports the commands once and forks for every run; hooks (Python statements run
before the command) kill or signal a run at an exact moment. Run by `Runs`, never by hand.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers import ROOT

TINY = ("regime=tiny", "trainer=cpu", "logger=none", "trainer.progress=false", "report.heatmaps=0")


@dataclass
class Ended:
    """How a run ended: exit codes of its ranks (minus the signal that killed one), its stderr."""

    codes: list[int]
    said: str

    @property
    def code(self) -> int:
        return self.codes[0]


@functools.cache
def _server() -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "WANDB_MODE": "offline",
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.forked"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )
    atexit.register(server.kill)
    return server


def run(
    command: str,
    *arguments: str,
    cwd: Path,
    hook: str = "",
    ranks: int = 1,
    figures: bool = False,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    timeout: float = 300,
) -> Ended:
    """Runs `python -m nmt.<command>`; `hook` has the names of this file at hand.

    With several `ranks` each is started as Lightning starts them. Without `figures` none is drawn.
    """
    cwd.mkdir(parents=True, exist_ok=True)
    if not figures:
        hook += "\nno_figures()"
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    (cwd / ".stdin").write_bytes(stdin)
    request = {
        "command": command,
        "arguments": arguments,
        "cwd": str(cwd),
        "hook": hook,
        "ranks": ranks,
        "env": env or {},
        "timeout": timeout,
    }
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    codes = json.loads(server.stdout.readline())
    said = "".join((cwd / f".stderr{rank}").read_text("utf-8", "replace") for rank in range(ranks))
    return Ended(codes, said)


# What hooks are made of


def find(place: str) -> tuple[Any, str]:
    """The owner and the name of `module:attribute`."""
    import importlib

    module, _, path = place.partition(":")
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def before(place: str, count: int, action: Any) -> None:
    """Calls `action` before the `count`-th call (from 1) of `module:function`."""
    owner, name = find(place)
    real, calls = getattr(owner, name), 0

    @functools.wraps(real)
    def hooked(*arguments: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count:
            action()
        return real(*arguments, **keywords)

    setattr(owner, name, hooked)


def send(number: int, place: str, count: int) -> None:
    """Has the process send itself a signal before the `count`-th call of `place`."""
    before(place, count, lambda: os.kill(os.getpid(), number))


def kill(place: str, count: int) -> None:
    """Kills the process, as `kill -9` does, before the `count`-th call of `place`."""
    send(signal.SIGKILL, place, count)


def fail(place: str, count: int, error: BaseException) -> None:
    """Raises `error` in the `count`-th call of `place`."""

    def action() -> None:
        raise error

    before(place, count, action)


def no_figures() -> None:
    """Figures take most of the time of a small run."""
    from nmt.run import finish as module

    module.draw_run = lambda *arguments: []  # type: ignore[assignment]
    module.build_page = lambda *arguments, **keywords: None  # type: ignore[assignment]


# The server


def child(request: dict[str, Any], rank: int, port: int) -> None:
    """Runs the command in this (forked) process and ends it."""
    os.chdir(request["cwd"])
    os.dup2(os.open(".stdin", os.O_RDONLY), 0)
    for descriptor, name in ((1, f".stdout{rank}"), (2, f".stderr{rank}")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.environ.update(request["env"])
    if request["ranks"] > 1:
        world = str(request["ranks"])
        os.environ.update(LOCAL_RANK=str(rank), NODE_RANK="0", WORLD_SIZE=world)
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    sys.path[:0] = request["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = [request["command"], *request["arguments"]]
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, m) for n, m in ((0, "r"), (1, "w"), (2, "w")))
    code = 1
    try:
        exec(request["hook"], globals())
        runpy.run_module(f"nmt.{request['command']}", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def serve() -> None:
    """Answers requests, one a line, with the exit codes of the ranks."""
    import nmt.evaluate
    import nmt.train
    import nmt.translate  # noqa: F401

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    for line in sys.stdin:
        request = json.loads(line)
        port += 1
        running = {}
        for rank in range(request["ranks"]):
            process = os.fork()
            if process == 0:
                os.setpgid(0, 0)
                child(request, rank, port)
            running[process] = rank
        codes = {}
        until = time.monotonic() + request["timeout"]
        while running:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process in running:
                codes[running.pop(process)] = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                for process in running:
                    os.killpg(process, signal.SIGKILL)
                until += 10
            else:
                time.sleep(0.01)
        print(json.dumps([codes[rank] for rank in range(request["ranks"])]), flush=True)


if __name__ == "__main__":
    serve()
