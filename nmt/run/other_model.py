"""A second model of a run: one that it is compared with, or starts from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nmt.config.validation import load
from nmt.inference.trained import TrainedModel, from_checkpoints, read_members
from nmt.models.checkpoint import Checkpoint
from nmt.run.run import Run
from nmt.utils.errors import InputError


def other_model(run: Run, file: Any, key: str) -> TrainedModel:
    """A second model or ensemble for a run, which uses the devices and batch size of the run.

    Args:
        file: the checkpoint, or several, as the key `checkpoint` takes them.
        key: the key of the configuration that names the file, for messages.

    Raises:
        InputError: for a file that is no checkpoint.
    """
    members = other_members(file, run.config.trust, key)
    config = load(members[0].config.copy(), training=False)
    config.trainer, config.search.batch_size = run.config.trainer, run.config.search.batch_size
    return from_checkpoints(members, config)


def other_members(file: Any, trust: Sequence[str], key: str) -> list[Checkpoint]:
    """Checkpoints as `read_members` gives them, typed under another key than `checkpoint`."""
    try:
        return read_members(file, trust)
    except InputError as refusal:
        said = str(refusal)
        if said.startswith("checkpoint="):
            said = f"{key}={said.removeprefix('checkpoint=')}"
        raise InputError(said) from refusal
