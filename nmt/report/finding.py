"""Finds finished runs by path, glob or sweep folder, and reads them.

Nothing here imports a model: a report is made from files alone, on any machine, after training.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nmt.evaluation import results
from nmt.report.runs import FinishedRun, label_apart
from nmt.utils.errors import InputError
from nmt.utils.printable import printable


@dataclass(frozen=True)
class Found:
    """What a list of folders and patterns led to."""

    runs: list[FinishedRun]
    unfinished: list[Path]


def read_run(folder: str | Path) -> FinishedRun:
    """Reads a finished run's folder.

    Raises:
        InputError: if there is no such folder, the run has not finished, or its results cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(
            f"runs: {folder} is not a folder; name run folders, sweep folders or globs"
        )
    content = results.read(folder)
    return FinishedRun(printable(str(content.get("name") or folder.name)), content, folder)


def find_runs(patterns: Iterable[str | Path]) -> Found:
    """The runs that folders, sweep folders and globs name, each once, with unique labels.

    A folder named outright must be a finished run or hold some; jobs of a sweep and matches of a glob that have not
    finished are passed over and listed.

    Raises:
        InputError: if a pattern leads to nothing that can be read.
    """
    runs: dict[Path, FinishedRun] = {}
    unfinished: list[Path] = []
    wanted = list(map(str, patterns))
    if not wanted:
        raise InputError("runs: empty; name run folders, sweep folders or globs")
    for pattern in wanted:
        named = os.path.isdir(pattern)  # False where the name is too long
        folders = [Path(pattern)] if named else sorted(map(Path, glob.glob(pattern)), key=_order)
        if not folders:
            raise InputError(
                f"runs: nothing matches {pattern}; name run folders, sweep folders or globs"
            )
        before = len(runs), len(unfinished)
        finished_before = False
        for folder in folders:
            jobs = [folder] if (folder / results.FILE).is_file() else _jobs(folder)
            if not (jobs or named) and _is_unfinished(folder):
                jobs = [folder]
            for job in jobs:
                if not (job / results.FILE).is_file():
                    unfinished.append(job)
                elif job.resolve() in runs:
                    finished_before = True
                else:
                    runs[job.resolve()] = read_run(job)
        if len(runs) == before[0] and not finished_before:
            if named and len(unfinished) == before[1]:
                read_run(pattern)
            raise InputError(
                f"runs: no folder under {pattern} has a {results.FILE}: no run there finished"
            )
    return Found(label_apart(list(runs.values())), unfinished)


def _jobs(folder: Path) -> list[Path]:
    """Folders under a sweep's that are runs, finished or not, in the order of their numbers."""
    if not folder.is_dir():
        return []
    inside = [path for path in folder.iterdir() if path.is_dir()]
    jobs = [
        path for path in inside if (path / results.FILE).is_file() or (path / ".hydra").is_dir()
    ]
    return sorted(jobs, key=_order)


def _is_unfinished(folder: Path) -> bool:
    """Whether a folder without results is that of a run."""
    return (folder / ".hydra").is_dir()


def _order(path: Path) -> tuple[str, int, str]:
    number = int(path.name) if path.name.isdecimal() else -1
    return str(path.parent), number, path.name
