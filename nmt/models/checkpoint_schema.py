"""Schema of the content of a checkpoint, which may come from a stranger."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

import torch
from pydantic import Field, InstanceOf, TypeAdapter
from typing_extensions import TypedDict

from nmt.config import Config
from nmt.models.build import build_model
from nmt.utils.errors import InputError
from nmt.utils.untrusted import Count, Number, bounded, check_against

Text = Annotated[str, Field(max_length=1000)]
MOST_SETTINGS = 100_000  # values of a stored configuration


class TrainFigures(TypedDict, total=False):
    """`nmt.training`: figures of the training."""

    updates: Number | None
    epochs: Number | None
    hours: Number | None
    device: Text | None
    nll_per_sentence: Number | None
    target_words_per_second: Number | None
    peak_memory: Number | None


class InitialCheckpoint(TypedDict):
    """`nmt.initial`: what a training started from."""

    checkpoint: str
    sha256: Text
    update: Count
    text: Text
    configuration: Text
    wandb: NotRequired[dict[str, Text | None] | None]


class StoredProgress(TypedDict, total=False):
    """`nmt.progress`."""

    history: list[dict[str, float | None]]
    best: dict[str, float | None] | None
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    stopped_early: bool


class StoredRun(TypedDict):
    """`nmt.wandb`: the W&B run that logs the training."""

    entity: Annotated[str, Field(max_length=200)] | None
    project: Annotated[str, Field(max_length=200)]
    run: Annotated[str, Field(max_length=200)]


class Stored(TypedDict):
    """The key `nmt` of a checkpoint."""

    format: int
    config: dict[str, Any]
    source_vocabulary: dict[str, Any]
    target_vocabulary: dict[str, Any]
    fingerprint: Annotated[str, Field(max_length=200)]
    progress: NotRequired[StoredProgress]
    dictionary: NotRequired[dict[str, str] | None]
    training: NotRequired[TrainFigures | None]
    text_files: NotRequired[dict[str, dict[str, str]] | None]
    wandb: NotRequired[StoredRun | None]
    typed: NotRequired[list[str]]
    initial: NotRequired[InitialCheckpoint | None]


class Content(TypedDict):
    """A checkpoint, as far as it is used by this program itself."""

    nmt: Stored
    global_step: Count
    state_dict: dict[str, InstanceOf[torch.Tensor]]


class TrainingState(TypedDict):
    """What else Lightning resumes a training from."""

    epoch: Count
    loops: dict[str, Any]
    callbacks: dict[str, Any]
    optimizer_states: list[dict[str, Any]]
    lr_schedulers: list[dict[str, Any]]


_CONTENT = TypeAdapter(Content)
_PROGRESS = TypeAdapter(StoredProgress)
_STATE = TypeAdapter(TrainingState)


def check_content(content: Any, where: str, size: int) -> None:
    """Checks types, ranges and nesting, and that every weight has its own bytes in the file.

    Args:
        content: of the file.
        where: the file, for the message.
        size: of the file in bytes.

    Raises:
        InputError: naming file and field.
    """
    check_against(content, _CONTENT, where)
    stored = content["nmt"]
    bounded(stored["config"], f"{where}: nmt.config", MOST_SETTINGS)
    for key in ("source_vocabulary", "target_vocabulary", "dictionary", "training", "typed"):
        bounded(stored.get(key), f"{where}: nmt.{key}", size)
    if stored["format"] == 1:
        states = content.get("callbacks")
        held = states.get("Checkpoints", {}) if isinstance(states, dict) else states
        check_against(held, _PROGRESS, where, "callbacks.Checkpoints")
    elif "progress" not in stored:
        raise InputError(f"{where}: key 'nmt.progress' is missing")
    progress = held if stored["format"] == 1 else stored["progress"]
    entries = [*progress.get("history", []), progress.get("best") or {"update": 0}]
    if any(not isinstance(entry.get("update"), int | float) for entry in entries):
        raise InputError(f"{where}: nmt.progress: a validation without its update")
    for name, weight in content["state_dict"].items():
        _check_weight(weight, f"{where}: state_dict.{name:.100}", size)


def check_state(content: dict[str, Any], where: str) -> None:
    """Checks that a training can be resumed from it; raises InputError naming file and field."""
    check_against(content, _STATE, where)


def check_shapes(
    weights: dict[str, torch.Tensor], config: Config, source_size: int, target_size: int
) -> None:
    """Holds the sizes of a configuration against the weights, before anything is allocated.

    Raises:
        InputError: naming the weight where one is missing, too many, or of another shape.
    """
    try:
        with torch.device("meta"):
            model = build_model(config, source_size, target_size)
    except (RuntimeError, OverflowError) as error:  # more entries than can be numbered
        raise InputError("nmt.config: its sizes are absurd") from error
    wanted = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    for name in sorted(wanted.keys() ^ weights.keys()):
        there = "is missing" if name in wanted else "belongs to no part of the model"
        raise InputError(f"the weights do not fit the model: state_dict.{name:.100} {there}")
    for name, shape in wanted.items():
        found = tuple(weights[name].shape)
        if found != shape:
            raise InputError(
                f"the weights do not fit the model: state_dict.{name} has the shape "
                f"{found}, its sizes say {shape}"
            )


def _check_weight(weight: torch.Tensor, where: str, size: int) -> None:
    plain = weight.layout == torch.strided and not weight.is_quantized and not weight.is_meta
    if not plain or not weight.is_floating_point():
        raise InputError(f"{where}: must be a plain tensor of floating-point numbers")
    if not weight.is_contiguous() or weight.numel() * weight.element_size() > size:
        raise InputError(f"{where}: the file does not hold all of its entries")
