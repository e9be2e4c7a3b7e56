"""Each item in a process of its own, with a time limit, and a line of JSON about how it ended.

Processes are forked from one that has imported the libraries and never touched the device, which
saves the imports of each; where a fork cannot use the device they are started afresh.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.findings import Findings

LAST_LINES = 12  # of an error that are kept


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: its exit code; minus the number of the signal that killed it.
        timed_out: whether it was killed for its time.
        said: the last lines of its output and errors.
        seconds: that it took.
    """

    code: int
    timed_out: bool
    said: list[str]
    seconds: float


def run_apart(
    work: Callable[..., None],
    arguments: Iterable[Any],
    seconds: float,
    log: Path,
    start: str = "fork",
    *,
    own_group: bool = True,
) -> Ended:
    """Runs `work(*arguments)` in a process.

    Args:
        work: a function of a module.
        arguments: what can be pickled.
        seconds: after which the process and its children are killed.
        log: file of what it says.
        start: `fork`, or `spawn` for a fresh interpreter.
        own_group: of processes, all of which are ended with it; else it is of this one's group.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    context: Any = multiprocessing.get_context(start)
    process = context.Process(target=_inside, args=(work, tuple(arguments), str(log), own_group))
    began = time.monotonic()
    process.start()
    process.join(seconds)
    timed_out = process.is_alive()
    if own_group:  # whatever it has started ends with it
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if timed_out:
        process.kill()
    process.join()
    said = log.read_text(errors="replace").splitlines() if log.exists() else []
    return Ended(process.exitcode, timed_out, said[-LAST_LINES:], time.monotonic() - began)


def _inside(
    work: Callable[..., None], arguments: tuple[Any, ...], log: str, own_group: bool
) -> None:
    """The child: its streams are in a file, its error their last lines."""
    if own_group:
        os.setpgid(0, 0)
    with open(log, "wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    code = 1
    try:
        work(*arguments)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_item(
    item: Any,
    make_setting: Callable[[Path], Any],
    folder: Path,
    seconds: float,
    start: str = "fork",
) -> dict[str, Any]:
    """The line of an item: what it found, whether that is right, and the error that ended it.

    Args:
        item: see `benchmarks.gpu.items.Item`.
        make_setting: gives the item's `Setting` for its folder; is called in the child.
        folder: that the item may write into; it is removed.
        seconds: after which the item is ended.
        start: see `run_apart`.
    """
    folder.mkdir(parents=True)
    path = folder.with_suffix(".json")
    path.unlink(missing_ok=True)
    log = folder.with_suffix(".log")
    ended = run_apart(_item, (item, make_setting, folder, path), seconds, log, start)
    found = json.loads(path.read_text()) if path.exists() else Findings().content()
    error: list[str] = []
    if ended.timed_out:
        error = [f"ended after its {seconds:g} seconds", *ended.said]
    elif ended.code:
        error = [f"ended with code {ended.code}", *ended.said]
    for used in (path, log):
        used.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    return {
        "item": item.name,
        "ok": not error and not found["failed"],
        "seconds": round(ended.seconds, 1),
        **found,
        "error": error,
    }


def _item(item: Any, make_setting: Callable[[Path], Any], folder: Path, path: Path) -> None:
    import torch

    torch.set_num_threads(1)
    findings = Findings(path)
    item.function()(make_setting(folder), findings)
    findings.note()  # of an item that had nothing to say
