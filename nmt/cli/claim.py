"""Locks the run folder of a command, from before Hydra writes into it until the command ends."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from nmt.cli.composition import named_by_time
from nmt.utils.environment import rank
from nmt.utils.errors import InputError
from nmt.utils.files import NO_ROOM, check_utf8
from nmt.utils.locks import FILE, FolderLock


class NotClaimed(BaseException):
    """A folder could not be claimed.

    Not an `Exception`: Hydra turns those of callbacks into warnings.
    """

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


@dataclass
class Claim:
    """A folder that is locked by this process.

    Attributes:
        folder: its path.
        lock: its lock.
        composed: its subfolder to which Hydra writes the composed configuration (`.hydra`).
        stood: paths that existed before: entries of the folder and of `composed`, and what that is in.
        above: folders that it lies in and that were made for it, the innermost first.
    """

    folder: Path
    lock: FolderLock
    composed: Path
    stood: frozenset[Path]
    above: Sequence[Path] = ()

    def undo(self, log: str) -> None:
        """Removes what Hydra has written for a command that was refused, and nothing else.

        Where the command has left something of its own, nothing is removed.

        Args:
            log: name of the log, without `.log`.
        """
        made = [self.composed / f"{part}.yaml" for part in PARTS]
        made += [self.folder / f"{log}.log", self.folder / FILE]
        folders = [self.composed, *self.composed.parents]
        folders = folders[: folders.index(self.folder) + 1]
        if set(_entries(self.folder)) - self.stood - {*made, *folders}:
            return
        with contextlib.suppress(OSError):  # a folder that someone stands in, or writes to, stays
            for path in made:
                if path not in self.stood:
                    path.unlink(missing_ok=True)
            for path in (*folders, *self.above):
                if path not in self.stood and path.is_dir():
                    path.rmdir()


PARTS = ("config", "hydra", "overrides")
_claims: list[Claim] = []  # of this process: one, or none


class ClaimFolder(Callback):
    """A Hydra callback that locks the run folder of a command outside of sweeps.

    A folder named after the time of the start gets `-1`, `-2`, … appended where it exists already. Any
    other folder must not be in use.

    Args:
        command: its name.
    """

    def __init__(self, command: str) -> None:
        self.command = command

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Refuses a sweep without jobs, and one whose folder cannot be made, by the key."""
        folder = Path(str(config.hydra.sweep.dir))
        try:
            given = OmegaConf.select(config, "hydra.sweeper.params") or {}
            swept = [f"{key}={values}" for key, values in given.items()]
            _refuse_empty([*swept, *config.hydra.overrides.task])
            if not str(config.hydra.sweep.dir):
                raise InputError("hydra.sweep.dir=: names no folder")
            check_utf8("hydra.sweep.dir", folder)
            folder.mkdir(parents=True, exist_ok=True)
        except InputError as error:
            raise NotClaimed(error) from error
        except OSError as error:
            said = f"hydra.sweep.dir={folder}: cannot be made ({error.strerror})"
            raise NotClaimed(error if error.errno in NO_ROOM else InputError(said)) from error

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        if rank():
            return
        try:
            folder = Path(str(config.hydra.run.dir))
            _refuse_file(config.get("resume"))
            _refuse_outside(config.hydra)
            given = OmegaConf.to_container(config.hydra.run, resolve=False)
            assert isinstance(given, dict)
            ours = "${run_folder:" in str(given["dir"])
            if not str(config.hydra.run.dir):  # an unset variable of a shell, perhaps
                raise InputError(f"{'resume' if ours else 'hydra.run.dir'}=: names no folder")
            above = [path for path in folder.absolute().parents if not os.path.isdir(path)]
            new = ours and named_by_time(self.command, config.get("resume"))
            if new:
                folder = _make_another(folder)
            with read_write(config.hydra.run), open_dict(config.hydra.run):
                config.hydra.run.dir = str(folder)
            _claims.append(claim(folder, config.hydra.get("output_subdir"), above, new=new))
        except Exception as error:
            raise NotClaimed(error) from error


def _refuse_outside(hydra: DictConfig) -> None:
    """Refuses names for which Hydra would write outside of the run folder."""
    composed, log = hydra.get("output_subdir"), OmegaConf.select(hydra, "job.name") or ""
    if composed is not None and (os.path.isabs(composed) or ".." in Path(composed).parts):
        raise InputError(
            f"hydra.output_subdir={composed}: must be a folder inside the run folder, or null"
        )
    if os.path.basename(log) != log:
        raise InputError(f"hydra.job.name={log}: names the log, and cannot be in another folder")


def _refuse_file(resume: str | None) -> None:
    """Refuses a checkpoint to resume from: a run goes on from the newest one of its folder."""
    if resume not in (None, "auto") and os.path.isfile(resume):
        path = Path(resume)
        folder = path.parent.parent if path.parent.name == "checkpoints" else "RUN_FOLDER"
        raise InputError(f"resume={path}: a file; name the run folder, resume={folder}")


def _refuse_empty(typed: Sequence[str]) -> None:
    """Refuses an override that sweeps over no value: Hydra would run nothing and report success."""
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    for override in parser.parse_overrides(list(typed)):
        if override.is_discrete_sweep() and next(override.sweep_iterator(), None) is None:
            raise InputError(f"{override.input_line}: no value to sweep over")


@contextlib.contextmanager
def claims() -> Iterator[None]:
    """Releases at the end what was claimed inside; raises the error of a claim that failed."""
    try:
        yield
    except NotClaimed as failed:
        raise failed.reason from None
    finally:
        while _claims:
            _claims.pop().lock.release()


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[Claim | None]:
    """The claim of the folder of this process; that of a job of a sweep is made now.

    None on ranks other than the first. Raises InputError where another process works there.
    """
    if rank() or _claims:
        yield next(iter(_claims), None)
        return
    made = claim(folder)
    try:
        yield made
    finally:
        made.lock.release()


def claim(
    folder: Path, composed: str | None = None, above: Sequence[Path] = (), *, new: bool = False
) -> Claim:
    """Claims a folder, `new` if this process has just made it. Raises as `FolderLock.take`.

    Args:
        composed: its subfolder of the composed configuration, where there is one.
        above: folders that it lies in and that are made for it.
    """
    there = os.path.isdir(folder) and not new  # False where the name is too long
    lock = FolderLock.take(folder)
    folder = folder.absolute()
    inside = folder / (composed or ".hydra")
    stood: set[Path] = set()
    if there:
        stood = {*_entries(folder), *_entries(inside)}
        stood |= {path for path in (inside, *inside.parents) if path.exists()}
    return Claim(folder, lock, inside, frozenset(stood), above)


def _make_another(folder: Path) -> Path:
    """Makes a folder of this name, or of the first free one that begins so."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count():
        named = folder.with_name(f"{folder.name}-{number}") if number else folder
        with contextlib.suppress(FileExistsError):
            named.mkdir(parents=True)  # a command that was refused may have removed those above
            return named
    raise AssertionError


def _entries(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())
