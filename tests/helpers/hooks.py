"""What hooks are made of: statements that kill, signal or break a program at an exact moment."""

from __future__ import annotations

import functools
import importlib
import os
import signal
from typing import Any


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
