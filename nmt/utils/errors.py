"""Exceptions that end a command with a message and an exit code, without a traceback."""

import contextlib
import errno
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import NoReturn

# Message of torch (for CPU tensors), of the operating system, and of a killed DataLoader worker
_NO_MEMORY = re.compile("(can't|Cannot) allocate memory|worker .* killed by signal: Killed")


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


def lack_of_space(error: BaseException) -> str | None:
    """Returns one line if a full disk, a quota or a lack of memory caused the error, otherwise None."""
    for each in causes(error):
        if isinstance(each, OSError) and each.errno in (errno.ENOSPC, errno.EDQUOT):
            return ": ".join(filter(None, (each.filename, each.strerror)))
        if isinstance(each, BrokenProcessPool):
            return (
                "a worker process was killed, probably because memory ran out; close other programs, or set "
                "OMP_NUM_THREADS=1 to work without worker processes"
            )
        if isinstance(each, MemoryError) or _NO_MEMORY.search(str(each)):
            return f"memory ran out ({first_line(each)}); close other programs, or choose smaller sizes"
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
