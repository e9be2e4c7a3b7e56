"""Validation of a study beyond types: claims must name its runs, and rules fit their statistics."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config.study import FIGURES, LENGTHS, StudyClaim, StudyRuns, StudySection
from nmt.config.validation import validate_keys
from nmt.utils.errors import InputError, first_line


def load_study(config: DictConfig) -> StudySection:
    """The checked study of a composed configuration, its runs and claims as `StudyRuns` and `StudyClaim`.

    Raises:
        InputError: naming the key.
    """
    study = config.study
    if not study.runs or not study.claims:
        raise InputError("study: none is chosen; type +study=NAME, such as +study=bahdanau")
    for section, schema in (("runs", StudyRuns), ("claims", StudyClaim)):
        for name, entry in study[section].items():
            where = f"study.{section}.{name}"
            if not re.fullmatch(r"\w[\w-]*", str(name), re.ASCII):
                raise InputError(f"{where}: a name is of letters, digits, '_' and '-'")
            typed = _typed(entry, schema, where)
            if schema is StudyClaim and "set" not in entry:
                typed.set = study.set
            study[section][name] = typed
    validate_keys(config)
    loaded = OmegaConf.to_object(study)
    assert isinstance(loaded, StudySection)
    for name, runs in loaded.runs.items():
        _check_runs(f"study.runs.{name}", runs, loaded)
    for name, claim in loaded.claims.items():
        _check_claim(f"study.claims.{name}", claim, loaded)
    unknown = sorted(set(loaded.only) - set(loaded.claims))
    if unknown:
        known = ", ".join(loaded.claims)
        raise InputError(f"study.only=[{unknown[0]}]: no such claim; there are {known}")
    return loaded


def _typed(entry: Any, schema: type, where: str) -> DictConfig:
    """An entry with the types of its schema, all that must be given being there."""
    if not isinstance(entry, DictConfig):
        names = ", ".join(field.name for field in dataclasses.fields(schema))
        raise InputError(f"{where}: takes the keys {names}")
    try:
        merged = OmegaConf.merge(OmegaConf.structured(schema), entry)
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        full = getattr(error, "full_key", None) or ""
        inside = f".{full}" if full and not str(full).startswith("study.") else ""
        raise InputError(f"{where}{inside}: {first_line(error)}") from error
    assert isinstance(merged, DictConfig)
    for field in dataclasses.fields(schema):
        if OmegaConf.is_missing(merged, field.name):
            raise InputError(f"{where}.{field.name}: must be given ({field.metadata['meaning']})")
    return merged


def _check_runs(where: str, runs: StudyRuns, study: StudySection) -> None:
    if runs.command == "evaluate":
        _check_evaluated(where, runs, study)
    elif wrong := [
        key for key in ("of", "together", "reverse") if getattr(runs, key) not in (None, False)
    ]:
        raise InputError(f"{where}.{wrong[0]}: is for command=evaluate, not for {runs.command}")
    elif runs.sweep and runs.command != "train":
        raise InputError(f"{where}.sweep: is for command=train, not for {runs.command}")
    chosen = study.seeds if runs.seeds is None else runs.seeds
    if not chosen:
        raise InputError(f"{where}.seeds=[]: must name a seed")
    if len(set(chosen)) < len(chosen):
        raise InputError(f"{where}.seeds={chosen}: must name each seed once")
    for name, values in runs.sweep.items():
        if not isinstance(values, list) or not values:
            raise InputError(f"{where}.sweep.{name}={values}: must be a list of values")


def _check_evaluated(where: str, runs: StudyRuns, study: StudySection) -> None:
    """Refuses an evaluation of what is not trained here."""
    if runs.sweep:
        raise InputError(f"{where}.sweep: is for command=train, not for evaluate")
    if runs.together and runs.reverse is not None:
        raise InputError(f"{where}.reverse: is for single models, not for those of together=true")
    trained = {name: group.seeds for name, group in study.runs.items() if group.command == "train"}
    wanted = runs.seeds
    named: dict[str, Any] = {"of": runs.of} | (
        {} if runs.reverse is None else {"reverse": runs.reverse}
    )
    for key, models in named.items():
        if models not in trained:
            raise InputError(
                f"{where}.{key}={models}: must name a group that is trained: {', '.join(trained)}"
            )
        seeds = study.seeds if trained[models] is None else trained[models]
        wanted = seeds if wanted is None else wanted
        for seed in wanted:
            if seed not in seeds:
                raise InputError(f"{where}.seeds: {models} has no seed {seed}")


def _check_claim(where: str, claim: StudyClaim, study: StudySection) -> None:
    if not claim.claim.strip():
        raise InputError(f"{where}.claim: empty; it is the sentence that is decided")
    for name in claim.runs:
        if name not in study.runs:
            known = ", ".join(study.runs)
            raise InputError(f"{where}.runs: no group of runs '{name}'; study.runs has {known}")
    most = 2 if claim.statistic in FIGURES else 1
    if not 1 <= len(claim.runs) <= most or len(set(claim.runs)) < len(claim.runs):
        wanted = "one group, or two that differ" if most == 2 else "one group"
        raise InputError(
            f"{where}.runs=[{', '.join(claim.runs)}]: {claim.statistic} is of {wanted}"
        )
    if claim.statistic in LENGTHS and claim.range != "all":
        raise InputError(
            f"{where}.range={claim.range}: {claim.statistic} is of all lengths; leave it out"
        )
    if claim.statistic in LENGTHS and claim.rule not in ("above", "below"):
        raise InputError(f"{where}.rule={claim.rule}: a length in words is above or below a margin")
    if claim.rule in ("equal", "no_fall") and claim.margin <= 0:
        raise InputError(f"{where}.margin={claim.margin}: must be above 0 for rule={claim.rule}")
