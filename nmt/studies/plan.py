"""The runs of a study, each composed and checked as `nmt.train` would compose it."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from nmt.cli.composition import register_configs
from nmt.cli.explain import explain
from nmt.config import Config, StudyClaim, StudyRuns, StudySection, TextConfig
from nmt.config.keys import completed, is_within
from nmt.config.renamed import upgrade
from nmt.config.schema import RUNTIME_KEYS, TrainConfig, to_containers
from nmt.config.study_checks import load_study
from nmt.config.validation import load
from nmt.evaluation.scores import choose_scores
from nmt.report.runs import flatten
from nmt.utils.commands import command_line, override, quoted
from nmt.utils.errors import InputError

# Names of a run, and what is measured in addition: they change neither weights nor translations.
NEUTRAL = ("name", "experiment", "regime", "evaluation.scores", *RUNTIME_KEYS)

# Keys that say what is decided, and how, in one place.
HERE = tuple(f"study.{key}=" for key in ("only", "root", "take", "accept", "missing", "plan_only"))
ROOT = "data.root"


@dataclass(frozen=True)
class PlannedRun:
    """A run that a study needs.

    Attributes:
        group: of `study.runs`, the first that needs it.
        seed: its seed.
        overrides: what is typed after `python -m nmt.train`, the seed last.
        config: checked.
    """

    group: str
    seed: int
    overrides: tuple[str, ...]
    config: Config

    @cached_property
    def identity(self) -> str:
        return identity(to_containers(self.config))

    @property
    def command(self) -> str:
        """What makes the run again, and not in this place: without the folder of its text."""
        typed = [word for word in self.overrides if not word.startswith(f"{ROOT}=")]
        return command_line("train", typed)


@dataclass(frozen=True)
class SweepPoint:
    """One combination of a group's sweep.

    Attributes:
        values: by key.
        run: of the sweep.
        runs: of the group, if this point is chosen.
    """

    values: dict[str, Any]
    run: PlannedRun
    runs: tuple[PlannedRun, ...]


@dataclass(frozen=True)
class RunGroup:
    """A group of `study.runs`.

    Attributes:
        settings: its section.
        seeds: of its runs.
        runs: one for each seed; none where a sweep must choose first.
        points: of its sweep; none where it has none.
    """

    name: str
    settings: StudyRuns
    seeds: tuple[int, ...]
    runs: tuple[PlannedRun, ...]
    points: tuple[SweepPoint, ...]


@dataclass(frozen=True)
class Study:
    """A study that can be run: its section checked, its groups composed.

    Attributes:
        name: of the option of the group `study`.
        section: its keys.
        claims: that are to be decided, by name.
        groups: that they need, by name.
        typed: what of the command line says which study it is, and not how it is run here.
    """

    name: str
    section: StudySection
    claims: dict[str, StudyClaim]
    groups: dict[str, RunGroup]
    typed: tuple[str, ...]


def plan_of(composed: DictConfig) -> Study:
    """The study of a composed configuration.

    Raises:
        InputError: naming the key of the study that is wrong, or the group whose runs would be refused.
    """
    section = load_study(composed)
    register_configs(["train"])
    name = str(HydraConfig.get().runtime.choices.get("study") or "study")
    claims = {
        name: claim
        for name, claim in section.claims.items()
        if not section.only or name in section.only
    }
    needed = {group for claim in claims.values() for group in claim.runs}
    groups = {
        name: _group(name, runs, section) for name, runs in section.runs.items() if name in needed
    }
    for key, claim in claims.items():
        _check_test_set(f"study.claims.{key}", claim, groups)
        choose_scores([claim.score], f"study.claims.{key}.score")
    typed = (word for word in HydraConfig.get().overrides.task if not word.startswith(HERE))
    return Study(name, section, claims, groups, tuple(typed))


def identity(config: dict[str, Any]) -> str:
    """Digest of what of a run's configuration, stored or planned, decides its weights and translations.

    A text is known by the names of its files, wherever they lie; what they hold, `text` of results.json says.
    """
    whole = completed(TrainConfig, upgrade(config))
    data = whole["data"]
    data |= {name: _known_by(data[name]) for name in ("train", "valid", "in_domain")}
    data["test"] = {name: _known_by(text) for name, text in data["test"].items()}
    kept = {path: value for path, value in flatten(whole).items() if not is_within(path, NEUTRAL)}
    text = json.dumps(kept, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _known_by(text: dict[str, Any]) -> dict[str, Any]:
    """A text's section, files named one by one and those of `files` in the same way.

    >>> one = _known_by({"source": "/a/train.en.xz", "target": "/a/train.fr.xz", "optional": True})
    >>> one == _known_by({"files": ["train"]}), one == _known_by({"files": ["train", "more"]})
    (True, False)
    """
    whole = completed(TextConfig, text)
    sides = [whole.pop(side) for side in ("source", "target")]
    if all(sides) and not whole["files"]:
        names = {re.sub(r"\.\w+(\.(gz|xz|zst))?$", "", Path(side).name) for side in sides}
        whole["files"] = sorted(names)
    if whole["alignment"]:
        whole["alignment"] = Path(whole["alignment"]).name
    del whole["optional"]
    return whole


def _group(name: str, settings: StudyRuns, section: StudySection) -> RunGroup:
    root = () if section.root is None else (override(ROOT, section.root),)
    typed = (*root, *section.overrides, *settings.overrides)
    _check_overrides(f"study.runs.{name}.overrides", typed)
    seeds = tuple(section.seeds if settings.seeds is None else settings.seeds)
    if not settings.sweep:
        return RunGroup(name, settings, seeds, _seeded(name, typed, seeds), ())
    points = []
    for values in itertools.product(*settings.sweep.values()):
        point = dict(zip(settings.sweep, values, strict=True))
        chosen = [f"{key}={_literal(value)}" for key, value in point.items()]
        _check_overrides(f"study.runs.{name}.sweep", chosen)
        run, *runs = _seeded(name, (*typed, *chosen), (settings.sweep_seed, *seeds))
        points.append(SweepPoint(point, run, tuple(runs)))
    return RunGroup(name, settings, seeds, (), tuple(points))


def _seeded(group: str, typed: Sequence[str], seeds: Sequence[int]) -> tuple[PlannedRun, ...]:
    """The runs of some seeds, composed once: they differ by nothing else unless a key refers to it."""
    composed = _compose(f"study.runs.{group}", typed)
    refers = "${seed}" in json.dumps(OmegaConf.to_container(composed), default=str)
    configs: list[Config] = []
    for seed in seeds:
        composed.seed = seed
        try:
            known = None if refers or not configs else dataclasses.replace(configs[0], seed=seed)
            configs.append(known or load(composed.copy()))
        except InputError as refusal:
            raise InputError(f"study.runs.{group}: {refusal}") from refusal
    return tuple(
        PlannedRun(group, seed, (*typed, f"seed={seed}"), config)
        for seed, config in zip(seeds, configs, strict=True)
    )


def _compose(where: str, typed: Sequence[str]) -> DictConfig:
    loader = GlobalHydra.instance().config_loader()
    searched = [
        override
        for override in HydraConfig.get().overrides.hydra
        if override.lstrip("+").startswith("hydra.searchpath=")
    ]
    try:
        config = loader.load_configuration("train", [*searched, *typed], RunMode.RUN)
    except (HydraException, OmegaConfBaseException) as error:
        raise InputError(f"{where}: {explain(error, TrainConfig, typed)}") from error
    with open_dict(config):
        del config["hydra"]
    assert isinstance(config, DictConfig)
    return config


def _check_overrides(where: str, typed: Sequence[str]) -> None:
    """Refuses what is the study's to say: seeds, folders, launchers; and several values for a key."""
    for text in typed:
        try:
            (override,) = OverridesParser.create().parse_overrides([text])
        except HydraException as error:
            raise InputError(f"{where}: {explain(error, TrainConfig, [text])}") from error
        name = override.key_or_group
        if name in ("seed", "resume") or name == "hydra" or name.startswith(("hydra.", "hydra/")):
            raise InputError(f"{where}: {text}: {name} is the study's to say; leave it out")
        if override.is_sweep_override():
            raise InputError(f"{where}: {text}: more than one value; use sweep, or several groups")


def _literal(value: Any) -> str:
    """A value as Hydra's grammar writes it.

    >>> _literal([1, "a b", None, True, 0.002])
    "[1,'a b',null,true,0.002]"
    """
    if isinstance(value, list):
        return f"[{','.join(map(_literal, value))}]"
    if isinstance(value, str):
        return quoted(value)
    return (
        str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
    )


def _check_test_set(where: str, claim: StudyClaim, groups: dict[str, RunGroup]) -> None:
    for name in claim.runs:
        group = groups[name]
        run = group.points[0].run if group.points else group.runs[0]
        stressed = bool(run.config.stress.lengths)  # whose sets are named when they are made
        if claim.set not in run.config.data.test and not stressed:
            known = ", ".join(run.config.data.test) or "none"
            raise InputError(
                f"{where}.set={claim.set}: {name} has no such test set; it has {known}"
            )
