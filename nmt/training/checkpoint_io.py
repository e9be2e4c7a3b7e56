"""Writes checkpoints completely or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from nmt.utils.files import write_atomically


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes each checkpoint to a temporary file, then renames this file.

    If the process is killed or the disk is full, the previous checkpoint is still intact.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        write_atomically(Path(path), lambda stream: torch.save(checkpoint, stream))
