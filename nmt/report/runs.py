"""`FinishedRun`: a run folder read back; the keys in which runs differ, and labels from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from nmt.config import EvaluationConfig
from nmt.config.keys import CONFIDENCE, flatten, is_within
from nmt.config.schema import INITIAL_CHECKPOINT, RUNTIME_KEYS
from nmt.evaluation import records, results, summary
from nmt.evaluation.scores import REGISTERED, choose_scores
from nmt.utils.commands import override_key
from nmt.utils.files import listed_digests

MISSING = object()
"""Stands for a key that a run's configuration does not have."""


@dataclass(frozen=True)
class FinishedRun:
    """One finished run, or the outputs of an outside system on the same test sets.

    Attributes:
        label: name in tables and figures, unique among the runs that are compared.
        results: content of `results.json` (nmt/evaluation/results.py documents its keys).
        folder: where it lies; none for an outside system.
        lines: sentence records held in memory by (subfolder, test set), the subfolder being
            `translations` or `alignments`; what is not here is read from the folder when it is
            asked for.
        stored: names in the folder of the test sets that have another here (`nmt.report.disambiguation`).
    """

    label: str
    results: dict[str, Any]
    folder: Path | None = None
    lines: Mapping[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    stored: Mapping[str, str] = field(default_factory=dict)
    _read: dict[str, list[dict[str, Any]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def external(self) -> bool:
        """Whether this is an outside system: hypotheses without a configuration."""
        return not self.config

    @property
    def config(self) -> dict[str, Any]:
        """The configuration the run was made with, as plain containers."""
        return self.results.get("config") or {}

    @property
    def overrides(self) -> list[str]:
        """What was typed on the command line."""
        return self.results.get("overrides") or []

    @property
    def sets(self) -> list[str]:
        """Names of the test sets that were scored, in the order of the configuration."""
        return list(self.results.get("test") or {})

    @property
    def seed(self) -> int | None:
        return self.results.get("seed", self.config.get("seed"))

    @cached_property
    def model(self) -> str | None:
        """SHA-256 of the checkpoint that was tested; None of several, and where it is not known."""
        sources = self.results.get("sources") or {}
        if sources or self.folder is None:
            return None if sources.get("others") else sources.get("sha256")
        digests = listed_digests(self.folder / "checkpoints" / "best.ckpt")
        return digests[0] if len(digests) == 1 else None

    @cached_property
    def flat(self) -> dict[str, Any]:
        """The configuration with dotted keys, lists kept whole: {"data.max_length": 50, ...}.

        Without those that are null or an empty dictionary, which say as much as keys that an
        earlier version did not have. A checkpoint that the training started from goes by its own
        configuration, not by its file: each seed has another one.
        """
        found = {k: v for k, v in flatten(self.config).items() if v is not None and v != {}}
        initial = self.results.get(INITIAL_CHECKPOINT)
        return found if initial is None else found | {INITIAL_CHECKPOINT: initial["configuration"]}

    @cached_property
    def group(self) -> str:
        """Equal for runs that differ by nothing but their seed (and by where they were run)."""
        if self.external:
            return self.label
        same = {name: value for name, value in self.flat.items() if not is_incidental(name)}
        return json.dumps(same, sort_keys=True, ensure_ascii=False, default=str)

    def confidence(self, test_set: str) -> float:
        """The share of the resamples inside the intervals of a test set's scores."""
        configured = (self.config.get("evaluation") or {}).get("confidence", CONFIDENCE)
        return float(self.results["test"][test_set].get("confidence", configured))

    def translations(self, test_set: str) -> list[dict[str, Any]]:
        """The sentence records of a test set (`nmt.evaluation.records`); none where none were written.

        They are read once: tables, significance and page ask for them in turn.

        Raises:
            InputError: naming the file and line that cannot be read.
        """
        if test_set not in self._read:
            found = self._lines("translations", test_set, records.read_translations)
            self._read[test_set] = found
        return self._read[test_set]

    def alignments(self, test_set: str) -> list[dict[str, Any]]:
        """The records of the sentences whose decoding was kept step by step, as `translations`."""
        return self._lines("alignments", test_set, records.read_alignments)

    def _lines(
        self, subfolder: str, test_set: str, read: Callable[[Path, str], list[dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        if test_set not in self.sets:
            return []
        name = self.stored.get(test_set, test_set)
        if (subfolder, name) in self.lines:
            return self.lines[subfolder, name]
        if self.folder is None or not (self.folder / subfolder / f"{name}.jsonl").is_file():
            return []
        return read(self.folder, name)


def known_scores(runs: Sequence[FinishedRun]) -> dict[str, dict[str, Any]]:
    """How to show the scores that the runs have: those of nmt in their order, then others."""
    found = {key: about for run in runs for key, about in run.results.get("scores", {}).items()}
    ordered = [*(key for key in REGISTERED if key in found), *found]
    return {key: found[key] for key in dict.fromkeys(ordered)}


def label_apart(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """The same runs with labels made unique by what tells them apart: keys, the seed, the folder."""
    apart = list(runs)
    for distinguish in (_by_keys, _by_seed, _by_folder, _by_number):
        alike: dict[str, list[int]] = {}
        for index, run in enumerate(apart):
            alike.setdefault(run.label, []).append(index)
        for label, indices in alike.items():
            if len(indices) > 1:
                names = distinguish([apart[index] for index in indices])
                for index, name in zip(indices, names, strict=True):
                    apart[index] = replace(apart[index], label=f"{label}{name}")
    return apart


def differing_keys(runs: Sequence[FinishedRun]) -> dict[str, list[Any]]:
    """Keys whose values are not the same in all runs: {key: [value of each run, or MISSING]}.

    Outside systems, which have no configuration, are passed over (their entries are MISSING).
    """
    configured = [run for run in runs if not run.external]
    keys = dict.fromkeys(key for run in configured for key in run.flat)
    differing: dict[str, list[Any]] = {}
    for key in keys:
        if len({_comparable(run.flat.get(key, MISSING)) for run in configured}) > 1:
            differing[key] = [run.flat.get(key, MISSING) for run in runs]
    return differing


def setting(key: str, value: Any) -> str:
    """A key and its value in few letters; a class goes by its own name and its section's.

    >>> setting("optimizer.lr", 0.1), setting("model.scoring._target_", "mine.scores.Bilinear")
    ('lr 0.1', 'scoring Bilinear')
    """
    *section, name = key.split(".")
    shown = "–" if value is MISSING else str(value)
    if name == "_target_" and section:
        name, shown = section[-1], shown.rpartition(".")[2]
    return f"{name} {shown}"


def typed_keys(words: Iterable[str]) -> dict[str, str]:
    """The keys and groups that overrides set: `+optimizer.lr=0.1` is {"optimizer.lr": "0.1"}."""
    set_here = (word for word in words if "=" in word and not word.startswith("~"))
    return {override_key(word): word.partition("=")[2] for word in set_here}


def is_incidental(key: str) -> bool:
    """Whether a key may differ between runs that are the same experiment.

    Scores that were measured in addition change none of the others, nor does what is left out where
    a file is missing.
    """
    optional = key.startswith("data.test.") and key.endswith(".optional")
    return optional or is_within(key, ("seed", "evaluation.scores", *RUNTIME_KEYS))


def _comparable(value: Any) -> str:
    return "" if value is MISSING else json.dumps(value, sort_keys=True, default=str)


def _by_seed(runs: list[FinishedRun]) -> list[str]:
    seeds = [run.seed for run in runs]
    if len(set(seeds)) == 1:
        return [""] * len(runs)
    return ["" if seed is None else f" seed {seed}" for seed in seeds]


def _by_keys(runs: list[FinishedRun]) -> list[str]:
    """The keys that tell the runs apart, each of which tells some apart that the others do not."""
    few: dict[str, list[Any]] = {}
    kinds = 1
    for key, values in differing_keys(runs).items():
        more = {**few, key: values}
        told = {tuple(_comparable(each[i]) for each in more.values()) for i in range(len(runs))}
        if len(told) > kinds and not is_incidental(key):
            few, kinds = more, len(told)
    parts = [
        ", ".join(setting(key, values[i]) for key, values in few.items()) for i in range(len(runs))
    ]
    return [f" ({part})" if part else "" for part in parts]


def _by_folder(runs: list[FinishedRun]) -> list[str]:
    return [f" [{'/'.join(run.folder.parts[-2:])}]" if run.folder else "" for run in runs]


def _by_number(runs: list[FinishedRun]) -> list[str]:
    return [f" #{number}" if number > 1 else "" for number in range(1, len(runs) + 1)]


def outside_system(
    label: str,
    sentences: Mapping[str, list[dict[str, Any]]],
    settings: Mapping[str, EvaluationConfig],
) -> FinishedRun:
    """An outside system as a run without configuration, scored as runs are.

    Args:
        label: its name in tables and figures.
        sentences: records of each test set, from `nmt.evaluation.external.read_external`.
        settings: edges, side and intervals of the evaluation that it is compared with, by test set.
    """
    scores = {name: summary.summarise(rows, settings[name]) for name, rows in sentences.items()}
    chosen = dict.fromkeys(
        score for each in settings.values() for score in choose_scores(each.scores)
    )
    content = {
        "name": label,
        "title": label,
        "test": scores,
        "scores": results.describe_scores(list(chosen), scores),
    }
    return FinishedRun(
        label, content, lines={("translations", name): rows for name, rows in sentences.items()}
    )
