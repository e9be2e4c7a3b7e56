"""Finished runs that a study can use, and how long they took."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.config.schema import named_initial
from nmt.evaluation import results
from nmt.report.finding import find_runs, read_run
from nmt.report.runs import FinishedRun
from nmt.studies.plan import RunGroup, Study, SweepPoint
from nmt.studies.planned import (
    PlannedEvaluation,
    PlannedRun,
    evaluation_identity,
    identity,
)
from nmt.utils.code import code_fingerprint
from nmt.utils.errors import InputError

RUNS = "runs"  # folder of a study that its own runs lie in

Fingerprints = Mapping[str, Any]  # `text` of results.json


@dataclass(frozen=True)
class ExistingRun:
    """A finished run.

    Attributes:
        run: as it lies on disk.
        taken: whether it is not one of the study's own.
    """

    run: FinishedRun
    taken: bool

    @cached_property
    def identity(self) -> str:
        """As `PlannedRun.identity`; raises InputError where it is no such configuration."""
        assert self.run.folder is not None
        if self.is_evaluation:
            return evaluation_identity(self.run.folder)
        try:
            return identity(self.run.config)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{self.run.folder / results.FILE}: config: is not one of nmt.train ({error!r:.80})"
            ) from error

    @property
    def is_evaluation(self) -> bool:
        """Whether `nmt.evaluate` made it: its configuration is that of its model."""
        return bool(self.run.results.get("sources"))

    @property
    def checkpoint(self) -> Path:
        """Of the model that it trained."""
        assert self.run.folder is not None
        return self.run.folder / "checkpoints" / "best.ckpt"

    @property
    def same_code(self) -> bool:
        return self.run.results.get("code") == code_fingerprint()

    @property
    def development(self) -> float | None:
        """Its best development NLL per word; None where there is none."""
        value = (self.run.results.get("valid") or {}).get("nll_per_word")
        return None if value is None else float(value)

    @property
    def minutes(self) -> float | None:
        """Minutes of its training over all resumes, and of what came after; None if not known."""
        hours = (self.run.results.get("train") or {}).get("hours")
        if hours is None or self.is_evaluation:
            return None
        assert self.run.folder is not None
        best, end = self.checkpoint, self.run.folder / results.FILE
        after = end.stat().st_mtime - best.stat().st_mtime if best.is_file() else 0.0
        return 60 * float(hours) + max(0.0, after) / 60


class FoundRuns:
    """The runs of a study that there are.

    Args:
        study: what is asked for.
        runs: finished ones, the study's own first.
        text_of: fingerprints of the text of a configuration, as results.json has them.
    """

    def __init__(
        self, study: Study, runs: Sequence[ExistingRun], text_of: Callable[[Config], Fingerprints]
    ) -> None:
        self.study = study
        self.runs = runs
        self._text_of = text_of
        self._by_identity: dict[str, list[ExistingRun]] = {}
        for each in runs:
            self._by_identity.setdefault(each.identity, []).append(each)

    def of(self, planned: PlannedRun) -> ExistingRun | None:
        """The run that stands for a planned one; None where it must be made."""
        alike = self._by_identity.get(planned.identity, [])
        same = [each for each in alike if each.same_code and self._has_text(planned, each)]
        if not same and self.study.section.accept == "configuration":
            same = alike
        return next(iter(same), None)

    def chosen(self, group: RunGroup) -> SweepPoint | None:
        """The point of a group's sweep with the lowest development NLL; None until all are there."""
        scores = [self.development(point) for point in group.points]
        known = [score for score in scores if score is not None]
        if not known or len(known) < len(scores):
            return None
        return group.points[scores.index(min(known))]

    def development(self, point: SweepPoint) -> float | None:
        """The best development NLL per word of a point's run; None where there is none."""
        found = self.of(point.run)
        return None if found is None else found.development

    def needed(self, group: RunGroup) -> list[PlannedRun]:
        """The runs of a group that are known by now: a sweep's first, then those of its best point."""
        return [*(point.run for point in group.points), *self.final(group)]

    def final(self, group: RunGroup) -> tuple[PlannedRun, ...]:
        """The runs that a claim is about; none while a sweep has not chosen, or a model is missing."""
        if group.settings.of is not None:
            return self._evaluations(group)
        best = self.chosen(group)
        return group.runs if best is None else best.runs

    def _evaluations(self, group: RunGroup) -> tuple[PlannedRun, ...]:
        """The evaluations of the models that there are; of an ensemble, when all are there."""
        there = self._models(group.settings.of, group.seeds)
        reverse = {run.seed: model for run, model in self._models(group.settings.reverse)}
        if group.settings.together:
            sets = [there] if len(there) == len(group.seeds) else []
        elif group.settings.reverse is not None:
            sets = [[each] for each in there if each[0].seed in reverse]
        else:
            sets = [[each] for each in there]
        return tuple(
            PlannedEvaluation(
                group.name,
                members[0][0].seed,
                group.typed,
                members[0][0].config,
                "evaluate",
                models={model.checkpoint: _known_as(model) for _, model in members},
                reverse={
                    model.checkpoint: _known_as(model)
                    for run, _ in members
                    if (model := reverse.get(run.seed)) is not None
                },
            )
            for members in sets
        )

    def _models(
        self, group: str | None, seeds: Sequence[int] | None = None
    ) -> list[tuple[PlannedRun, ExistingRun]]:
        """The trained models of a group, of some of its seeds or of all; none of no group."""
        runs = () if group is None else self.final(self.study.groups[group])
        wanted = [run for run in runs if seeds is None or run.seed in seeds]
        return [(run, model) for run in wanted if (model := self.of(run)) is not None]

    def missing(self) -> list[PlannedRun]:
        """The runs that must be made, each once, in the order of the groups."""
        wanted = [run for group in self.study.wanted.values() for run in self.needed(group)]
        once = {run.identity: run for run in reversed(wanted)}
        return [run for run in reversed(once.values()) if self.of(run) is None]

    def of_group(self, group: RunGroup) -> list[ExistingRun]:
        """The finished runs of a group, in the order of its seeds."""
        return [found for run in self.final(group) if (found := self.of(run)) is not None]

    def _has_text(self, planned: PlannedRun, found: ExistingRun) -> bool:
        if isinstance(planned, PlannedEvaluation):  # its models have it
            return True
        return found.run.results.get("text") == self._text_of(planned.config)


def _known_as(model: ExistingRun) -> str:
    """Identifies a trained model by its configuration, code and text."""
    told = {key: model.run.results.get(key) for key in ("code", "text")}
    return f"{model.identity} {json.dumps(told, sort_keys=True)}"


def count_runs(folder: Path) -> int:
    """The runs in a study's folder, finished or begun."""
    return sum(path.is_dir() for path in (folder / RUNS).glob("*/.hydra"))


def find_existing(
    study: Study, folder: Path, text_of: Callable[[Config], Fingerprints] | None = None
) -> FoundRuns:
    """The finished runs in a study's folder and in those of `study.take`.

    Args:
        text_of: as `FoundRuns`; None: the text is prepared, or taken from the cache.

    Raises:
        InputError: where `study.take` names nothing, or a run cannot be read.
    """
    own = [read_run(path.parent) for path in sorted((folder / RUNS).glob(f"*/{results.FILE}"))]
    taken: list[FinishedRun] = []
    if study.section.take:
        try:
            taken = find_runs(study.section.take).runs
        except InputError as refusal:
            raise InputError(str(refusal).replace("runs:", "study.take:", 1)) from refusal
    here = {run.folder.resolve() for run in own if run.folder is not None}
    others = [run for run in taken if run.folder is not None and run.folder.resolve() not in here]
    known = [*_known(own, taken=False), *_known(others, taken=True)]
    return FoundRuns(study, known, text_of or prepared_text)


def _known(runs: Iterable[FinishedRun], *, taken: bool) -> list[ExistingRun]:
    """Runs of the commands that a study knows; evaluations only of its own, which it has named."""
    found = [ExistingRun(run, taken) for run in runs if not run.external]
    return [
        each
        for each in found
        if (not taken if each.is_evaluation else {"model", "phrase_based"} & set(each.run.config))
    ]


_texts: dict[str, Fingerprints] = {}


def prepared_text(config: Config) -> Fingerprints:
    """Fingerprints of the text that a run of this configuration would learn from and be tested on."""
    from nmt.data.prepare import prepare
    from nmt.run.initial import given_vocabularies, initial_checkpoint

    key = f"{config.data}\n{config.tokenizer}\n{named_initial(config)}"
    if key not in _texts:
        vocabularies = given_vocabularies(config, initial_checkpoint(config))
        text = prepare(config.data, config.tokenizer, False, vocabularies)
        _texts[key] = text.identified()
    return _texts[key]
