"""Keys of earlier versions: conversion of stored configurations, and messages for typed keys."""

from __future__ import annotations

import copy
from typing import Any

# old key: the one that has its place, or None where nothing has
RENAMED: dict[str, str | None] = {
    "data.filters.script": None,
    "data.filters.word_characters": None,
    "data.in_order": None,
    "evaluation.alignment.yardstick": "evaluation.alignment.statistical_aligners",
    "evaluation.alignment.yardstick_pairs": "evaluation.alignment.statistical_aligner_pairs",
    "optimizer.name": "optimizer._target_",
    "optimizer.rho": "optimizer.options.rho",
    "optimizer.eps": "optimizer.options.eps",
    "optimizer.beta1": "optimizer.options.betas",
    "optimizer.beta2": "optimizer.options.betas",
}


def upgrade(stored: dict[str, Any]) -> dict[str, Any]:
    """A stored configuration, of whatever version, under the keys of this one; `stored` stays."""
    config = copy.deepcopy(stored)
    if "name" in config.get("optimizer", {}):
        config["optimizer"] = _optimizer(config["optimizer"])
    model = config.get("model", {})
    if "alignment" in model and not (model.get("scoring") or {}).get("_target_"):
        model["alignment"] = None  # a size of nothing, which a model without attention stored
    if "_target_" in model:
        _parts(model)
    trainer = config.get("trainer", {})
    if trainer.get("strategy", "auto") != "auto":
        trainer["strategy"] = "ddp"  # what any other stood for
    for old, new in RENAMED.items():
        *path, name = old.split(".")
        section = _section(config, path)
        if name in section:
            value = section.pop(name)
            if new is not None:
                *path, name = new.split(".")
                _section(config, path)[name] = value
    return config


def renamed_to(path: str) -> str | None:
    """What to type in place of a key of an earlier version; None if there was no such key."""
    if path not in RENAMED:
        return None
    new = RENAMED[path]
    return f"renamed, type {new}" if new else "removed; leave it out"


def _optimizer(old: dict[str, Any]) -> dict[str, Any]:
    """The section `optimizer` of a version that knew two update rules and three schedules by name."""
    if old["name"] == "adam":
        options = {"betas": [old["beta1"], old["beta2"]], "eps": old["eps"]}
    else:
        options = {"rho": old["rho"], "eps": old["eps"]}
    return {
        "_target_": f"torch.optim.{'Adam' if old['name'] == 'adam' else 'Adadelta'}",
        "options": options,
        "schedule": {"_target_": f"nmt.models.optimizer.{old['schedule']}"},
        **{name: old[name] for name in ("lr", "clip_norm", "warmup", "decay_from")},
    }


def _parts(model: dict[str, Any]) -> None:
    """Names the encoder, the unit and the attention where a version had no choice of them."""
    attends = model.get("alignment") is not None
    encoder = "BidirectionalEncoder" if attends else "ForwardEncoder"
    for part, target in {
        "encoder": f"nmt.layers.encoder.{encoder}",
        "unit": "nmt.layers.gated_unit.GatedUnit",
        "attention": "nmt.layers.attention.Attention" if attends else None,
    }.items():
        model.setdefault(part, {"_target_": target})


def _section(config: dict[str, Any], path: list[str]) -> dict[str, Any]:
    for name in path:
        config = config.get(name) or {}
    return config
