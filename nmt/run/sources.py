"""The checkpoints that a run is made of, as results.json and a later checkpoint name them."""

from __future__ import annotations

import hashlib
from typing import Any

from nmt.config.schema import to_containers
from nmt.models.checkpoint import Checkpoint
from nmt.report.runs import FinishedRun
from nmt.run.run import Run

LONGEST_NAME = 100  # letters of a name in what tells configurations apart


def named(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint by its file and its content."""
    return {"checkpoint": str(checkpoint.path.resolve()), "sha256": checkpoint.sha256}


def initial_source(run: Run) -> dict[str, Any] | None:
    """The checkpoint that a training started from, or that of the model that is evaluated; None without one.

    A run's own checkpoint knows it, so that its file is not needed again.
    """
    if run.initial is not None:
        return {**_described(run.initial), "configuration": _configuration(run.initial)}
    return None if run.checkpoint is None else run.checkpoint.initial


def _described(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint as `named`, with its update and the fingerprint of the text that it learnt from."""
    return {**named(checkpoint), "update": checkpoint.update, "text": checkpoint.fingerprint}


def _configuration(checkpoint: Checkpoint) -> str:
    """The name of a checkpoint's run, and a digest that runs share which differ by their seed alone."""
    name = checkpoint.config.name
    content = {"config": to_containers(checkpoint.config), "initial_checkpoint": checkpoint.initial}
    digest = hashlib.sha256(FinishedRun(name, content).group.encode()).hexdigest()
    return f"{name[:LONGEST_NAME]} {digest[:8]}"
