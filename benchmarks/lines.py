"""Measurements as lines of JSON: on stdout, and in a file from which an interrupted run goes on."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Lines:
    """The measurements of a run.

    Args:
        path: the file; what it holds is not measured again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.kept: list[Line] = []
        for text in path.read_text().splitlines() if path.exists() else []:
            with contextlib.suppress(ValueError):  # a line that a kill cut off
                self.kept.append(json.loads(text))

    def measure(self, work: Callable[[], Iterable[Line]], **unit: Any) -> list[Line]:
        """The lines of a unit of work, whose keys begin each of them: from the file, or measured now."""
        lines = [line for line in self.kept if unit.items() <= line.items()]
        if not lines:
            lines = [unit | rounded(line) for line in work()]
            self.kept += lines
            with self.path.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
        for line in lines:
            print(json.dumps(line), flush=True)
        return lines


@contextlib.contextmanager
def resumable(module: str, path: Path) -> Iterator[Lines]:
    """Inside it, Ctrl-C and SIGTERM end the program with the command that goes on where it stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield Lines(path)
    except KeyboardInterrupt:
        typed = sys.argv[1:]
        if "--out" not in typed:
            typed += ["--out", str(path)]
        command = shlex.join(["python", "-m", module, *typed])
        print(f"stopped; to go on, type:\n\n    {command}\n", file=sys.stderr)
        sys.exit(130)


def rounded(value: Any) -> Any:
    """Four digits of every float, which is more than a measurement has."""
    if isinstance(value, float):
        return float(f"{value:.4g}") if abs(value) < float("inf") else str(value)
    if isinstance(value, dict):
        return {str(key): rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return value
