"""What results.json says of a run: its training, its command, and what it was made with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from nmt.config.schema import class_name, scoring_of, to_containers
from nmt.evaluation import results
from nmt.inference.model import Model
from nmt.models.checkpoint import Checkpoint
from nmt.training.run import Run
from nmt.utils.commands import command_line, override_key
from nmt.utils.devices import name_of, processor
from nmt.utils.files import sha256


def stored_outcome(run: Run) -> dict[str, Any]:
    """What the checkpoint that a run evaluates says of its training, and where that was made."""
    checkpoint, trainer = run.checkpoint, run.trainer
    assert checkpoint is not None
    assert trainer is not None
    sources = {
        **path_and_hash(checkpoint),
        **({"others": [path_and_hash(each) for each in run.others]} if run.others else {}),
        "device": name_of(trainer.strategy.root_device),
        "devices": trainer.world_size,
        "precision": str(trainer.precision),
    }
    unfinished = {"train": {"updates": checkpoint.update}, "valid": {}, "history": []}
    return unfinished | checkpoint.outcome | {"sources": sources}


def path_and_hash(checkpoint: Checkpoint) -> dict[str, Any]:
    """A checkpoint by its file and its content."""
    return {"checkpoint": str(checkpoint.path.resolve()), "sha256": sha256(checkpoint.path)}


def describe_run(run: Run, **described: Any) -> dict[str, Any]:
    """The content of results.json, without the scores.

    Args:
        run: the run.
        described: of its training (`train`, `valid`, `history`), and of its model, as `describe_model`
            gives it.
    """
    config = run.config
    return {
        "name": config.name,
        "experiment": config.experiment,
        "regime": config.regime,
        "max_length": config.data.max_length,
        "seed": config.seed,
        "overrides": list(run.overrides),
        "command": rerun_command(run.overrides),
        "commit": run.commit,
        "processor": processor(),
        "text": run.text and run.text.identified(),
        "versions": results.versions(),
        **described,
    }


def describe_model(model: Model) -> dict[str, Any]:
    """What results.json says of a model of this program."""
    config = model.config
    return {
        "title": class_name(config.model._target_),
        "model": config.model._target_.rpartition(".")[2],
        "scoring": (scoring_of(config.model) or "none").rpartition(".")[2],
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "config": to_containers(config),
    }


def rerun_command(overrides: Sequence[str]) -> str:
    """The command that repeats a run in a new folder, also of a job of a sweep or a resumed run.

    The folder and Hydra's own settings are left out, but for where Hydra finds the user's options.
    """
    hydra = HydraConfig.get()
    searched = [word for word in hydra.overrides.hydra if override_key(word) == "hydra.searchpath"]
    for source in hydra.runtime.config_sources:
        if source.provider == "command-line":
            folder = Path(source.path)
            here = folder.is_relative_to(hydra.runtime.cwd)
            own = folder.relative_to(hydra.runtime.cwd) if here else folder
            searched += ["--config-dir", str(own)]
    return command_line(str(hydra.job.name), [*searched, *overrides])
