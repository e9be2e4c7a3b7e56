"""Instantiates the parts of a model that its configuration names, such as unit and attention."""

from __future__ import annotations

from typing import Any

import torch
from hydra.utils import get_class, get_object, instantiate
from torch import nn

from nmt.config import ModelConfig
from nmt.config.keys import is_within
from nmt.config.schema import SCORINGS, scoring_of
from nmt.config.targets import named_by
from nmt.layers import Attention
from nmt.layers.scoring import compared_sizes
from nmt.utils.errors import InputError


def chosen_class(
    model: ModelConfig, part: str, kind: type[nn.Module], default: type[nn.Module]
) -> Any:
    """The class that `model.<part>` names, or `default` where it names none.

    Raises:
        InputError: where it cannot be found, is not of a kind, or is given keys that it does not take.
    """
    named = getattr(model, part) or {}
    target = named.get("_target_")
    further = sorted(set(named) - {"_target_"})
    if further and part != "attention":  # whose class takes them
        raise InputError(f"model.{part}.{further[0]}: {target or default.__name__} has no such key")
    if not target:
        return default
    where = f"model.{part}._target_={target}"
    with named_by(where):
        found = get_class(target)
    if not issubclass(found, kind):
        raise InputError(f"{where}: not a subclass of {kind.__module__}.{kind.__name__}")
    return found


def build_attention(model: ModelConfig, annotation: int) -> Attention:
    """The attention of `model.attention` over annotations of a size, scored by `model.scoring`.

    Raises:
        InputError: where no scoring is chosen, or a class cannot be found or made.
    """
    target = scoring_of(model)
    if not target:
        name = model._target_.rpartition(".")[2]
        raise InputError(f"scoring=none: {name} needs a scoring: {SCORINGS}")
    if model.alignment is None:
        raise InputError(f"model.alignment=null: {target} needs the size of the alignment space")
    with named_by(f"model.scoring._target_={target}"):
        sizes = compared_sizes(get_object(target), model.hidden, annotation, model.alignment)
        scoring: nn.Module = instantiate(
            model.scoring, **dict(zip(("query_size", "key_size"), sizes, strict=True))
        )
        if not is_within(target, ["nmt"]):
            try_scoring(scoring, *sizes)
    options = {name: value for name, value in (model.attention or {}).items() if name != "_target_"}
    attention: type[Attention] = chosen_class(model, "attention", Attention, Attention)
    with named_by(f"model.attention._target_={attention.__module__}.{attention.__name__}"):
        return attention(
            model.hidden,
            annotation,
            model.alignment,
            scoring,
            init_exponent=model.projection_init_exponent,
            lr_exponent=model.projection_lr_exponent,
            **options,
        )


def try_scoring(scoring: nn.Module, query_size: int, key_size: int) -> None:
    """Calls a scoring function once: scores (B, K, S) of a wrong shape could be broadcast.

    Raises:
        ValueError: saying what shape its scores have, and should have.
    """
    query, keys = torch.zeros(2, 3, query_size), torch.zeros(2, 4, key_size)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            scores = scoring(query, keys)
    except RuntimeError as error:
        # one that looks at values is called when there are some
        if not (query.is_meta and "meta" in str(error)):
            raise
        return
    shape = tuple(getattr(scores, "shape", ()))
    if shape != (2, 3, 4):
        raise ValueError(
            f"its scores of a query {tuple(query.shape)} and keys {tuple(keys.shape)} must have "
            f"the shape (2, 3, 4), not {shape}"
        )
