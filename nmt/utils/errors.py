"""Exceptions that end a command with a message and an exit code, without a traceback."""

import contextlib
import errno
import os
import signal
from collections.abc import Iterator
from typing import NoReturn


class InputError(Exception):
    """The configuration or an input is wrong (exit code 2).

    The message has one or two lines. It names the key, or the file and line, and says what is wrong
    and what to type instead.
    """


class RunError(Exception):
    """The command failed while it was running (exit code 1)."""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error, its cause, the cause of its cause, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def full_disk(error: BaseException) -> str | None:
    """Returns the file and the reason if the error was caused by a full disk or quota, otherwise None."""
    for each in causes(error):
        if isinstance(each, OSError) and each.errno in (errno.ENOSPC, errno.EDQUOT):
            return ": ".join(filter(None, (each.filename, each.strerror)))
    return None


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or the name of its type if it has none.

    >>> first_line(ValueError("\\n too long\\nby far")), first_line(KeyError())
    ('too long', 'KeyError')
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def describe_exit(code: int) -> str:
    """Describes an exit code; a negative code -N means that signal N killed the process."""
    if code == 0:
        return "finished"
    with contextlib.suppress(ValueError):
        return f"stopped by {signal.Signals(-code if code < 0 else code - 128).name}"
    return f"{'refused' if code == 2 else 'failed'} (exit code {code})"


def exit_at_once(code: int, message: str) -> NoReturn:
    """Ends the process at once without cleanup, even in a thread; a code -N stands for signal N."""
    os.write(2, f"nmt: {message}\n".encode())
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)
