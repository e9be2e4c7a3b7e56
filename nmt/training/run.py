"""`Run`: the state that the steps of a run share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.loggers import Logger

from nmt.config import Config
from nmt.models.checkpoint import Checkpoint
from nmt.training.folder import RunFolder
from nmt.training.signals import Stop
from nmt.utils.environment import git_commit


@dataclass
class Run:
    """A run at work.

    Attributes:
        config: checked.
        folder: what it writes into.
        checkpoint: what it resumes, or evaluates; None where there is none.
        initial: whose weights and vocabularies a new training takes; None where it takes none.
        stop: handles the signals that stop a training.
        commit: that the code lay at when the run was started or resumed here; None: not known.
        text: fingerprints of what it learns from (`training`) and of each test set, by name (`test`).
        callbacks: of `callbacks`, for a training.
        loggers: where scores go.
        trainer: of its updates and tests, once there is one.
        others: further members of the ensemble that it evaluates.
        typed: overrides of the command line, of a training those that it was started with among them.
    """

    config: Config
    folder: RunFolder
    checkpoint: Checkpoint | None = None
    initial: Checkpoint | None = None
    stop: Stop | None = None
    commit: str | None = field(default_factory=git_commit)
    text: dict[str, Any] | None = None
    callbacks: Sequence[pl.Callback] = ()
    loggers: Sequence[Logger] = ()
    trainer: pl.Trainer | None = None
    others: Sequence[Checkpoint] = ()
    typed: Sequence[str] = ()
