"""Composes and checks the runs of a study, group by group."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from nmt.cli.composition import register_configs
from nmt.cli.explain import COMPOSING, explain
from nmt.config import Config, EvaluateConfig, StudyClaim, StudyRuns, StudySection
from nmt.config.keys import is_within
from nmt.config.overrides import typed_paths
from nmt.config.schema import RUNTIME_KEYS, SCHEMAS
from nmt.config.study import COMMANDS
from nmt.config.study_checks import load_study
from nmt.config.validation import load, validate_keys
from nmt.data.sources.optional import leave_out_absent
from nmt.evaluation.scores import REGISTERED, choose_scores, score_of_name
from nmt.studies.planned import ROOT, PlannedRun
from nmt.utils.commands import literal, override, override_key
from nmt.utils.errors import InputError

# Keys that say how the study is run, and not which study it is.
HERE = tuple(f"study.{key}" for key in ("only", "take", "accept", "missing", "plan_only"))


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
        seeds: of its runs, or of the models that they evaluate.
        runs: one for each seed; none where a sweep must choose, or models be trained, first.
        points: of its sweep; none where it has none.
        typed: for its evaluations, but for their checkpoints.
        sets: test sets that its runs will have; None: known when they are made.
        unlinked: those of them that are known to have no gold alignments.
        attends: whether its models have attention.
        scores: keys of those that its test sets get.
        languages: of its text, source first; none of evaluations.
    """

    name: str
    settings: StudyRuns
    seeds: tuple[int, ...]
    runs: tuple[PlannedRun, ...] = ()
    points: tuple[SweepPoint, ...] = ()
    typed: tuple[str, ...] = ()
    sets: tuple[str, ...] | None = None
    unlinked: tuple[str, ...] = ()
    attends: bool = True
    scores: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of runs that a claim is about."""
        return 1 if self.settings.together else len(self.seeds)


@dataclass(frozen=True)
class Study:
    """A study that can be run: its section checked, its groups composed.

    Attributes:
        name: of the option of the group `study`.
        section: its keys, the claims among them.
        groups: of runs, by name.
        typed: what of the command line says which study it is, and not how it is run here; DIR
            stands for a folder.
    """

    name: str
    section: StudySection
    groups: dict[str, RunGroup]
    typed: tuple[str, ...]

    @property
    def wanted(self) -> dict[str, RunGroup]:
        """The groups whose runs are to be made: those that `study.only` needs, or all."""
        runs = self.section.runs
        needed = {group for claim in self.section.only for group in self.section.claims[claim].runs}
        for group in tuple(needed):
            needed |= {models for models in (runs[group].of, runs[group].reverse) if models}
        return {name: group for name, group in self.groups.items() if not needed or name in needed}


def plan_of(composed: DictConfig) -> Study:
    """The study of a composed configuration.

    Raises:
        InputError: naming the key of the study that is wrong, or the group whose runs would be refused.
    """
    section = load_study(composed)
    register_configs(COMMANDS)
    name = str(HydraConfig.get().runtime.choices.get("study") or "study")
    # what is evaluated comes after what is trained
    order = sorted(section.runs, key=lambda group: section.runs[group].command == "evaluate")
    made: dict[str, RunGroup] = {}
    for group in order:
        made[group] = _group(group, section, made)
    groups = {group: made[group] for group in section.runs}
    for key, claim in section.claims.items():
        _check_test_set(f"study.claims.{key}", claim, groups)
        _check_score(f"study.claims.{key}.score", claim, groups)
    return Study(name, section, groups, tuple(_typed()))


def _typed() -> Iterator[str]:
    """See `Study.typed`."""
    given = HydraConfig.get()
    outside = {source.provider for source in given.runtime.config_sources}
    if "command-line" in outside:
        yield from ("--config-dir", "DIR")
    if "hydra.searchpath in command-line" in outside:
        yield "hydra.searchpath=[DIR]"
    for word in given.overrides.task:
        if override_key(word) == "study.root":
            yield "study.root=DIR"
        elif override_key(word) not in HERE:
            yield word


def _group(name: str, section: StudySection, made: dict[str, RunGroup]) -> RunGroup:
    settings = section.runs[name]
    if settings.command == "evaluate":
        reverse = None if settings.reverse is None else made[settings.reverse]
        return _evaluated(name, section, made[settings.of], reverse)
    typed = (*_root(section), *section.overrides, *settings.overrides)
    _check_overrides(f"study.runs.{name}.overrides", typed, settings.command)
    seeds = tuple(section.seeds if settings.seeds is None else settings.seeds)
    if not settings.sweep:
        runs = _seeded(name, typed, seeds, settings.overrides, settings.command)
        return RunGroup(name, settings, seeds, runs, **_known(runs[0]))
    points = []
    for values in itertools.product(*settings.sweep.values()):
        point = dict(zip(settings.sweep, values, strict=True))
        chosen = [f"{key}={literal(value)}" for key, value in point.items()]
        _check_overrides(f"study.runs.{name}.sweep", chosen)
        given = (settings.sweep_seed, *seeds)  # a point of a grid cannot leave a key out
        first, *others = _seeded(name, (*typed, *chosen), given, own=())
        points.append(SweepPoint(point, first, tuple(others)))
    return RunGroup(name, settings, seeds, points=tuple(points), **_known(points[0].run))


def _evaluated(
    name: str, section: StudySection, models: RunGroup, reverse: RunGroup | None
) -> RunGroup:
    """A group of evaluations: the configurations of their models, with the overrides applied."""
    where = f"study.runs.{name}.overrides"
    settings = section.runs[name]
    shared = [word for word in section.overrides if _says_how_it_is_run(word)]
    typed = (*_root(section), *shared, *settings.overrides)
    _check_overrides(where, typed, "evaluate")
    composed = _compose(where, (*typed, "checkpoint=FILE"), "evaluate")
    try:
        paths = typed_paths(typed, EvaluateConfig)
        validate_keys(composed)
    except InputError as refusal:
        raise InputError(f"{where}: {refusal}") from refusal
    replaced = composed.evaluation.attention
    if replaced != "as_trained" and not models.attends:
        raise InputError(
            f"{where}: evaluation.attention={replaced}: {models.name} has no attention"
        )
    if reverse is not None:
        _check_reverse(f"study.runs.{name}.reverse={reverse.name}", models, reverse)
    seeds = models.seeds if settings.seeds is None else tuple(settings.seeds)
    added = [path.split(".")[2] for path in paths if path.startswith("data.test.")]
    known = "data.test" not in paths and not composed.stress.lengths
    sets: tuple[str, ...] | None = None
    if models.sets is not None and known:
        sets = tuple(composed.sets) or tuple(dict.fromkeys([*models.sets, *added]))
    unlinked = tuple(each for each in models.unlinked if known and each not in added)
    named = "evaluation.scores" in paths
    scores = _scores(composed.evaluation.scores, where) if named else models.scores
    return RunGroup(
        name,
        settings,
        seeds,
        typed=typed,
        sets=sets,
        unlinked=unlinked,
        attends=models.attends,
        scores=scores,
    )


def _check_reverse(where: str, models: RunGroup, reverse: RunGroup) -> None:
    """Refuses a reverse group without attention or of other languages."""
    if reverse.languages != models.languages[::-1]:
        theirs, ours = (" to ".join(each) for each in (reverse.languages, models.languages[::-1]))
        raise InputError(f"{where}: translates {theirs}, not {ours}")
    for group in (models, reverse):
        if not group.attends:
            raise InputError(f"{where}: {group.name} has no attention to read links from")


def _root(section: StudySection) -> tuple[str, ...]:
    return () if section.root is None else (override(ROOT, section.root),)


def _says_how_it_is_run(word: str) -> bool:
    """Whether an override of all runs applies to evaluations; the others are applied in training."""
    name = override_key(word)
    return is_within(name, RUNTIME_KEYS) and is_within(name, EvaluateConfig.overridable)


def _known(run: PlannedRun) -> dict[str, Any]:
    """What a run tells of its `RunGroup`; no sets where joined sentences are tested."""
    tests = run.config.data.test
    return {
        "sets": None if run.config.stress.lengths else tuple(tests),
        "unlinked": tuple(
            name for name, text in tests.items() if not (text.alignment or text.grammar)
        ),
        "attends": run.made_by == "train" and run.config.model.alignment is not None,
        "scores": _scores(run.config.evaluation.scores, f"study.runs.{run.group}"),
        "languages": tuple(run.config.data.languages),
    }


def _scores(names: Sequence[str] | None, where: str) -> tuple[str, ...]:
    return tuple(score.key for score in choose_scores(names, f"{where}: evaluation.scores"))


def _seeded(
    group: str,
    typed: Sequence[str],
    seeds: Sequence[int],
    own: Sequence[str],
    command: str = "train",
) -> tuple[PlannedRun, ...]:
    """The runs of some seeds; composed once, since they differ in other keys only by reference to the seed.

    The `own` overrides of a group must have an effect; those of all groups need not have one here.
    """
    composed = _compose(f"study.runs.{group}", typed, command)
    refers = "${seed}" in json.dumps(OmegaConf.to_container(composed), default=str)
    configs: list[Config] = []
    for seed in seeds:
        composed.seed = seed
        try:
            known = None if refers or not configs else dataclasses.replace(configs[0], seed=seed)
            config = known or load(composed.copy())
            leave_out_absent(config.data)
            configs.append(config)
        except InputError as refusal:
            raise InputError(f"study.runs.{group}: {refusal}") from refusal
    return tuple(
        PlannedRun(group, seed, (*typed, f"seed={seed}"), config, command)
        for seed, config in zip(seeds, configs, strict=True)
    )


def _compose(where: str, typed: Sequence[str], command: str) -> DictConfig:
    loader = GlobalHydra.instance().config_loader()
    searched = [
        word
        for word in HydraConfig.get().overrides.hydra
        if override_key(word) == "hydra.searchpath"
    ]
    try:
        config = loader.load_configuration(command, [*searched, *typed], RunMode.RUN)
    except COMPOSING as error:
        raise InputError(f"{where}: {explain(error, SCHEMAS[command], typed)}") from error
    with open_dict(config):
        del config["hydra"]
    assert isinstance(config, DictConfig)
    return config


def _check_overrides(where: str, typed: Sequence[str], command: str = "train") -> None:
    """Refuses overrides that the study sets itself (seeds, models, folders, launchers), and sweeps."""
    for text in typed:
        try:
            (override,) = OverridesParser.create().parse_overrides([text])
        except HydraException as error:
            raise InputError(f"{where}: {explain(error, SCHEMAS[command], [text])}") from error
        name = override.key_or_group
        if (
            name in ("seed", "resume", "checkpoint")
            or name == "hydra"
            or name.startswith(("hydra.", "hydra/"))
        ):
            raise InputError(f"{where}: {text}: {name} is the study's to say; leave it out")
        if override.is_sweep_override():
            raise InputError(f"{where}: {text}: more than one value; use sweep, or several groups")


def _check_test_set(where: str, claim: StudyClaim, groups: dict[str, RunGroup]) -> None:
    for name in claim.runs:
        sets = groups[name].sets
        if sets is not None and claim.set not in sets:
            known = ", ".join(sets) or "none"
            raise InputError(
                f"{where}.set={claim.set}: {name} has no such test set; it has {known}"
            )


def _check_score(where: str, claim: StudyClaim, groups: dict[str, RunGroup]) -> None:
    score = score_of_name(claim.score, where)
    for name in claim.runs:
        if score.needs_attention and not groups[name].attends:
            raise InputError(f"{where}={claim.score}: {name} has no attention")
        registered = score is REGISTERED.get(claim.score)
        if registered and score.section == "alignment" and claim.set in groups[name].unlinked:
            raise InputError(f"{where}={claim.score}: {claim.set} has no gold alignments")
        if score.only_kept and score.key not in groups[name].scores:
            raise InputError(
                f"{where}={claim.score}: {name} will not have it; "
                f"add evaluation.scores=[default,{claim.score}] to its overrides"
            )
