"""The trained model that a training starts from: its weights, and with them its vocabularies."""

from __future__ import annotations

from typing import Any

from nmt.config import Config
from nmt.config.keys import flatten, is_within
from nmt.config.schema import INITIAL_CHECKPOINT, named_initial, to_containers
from nmt.data.vocabulary import Vocabularies
from nmt.inference.load import read_members
from nmt.models.checkpoint import Checkpoint
from nmt.training.early_checks import own_code
from nmt.utils.commands import literal
from nmt.utils.errors import InputError

# What weights and vocabularies are made for, and what of it only a training looks at
EQUAL = ("model", "tokenizer", "data.languages", "data.reverse_source")
FREE = ("model.init", "model.dropout", "model.recurrence", "model.kernels", "model.graphs")


def initial_checkpoint(config: Config) -> Checkpoint | None:
    """The checkpoint that a new training starts from; None where it draws its weights.

    Averaged weights (`callbacks=ema`) are what such a checkpoint gives, as to every command.

    Raises:
        InputError: for a file that is no checkpoint or names code that is not trusted, and for a
            model, vocabularies or languages of another kind, naming every key that differs.
    """
    file = named_initial(config)
    if file is None:
        return None
    [checkpoint] = read_members(file, [*config.trust, *own_code(config)])
    _refuse_other_kind(file, _kind(config), _kind(checkpoint.config))
    return checkpoint


def given_vocabularies(config: Config, checkpoint: Checkpoint | None) -> Vocabularies | None:
    """The vocabularies that a training has from another one; None where it learns them from its text.

    Args:
        config: of the training.
        checkpoint: that it starts from, or one of its own; None without either.
    """
    return None if named_initial(config) is None or checkpoint is None else checkpoint.vocabularies


def _kind(config: Any) -> dict[str, Any]:
    """The keys that weights and vocabularies depend on, dotted; null says as much as no key."""
    return {
        key: value
        for key, value in flatten(to_containers(config)).items()
        if is_within(key, EQUAL) and not is_within(key, FREE) and value not in (None, {})
    }


def _refuse_other_kind(file: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    differing = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    if differing:
        here, there = (
            " ".join(
                f"{key}={literal(kind[key])}" if key in kind else f"~{key}" for key in differing
            )
            for kind in (ours, theirs)
        )
        raise InputError(
            f"{INITIAL_CHECKPOINT}={file}: trained with other values than {here}\n"
            f"its weights and vocabularies need {there}"
        )
