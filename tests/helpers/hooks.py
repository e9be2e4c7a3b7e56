"""Functions that hooks call. A hook is Python code that kills, signals or breaks a running program."""

from __future__ import annotations

import functools
import itertools
import os
import pkgutil
import signal
import types
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from typing import Any
from unittest import mock


def before(place: str, count: int, action: Callable[[], Any]) -> None:
    """Calls `action` just before the `count`-th call of the function `place` ("module:name")."""
    real = pkgutil.resolve_name(place)
    calls = itertools.count(1)

    @functools.wraps(real)
    def hooked(*arguments: Any, **keywords: Any) -> Any:
        if next(calls) == count:
            action()
        return real(*arguments, **keywords)

    mock.patch(place.replace(":", "."), hooked).start()


def send(number: int, place: str, count: int) -> None:
    """Makes the process send itself a signal before the `count`-th call of `place`."""
    before(place, count, lambda: os.kill(os.getpid(), number))


def kill(place: str, count: int) -> None:
    """Kills the process, as `kill -9` does, before the `count`-th call of `place`."""
    send(signal.SIGKILL, place, count)


def fail(place: str, count: int, error: BaseException) -> None:
    """Raises `error` in the `count`-th call of `place`."""
    before(place, count, mock.Mock(side_effect=error))


def no_figures() -> None:
    """Skips figures and page, which take most of the time of a small run."""
    from nmt.training import publish

    publish.draw_figures = lambda *arguments, **keywords: []
    publish.build_page = lambda *arguments, **keywords: None


def fork_ranks() -> None:
    """Lets Lightning's launcher fork the ranks, so that they need not import the libraries."""
    from pytorch_lightning.strategies.launchers import subprocess_script

    from tests.helpers.server import become

    def launch(command: list[str], *, env: dict[str, str], cwd: str) -> ForkProcess:
        streams = (os.devnull, *(os.readlink(f"/proc/self/fd/{number}") for number in (1, 2)))
        process: Any = ForkProcess(target=become, args=(command[2:], cwd, env, streams))
        process.poll = lambda: process.exitcode
        process.start()
        return process

    subprocess_script.subprocess = types.SimpleNamespace(Popen=launch)
