"""Checkpoints that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from nmt.utils.errors import RunError, first_line
from nmt.utils.files import write_atomically


class AtomicCheckpointIO(TorchCheckpointIO):
    """Lightning's plugin, but for writing: a file beside the checkpoint is filled, then renamed.

    A kill or a full disk at any moment leaves the checkpoint of before.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        """Writes a checkpoint.

        Raises:
            RunError: where it cannot be written.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_atomically(path, lambda stream: torch.save(checkpoint, stream))
        except (OSError, RuntimeError) as error:  # torch turns an OSError into a RuntimeError
            reason = getattr(error, "strerror", None) or first_line(error)
            raise RunError(
                f"{path}: cannot write the checkpoint: {reason}; the one before is intact"
            ) from error
