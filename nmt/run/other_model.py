"""A second model that a command is told of, read as the first is used."""

from __future__ import annotations

from typing import Any

from nmt.config.validation import load
from nmt.inference.trained import TrainedModel, from_checkpoints, read_members
from nmt.run.run import Run


def other_model(run: Run, file: Any) -> TrainedModel:
    """The model of a checkpoint, or the ensemble of several, on the devices and in the batches of a run.

    Raises:
        InputError: for a file that is no checkpoint.
    """
    members = read_members(file, run.config.trust)
    config = load(members[0].config.copy(), training=False)
    config.trainer, config.search.batch_size = run.config.trainer, run.config.search.batch_size
    return from_checkpoints(members, config)
