"""Writes checkpoints completely or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from nmt.utils.errors import RunError
from nmt.utils.files import write_atomically


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes each checkpoint to a temporary file, then renames this file.

    If the process is killed or the disk is full, the previous checkpoint is still intact.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        """Writes a checkpoint; raises RunError if that fails."""
        try:
            write_atomically(Path(path), lambda stream: torch.save(checkpoint, stream))
        except OSError as error:
            raise RunError(f"{path}: cannot write the checkpoint: {error.strerror}") from error
