"""The checkpoint files of a run: `last`, `previous` and `best`, atomic and with checksums.

`last` first becomes `previous`, so that at any moment one of the two is a good one; `best` is a
copy.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from nmt.models.checkpoint import Checkpoint, checkpoint_errors, updates_of
from nmt.utils import files
from nmt.utils.errors import InputError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckpointFolder:
    """The folder `checkpoints/` of a run."""

    path: Path

    @property
    def last(self) -> Path:
        return self.path / "last.ckpt"

    @property
    def previous(self) -> Path:
        return self.path / "previous.ckpt"

    @property
    def best(self) -> Path:
        return self.path / "best.ckpt"

    def found(self) -> list[Path]:
        """The checkpoints that are there, whole or not."""
        return sorted(self.path.glob("*.ckpt"))

    def prepare(self) -> None:
        """Makes the folder.

        Raises:
            InputError: when the folder cannot be written to, or what is no file has a checkpoint's name.
        """
        for checkpoint in (self.last, self.previous, self.best):
            for path in (checkpoint, Path(f"{checkpoint}{files.CHECKSUM}")):
                if path.exists() and not path.is_file():
                    raise InputError(f"{path}: is not a file; move it away")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise InputError(f"{self.path}: cannot write there: {error.strerror}") from error

    def newest(self) -> Path | None:
        """The newest intact checkpoint, or None; a damaged one is skipped with a warning.

        Raises:
            InputError: where there are checkpoints and none is intact.
        """
        damaged: list[Path] = []
        for path in (self.last, self.previous):
            if not path.is_file():
                continue
            wrong = defect(path)
            if wrong is None:
                if damaged:
                    log.warning("resuming from %s instead", path)
                return path
            log.warning("%s", wrong)
            damaged.append(path)
        if damaged:
            names = ", ".join(map(str, damaged))
            raise InputError(f"{self.path.parent}: no checkpoint is intact: {names}")
        return None

    def make_room(self) -> None:
        """Renames `last` to `previous`; raises RunError where that fails."""
        if self.last.is_file():
            with checkpoint_errors(self.previous):
                files.rename(self.last, self.previous)

    def keep_best(self, checkpoint: Path | None = None) -> None:
        """Makes a checkpoint (`last`, unless another is given) the best one; raises RunError."""
        with checkpoint_errors(self.best):
            files.copy(checkpoint or self.last, self.best)

    def repair(self, found: Checkpoint) -> None:
        """Repairs what a killed process left, before a run is resumed. For rank 0.

        Args:
            found: the checkpoint to resume from. If it is `previous`, the damaged `last` is renamed to
                `last.ckpt.damaged`. If it is of the best validation and `best` is not its copy, the
                process was killed before copying, and the copy is made.
        """
        if found.path == self.previous:
            if self.last.exists():
                self.last.replace(f"{self.last}.damaged")
            Path(f"{self.last}{files.CHECKSUM}").unlink(missing_ok=True)
        best = found.progress.best
        is_best = best is not None and best["update"] == found.update
        if not is_best:
            return
        whole = self.best.is_file() and defect(self.best) is None
        if not (whole and updates_of(self.best) == found.update):
            self.keep_best(found.path)


def defect(path: Path) -> str | None:
    """What is wrong with a checkpoint, or None if it is intact."""
    try:
        files.verify(path)
    except InputError as error:
        return str(error)
    return f"{path} is damaged: not a checkpoint" if updates_of(path) is None else None
