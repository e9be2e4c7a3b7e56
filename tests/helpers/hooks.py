"""What hooks are made of: statements that kill, signal or break a program at an exact moment."""

from __future__ import annotations

import functools
import importlib
import os
import signal
import subprocess
import sys
import types
from multiprocessing.context import ForkProcess
from typing import Any, BinaryIO


def find(place: str) -> tuple[Any, str]:
    """The owner and the name of `module:attribute`."""
    module, _, path = place.partition(":")
    owner: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def before(place: str, count: int, action: Any) -> None:
    """Calls `action` before the `count`-th call (from 1) of `module:function`."""
    owner, name = find(place)
    real = getattr(owner, name)
    calls = 0

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
    from nmt.training import publish as module

    module.draw_figures = lambda *arguments, **keywords: []  # type: ignore[assignment]
    module.build_page = lambda *arguments, **keywords: None  # type: ignore[assignment]


def no_results() -> None:
    """After the training no test set is translated, and no results are written."""
    from nmt.inference import test_sets
    from nmt.training import publish

    test_sets.evaluate = lambda *arguments: []  # type: ignore[assignment]
    publish.publish = lambda *arguments: None  # type: ignore[assignment]


def fork_jobs() -> None:
    """The process launcher's jobs are forks of the sweep: none imports the libraries anew."""
    from hydra_plugins.nmt_process_launcher import launcher

    launcher.POLL_S = 0.02
    launcher.subprocess = types.SimpleNamespace(Popen=Fork, DEVNULL=subprocess.DEVNULL)


class Fork(ForkProcess):
    """What the process launcher asks of `subprocess.Popen`, of `python -m <module>` in a fork."""

    def __init__(
        self,
        command: list[str],
        *,
        stdin: int,
        stdout: BinaryIO,
        stderr: BinaryIO,
        env: dict[str, str],
        start_new_session: bool,
    ) -> None:
        assert command[:2] == [sys.executable, "-m"]
        assert (stdin, stdout, start_new_session) == (subprocess.DEVNULL, stderr, True)
        super().__init__(target=_become, args=(command[2:], stdout.fileno(), env))
        self.start()

    def poll(self) -> int | None:
        return self.exitcode

    def send_signal(self, number: int) -> None:
        if self.exitcode is None:
            os.kill(self.pid or 0, number)


def _become(words: list[str], output: int, env: dict[str, str]) -> None:
    from hydra.core.global_hydra import GlobalHydra

    from tests.helpers.server import run_program

    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(file, stream)
    os.closerange(3, 1024)
    GlobalHydra.instance().clear()
    run_program(words[0], words[1:], os.getcwd(), env)
