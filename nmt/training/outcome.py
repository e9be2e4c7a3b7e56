"""Describes a run (its training, command, model, versions and scores), and writes results.json."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig

from nmt.config.commands import INITIAL_CHECKPOINT as INITIAL
from nmt.config.schema import class_name, scoring_of, to_containers
from nmt.data.preparation import Prepared
from nmt.evaluation import results
from nmt.evaluation.scores import choose_scores
from nmt.inference.held_out import Evaluated
from nmt.inference.model import Model
from nmt.models.checkpoint import Checkpoint
from nmt.report.runs import FinishedRun
from nmt.training.run import Run
from nmt.utils.devices import name_of, processor
from nmt.utils.environment import rank
from nmt.utils.files import sha256, write_json
from nmt.utils.quoting import command_line, override_key
from nmt.utils.text import without_home

log = logging.getLogger(__name__)


def stored_outcome(run: Run) -> dict[str, Any]:
    """Returns the checkpoint's outcome, and the checkpoints, device and precision of this evaluation."""
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
    unfinished: dict[str, Any] = {"valid": {}, "history": [], INITIAL: checkpoint.about["initial"]}
    unfinished["train"] = {"updates": checkpoint.update}
    return unfinished | checkpoint.about["outcome"] | {"sources": sources}


def path_and_hash(checkpoint: Checkpoint) -> dict[str, Any]:
    """Returns the path as typed and the SHA-256 of a checkpoint."""
    path = without_home(str(checkpoint.path))
    return {"checkpoint": path, "sha256": sha256(checkpoint.path)}


def describe_initial(run: Run) -> dict[str, Any] | None:
    """Describes the checkpoint that the training started from; returns None if it started with new weights.

    `configuration` is the same for checkpoints whose runs differ only in their seed, so that reports put runs
    that started from them into one group.
    """
    if run.initial is None:
        return run.checkpoint.about["initial"] if run.checkpoint else None
    name = run.initial.config.name
    content = {"config": to_containers(run.initial.config), INITIAL: run.initial.about["initial"]}
    group = FinishedRun(name, content).group.encode()
    configuration = f"{name} {hashlib.sha256(group).hexdigest()[:8]}"
    return {**path_and_hash(run.initial), "configuration": configuration}


def describe_run(
    run: Run, evaluated: Evaluated, text: Prepared | None = None, **described: Any
) -> dict[str, Any]:
    """Returns the content of results.json.

    Args:
        run: the run.
        evaluated: the result of `nmt.inference.held_out.evaluate`, whose scores are described. Their values are in
            scores.csv.
        text: the text of a training run.
        described: entries about the training (see `Training.finish`) and about the model (see
            `describe_model`).
    """
    config = run.config
    present = {row["score"] for row in evaluated.scores}
    chosen = choose_scores(config.evaluation.scores, language=config.data.languages[1])
    content: dict[str, Any] = {
        "name": config.name,
        "experiment": config.experiment,
        "regime": config.regime,
        "max_length": config.data.max_length,
        "seed": config.seed,
        "overrides": without_home(list(run.overrides)),
        "command": without_home(rerun_command(run.overrides)),
        "commit": run.commit,
        "processor": processor(),
        "text": text and text.identified(),
        "versions": results.versions(),
        **described,
        "scores": {score.key: score.description() for score in chosen if score.key in present},
    }
    return dict(results.as_json(content))


def write_results(folder: Path, content: dict[str, Any]) -> None:
    """Writes results.json, on rank 0 only. This file marks the run as finished, so it is written last."""
    if rank() == 0:
        write_json(folder / results.FILE, content)
        log.info("results: %s", folder)


def describe_model(model: Model) -> dict[str, Any]:
    """Returns the entries of results.json about a model of nmt."""
    config = model.config
    name = class_name(config.model._target_)
    return {
        "title": name,
        "model": name,
        "scoring": class_name(scoring_of(config.model) or "none"),
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "config": without_home(to_containers(config)),
    }


def rerun_command(overrides: Sequence[str]) -> str:
    """Returns the command that repeats a run in a new folder.

    The command also works for sweep jobs and resumed runs. Of Hydra's own settings, it contains only the search path.
    """
    hydra = HydraConfig.get()
    searched = [word for word in hydra.overrides.hydra if override_key(word) == "hydra.searchpath"]
    for source in hydra.runtime.config_sources:
        if source.provider == "command-line":
            folder = Path(source.path)
            if folder.is_relative_to(hydra.runtime.cwd):
                folder = folder.relative_to(hydra.runtime.cwd)
            searched += ["--config-dir", str(folder)]
    return command_line(str(hydra.job.name), [*searched, *overrides])
