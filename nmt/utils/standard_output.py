"""Writing to standard output, which may be closed, full, or a broken pipe."""

from __future__ import annotations

import contextlib
import io
import os
import sys

from nmt.utils.errors import InputError, RunError
from nmt.utils.printable import printable


def open_output() -> None:
    """Sets standard output to UTF-8, whatever the locale; raises InputError where it is closed."""
    if sys.stdout is None:
        raise InputError("standard output: closed; give it a file, such as `> file.txt`")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")


def write_output(text: str = "") -> None:
    """Writes to standard output and flushes it.

    After an error the buffer is discarded, so that the interpreter does not try again at its end.

    Raises:
        RunError: saying why it cannot be written.
        BrokenPipeError: when whoever read it has ended.
    """
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        raise
    except OSError as error:
        _discard_output()
        raise RunError(f"standard output: cannot be written: {error.strerror}") from error


def print_whole(text: str) -> int:
    """Prints a text; the exit code of a program that does nothing else.

    Returns:
        0, also where the reader has had enough; 1 or 2 after a line on standard error where the
        text cannot be written.
    """
    try:
        open_output()
        write_output(text)
    except BrokenPipeError:
        return 0
    except (InputError, RunError) as error:
        say(str(error))
        return 2 if isinstance(error, InputError) else 1
    return 0


def say(message: str) -> None:
    """Prints a message on standard error; if that fails, the exit code remains."""
    if sys.stderr is None:  # `print` would take standard output
        return
    with contextlib.suppress(OSError):
        print(f"nmt: {printable(message)}", file=sys.stderr)


def _discard_output() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
