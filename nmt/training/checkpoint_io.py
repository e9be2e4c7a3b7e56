"""Writes checkpoints completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from nmt.utils.errors import RunError, first_line
from nmt.utils.files import write_atomically


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes each checkpoint to a temporary file, then renames this file.

    If the process is killed or the disk is full, the previous checkpoint is still intact. After a
    validation with a new best score, best.ckpt and last.ckpt have the same content. The file that is
    written second is then a hard link to the first. If a later checkpoint replaces one of the two files,
    the other file does not change.
    """

    def __init__(self) -> None:
        super().__init__()
        self._state: Any = (
            None  # number of the update, progress of the loops, and keys of the last checkpoint
        )
        self._written: Path | None = None

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        """Writes a checkpoint.

        Raises:
            RunError: if the checkpoint cannot be written.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        state = [checkpoint["global_step"], checkpoint.get("loops"), sorted(checkpoint)]
        if state == self._state and self._written and try_hard_link(self._written, path):
            return
        try:
            write_atomically(path, lambda stream: torch.save(checkpoint, stream))
        except (OSError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            intact = "; the previous checkpoint is intact" if path.exists() else ""
            raise RunError(f"{path}: cannot write the checkpoint: {reason}{intact}") from error
        self._state = state
        self._written = path


def try_hard_link(written: Path, path: Path) -> bool:
    """Makes `path` a hard link to `written`; returns False if the file system has no hard links."""
    link = path.with_name(f".{path.name}.link")
    try:
        link.unlink(missing_ok=True)
        os.link(written, link)
        os.replace(link, path)
    except OSError:
        return False
    return True
