"""The checkpoints that a run is made of, as results.json, a later checkpoint and W&B name them."""

from __future__ import annotations

import hashlib
from typing import Any

from nmt.config.schema import to_containers
from nmt.models.checkpoint import Checkpoint
from nmt.report.runs import FinishedRun
from nmt.report.wandb.lineage import artifact_path, log_sources, run_path
from nmt.run.run import Run
from nmt.training.wandb_logger import ResumableWandbLogger

LONGEST_NAME = 100  # letters of a name in what tells configurations apart


def named(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint by its file, its content and, where it is known there, its place in W&B."""
    found: dict[str, Any] = {
        "checkpoint": str(checkpoint.path.resolve()),
        "sha256": checkpoint.sha256,
    }
    logged, artifact = checkpoint.wandb, checkpoint.artifact
    if logged and artifact is None and checkpoint.config.logger.log_checkpoints:
        artifact = artifact_path(logged, checkpoint.path.stem)
    if logged or artifact:
        found["wandb"] = {"run": run_path(logged) if logged else None, "artifact": artifact}
    return found


def initial_source(run: Run) -> dict[str, Any] | None:
    """The checkpoint that a training started from, or that of the model that is evaluated; None without one.

    A run's own checkpoint knows it, so that its file is not needed again.
    """
    if run.initial is not None:
        return {**_described(run.initial), "configuration": _configuration(run.initial)}
    return None if run.checkpoint is None else run.checkpoint.initial


def log_checkpoints_used(run: Run) -> None:
    """Stores in its W&B configuration which checkpoints a run evaluates, or starts from; on rank 0."""
    if not isinstance(run.logger, ResumableWandbLogger):
        return
    if run.trains:
        initial = initial_source(run)
        used = [] if initial is None else [initial]
    else:
        assert run.checkpoint is not None
        used = [_described(each) for each in (run.checkpoint, *run.others)]
    if used:
        log_sources(run.logger.experiment, [_logged(each) for each in used])


def _described(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint as `named`, with its update and the fingerprint of the text that it learnt from."""
    return {**named(checkpoint), "update": checkpoint.update, "text": checkpoint.fingerprint}


def _configuration(checkpoint: Checkpoint) -> str:
    """The name of a checkpoint's run, and a digest that runs share which differ by their seed alone."""
    name = checkpoint.config.name
    content = {"config": to_containers(checkpoint.config), "initial_checkpoint": checkpoint.initial}
    digest = hashlib.sha256(FinishedRun(name, content).group.encode()).hexdigest()
    return f"{name[:LONGEST_NAME]} {digest[:8]}"


def _logged(described: dict[str, Any]) -> dict[str, Any]:
    """The same as `log_sources` takes it."""
    place = described.get("wandb") or {"run": None, "artifact": None}
    return {**place, **{key: value for key, value in described.items() if key != "wandb"}}
