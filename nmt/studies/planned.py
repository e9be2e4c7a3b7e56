"""`PlannedRun`: the overrides of a run that a study needs, and the identity that finished runs match."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from nmt.config import BaselineConfig, Config, TextConfig
from nmt.config.keys import completed, flatten, is_within
from nmt.config.schema import (
    INITIAL_CHECKPOINT,
    REVERSE_CHECKPOINT,
    RUNTIME_KEYS,
    TrainConfig,
    to_containers,
)
from nmt.utils.code import code_fingerprint
from nmt.utils.commands import command_line, literal, override, override_key

ROOT = "data.root"

# Names of a run, and what is measured in addition: they change neither weights nor translations.
NEUTRAL = ("name", "experiment", "regime", "evaluation.scores", *RUNTIME_KEYS)
# Keys that earlier versions did not have: left out of a digest where they are null, so that runs are still found
ADDED = (INITIAL_CHECKPOINT,)


@dataclass(frozen=True)
class PlannedRun:
    """A run of `nmt.train` or `nmt.baseline` that a study needs.

    Attributes:
        group: of `study.runs`, the first that needs it.
        seed: its seed.
        overrides: what is typed after the command, the seed last.
        config: checked; of an evaluation, that of the model.
        made_by: the command, without `nmt.`.
    """

    group: str
    seed: int
    overrides: tuple[str, ...]
    config: Config
    made_by: str = "train"

    @cached_property
    def identity(self) -> str:
        """Equal for runs of the same configuration."""
        return identity(to_containers(self.config))

    @property
    def folder_name(self) -> str:
        """The name of the run's folder, which depends on the configuration and the code."""
        told = hashlib.sha256(f"{self.identity} {code_fingerprint()}".encode()).hexdigest()
        return f"{self.group}-seed{self.seed}-{told[:8]}"

    @property
    def typed(self) -> list[str]:
        """The overrides that make the run here, or resume it."""
        return [*self.overrides, *(["resume=auto"] if self.made_by == "train" else [])]

    @property
    def command(self) -> str:
        """The command that repeats the run elsewhere."""
        return command_line(self.made_by, self._shown)

    @property
    def _shown(self) -> list[str]:
        """The overrides without the folder of its text."""
        return [word for word in self.overrides if override_key(word) != ROOT]


@dataclass(frozen=True)
class PlannedEvaluation(PlannedRun):
    """A run of `nmt.evaluate` that a study needs.

    Attributes:
        models: by the file of each checkpoint, what tells one model from another.
        reverse: in the same way, the model of the other direction that aligns the pairs, if there is one.
    """

    models: Mapping[Path, str] = field(kw_only=True)
    reverse: Mapping[Path, str] = field(default_factory=dict, kw_only=True)

    @cached_property
    def identity(self) -> str:
        """Equal for evaluations of the same models for which the same is typed.

        A finished one has it in the name of its folder: its configuration is that of its model.
        """
        told = json.dumps([self._shown, list(self.models.values()), *self.reverse.values()])
        return f"{self.group}-seed{self.seed}-{hashlib.sha256(told.encode()).hexdigest()[:8]}"

    @property
    def folder_name(self) -> str:
        return f"{self.identity}-{code_fingerprint()[:8]}"

    @property
    def typed(self) -> list[str]:
        reverse = [override(REVERSE_CHECKPOINT, str(file)) for file in self.reverse]
        return [self._checkpoint(list(map(str, self.models))), *reverse, *super().typed]

    @property
    def command(self) -> str:
        named = self._checkpoint(["FILE"] if len(self.models) == 1 else ["FILE", "..."])
        reverse = [override(REVERSE_CHECKPOINT, "FILE") for _ in self.reverse]
        return command_line(self.made_by, [named, *reverse, *self._shown])

    @staticmethod
    def _checkpoint(files: list[str]) -> str:
        return (
            override("checkpoint", files[0]) if len(files) == 1 else f"checkpoint={literal(files)}"
        )


def evaluation_identity(folder: Path) -> str:
    """As `PlannedEvaluation.identity`, of a finished evaluation."""
    return folder.name.rpartition("-")[0]


def identity(config: dict[str, Any]) -> str:
    """Digest of the part of a configuration, stored or planned, that decides weights and translations.

    Texts enter by the names of their files, without folders; `text` of results.json identifies the
    content.
    """
    baseline = "phrase_based" in config
    whole = completed(BaselineConfig if baseline else TrainConfig, config)
    if baseline:
        whole = {section: whole[section] for section in BaselineConfig.sections}
    data = whole["data"]
    data |= {name: _known_by(data[name]) for name in ("train", "valid", "in_domain")}
    data["test"] = {name: _known_by(text) for name, text in data["test"].items()}
    kept = {
        path: value
        for path, value in flatten(whole).items()
        if not (is_within(path, NEUTRAL) or (path in ADDED and value is None))
    }
    text = json.dumps(kept, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _known_by(text: dict[str, Any]) -> dict[str, Any]:
    """A text's section, files named one by one and those of `files` in the same way.

    >>> one = _known_by({"source": "/a/train.en.xz", "target": "/a/train.fr.xz", "optional": True})
    >>> one == _known_by({"files": ["train"]}), one == _known_by({"files": ["train", "more"]})
    (True, False)
    >>> ["skip" in _known_by({"files": ["train"], "skip": number}) for number in (None, 500)]
    [False, True]
    """
    whole = completed(TextConfig, text)
    sides = [whole.pop(side) for side in ("source", "target")]
    if all(sides) and not whole["files"]:
        names = {re.sub(r"\.\w+(\.(gz|xz|zst))?$", "", Path(side).name) for side in sides}
        whole["files"] = sorted(names)
    if whole["alignment"]:
        whole["alignment"] = Path(whole["alignment"]).name
    del whole["optional"]
    if whole["skip"] is None:  # a key that the texts of earlier runs did not have
        del whole["skip"]
    return whole
