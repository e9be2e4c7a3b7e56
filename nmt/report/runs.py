"""Reads run folders, and gives each run a unique label.

This module imports no model code, so reports need only the files of the run folders.
"""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.config.changes import effect_of, flatten, is_within
from nmt.config.commands import INITIAL_CHECKPOINT, TrainConfig
from nmt.config.keys import INCIDENTAL
from nmt.evaluation import results
from nmt.evaluation.length_curve import LengthScale
from nmt.evaluation.records import Record, read_rows
from nmt.evaluation.scores_csv import read_scores, score_table
from nmt.utils.errors import InputError
from nmt.utils.files import matching
from nmt.utils.text import printable

UNRELATED = ("nbest", "batch_size")  # keys of `search` that do not affect translations


@dataclass(eq=False)
class FinishedRun:
    """A finished run, or the output of another system."""

    label: str  # name in tables and figures, unique among the compared runs
    results: dict[str, Any]  # content of `results.json`
    folder: Path | None = None  # None: another system
    name: str = ""  # name of the run's group: the label without seed and path; empty: `label`
    records: dict[str, list[Record]] = field(default_factory=dict, repr=False)  # by test set
    kept: dict[str, list[Record]] = field(default_factory=dict, repr=False)  # alignments, by set
    scores: pd.DataFrame = field(default_factory=lambda: score_table([]), repr=False)
    stored: dict[str, str] = field(default_factory=dict)  # original name of each renamed test set
    scales: dict[str, LengthScale] = field(default_factory=dict)  # by test set; else the default
    notes: dict[str, list[str]] = field(
        default_factory=dict
    )  # how its output was read, by test set
    cut: set[str] = field(default_factory=set)  # test sets whose segments the edit distance found

    @property
    def external(self) -> bool:
        """Whether this is another system's output, which has no configuration."""
        return not self.config

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the run, as dictionaries and lists."""
        return self.results.get("config") or {}

    @property
    def seed(self) -> int | None:
        return self.results.get("seed", self.config.get("seed"))

    @property
    def language(self) -> str | None:
        """The language that the run translates into."""
        languages = self.flat.get("data.languages") or self.results.get("languages")
        return languages[1] if languages else None

    @property
    def sets(self) -> list[str]:
        """Names of the test sets, in the order of the configuration."""
        return list(dict.fromkeys([*self.scores["set"], *self.records]))

    @cached_property
    def flat(self) -> dict[str, Any]:
        """The configuration as one dictionary with dotted keys, without null and empty values.

        If results.json describes the initial checkpoint, the checkpoint's configuration replaces its path. So
        runs whose initial checkpoints differ only in their seed are in the same group.
        """
        flat = {k: v for k, v in flatten(self.config).items() if v is not None and v != {}}
        initial = self.results.get(INITIAL_CHECKPOINT)
        return flat if initial is None else flat | {INITIAL_CHECKPOINT: initial["configuration"]}

    @cached_property
    def group(self) -> str:
        """The key of the run's group: runs on the same corpus that differ only in their seed have the same key."""
        if self.external:
            return self.label
        same: dict[str, Any] = {k: v for k, v in self.flat.items() if not is_incidental(k)}
        same["text"] = (self.results.get("text") or {}).get("training")
        return json.dumps(same, sort_keys=True, ensure_ascii=False, default=str)

    @property
    def search(self) -> str:
        """The settings of the search, such as `beam size 12`."""
        given = self.config.get("search") or {}
        shown = {k: v for k, v in given.items() if v not in (0, "none") and k not in UNRELATED}
        return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in shown.items())

    def covered(self, test_set: str) -> set[int] | None:
        """Returns the ids of the sentences whose words are all in the shortlists; None without shortlists."""
        rows = [] if self.external else self.translations(test_set)
        if all(row.get("no_unk") is None for row in rows):
            return None
        return {row["id"] for row in rows if row["no_unk"]}

    def translations(self, test_set: str) -> list[Record]:
        """Returns the sentence records of a test set (`nmt.evaluation.records`); [] if there are none.

        Raises:
            InputError: if a line cannot be read. The message names the file and the line.
        """
        if test_set not in self.records:
            self.records[test_set] = self._rows("translations", test_set)
        return self.records[test_set]

    def alignments(self, test_set: str) -> list[Record]:
        """Returns the stored alignment records of a test set; raises the same errors as `translations`."""
        if test_set in self.kept:
            return self.kept[test_set]
        return self._rows("alignments", self.stored.get(test_set, test_set))

    def _rows(self, kind: str, name: str) -> list[Record]:
        path = (self.folder or Path()) / kind / f"{name}.jsonl"
        return read_rows(path) if self.folder and path.is_file() else []


def find_runs(patterns: Iterable[str | Path]) -> list[FinishedRun]:
    """Reads the finished runs in folders and globs, each run once, and makes their labels unique.

    A folder means all runs inside it, at any depth. The numbered jobs of a sweep are sorted by number.

    Raises:
        InputError: if a pattern matches no finished run, or `results.json` cannot be read.
    """
    finished: dict[Path, FinishedRun] = {}
    for pattern in map(str, patterns):
        files = {path for root in matching(pattern) for path in root.rglob(results.FILE)}
        if not files:
            raise InputError(f"runs: no finished run ({results.FILE}) in {pattern}")
        for folder in sorted((path.parent for path in files), key=_by_number):
            if folder.resolve() not in finished:
                finished[folder.resolve()] = read_run(folder)
    return label_apart(list(finished.values()))


def read_run(folder: str | Path) -> FinishedRun:
    """Reads the folder of a finished run; raises InputError if one of its files is invalid."""
    content = results.read(folder)
    scores = read_scores(folder)
    return FinishedRun(printable(str(content["name"])), content, Path(folder), scores=scores)


def _by_number(folder: Path) -> list[tuple[int, str]]:
    return [(int(part) if part.isdecimal() else -1, part) for part in folder.parts]


def grouped(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """Groups runs that differ only in their seed, in the order of each group's first run.

    A group has at most one run per seed. If a seed has a second run, such as another evaluation of the same
    checkpoint, this run goes into a second group.
    """
    members: dict[tuple[str, int], list[FinishedRun]] = {}
    seen: Counter[tuple[str, int | None]] = Counter()
    for run in runs:
        members.setdefault((run.group, seen[run.group, run.seed]), []).append(run)
        seen[run.group, run.seed] += 1
    groups: dict[str, list[FinishedRun]] = {}
    for alike in members.values():
        name = alike[0].name or alike[0].label
        groups[alike[0].label if name in groups else name] = alike
    return groups


def label_apart(runs: list[FinishedRun]) -> list[FinishedRun]:
    """Makes labels unique: adds the settings that differ; if needed, also the seed, then the path."""
    for distinguish in (_by_settings, _by_seed, _by_path):
        counts = Counter(run.label for run in runs)
        for label in [label for label, count in counts.items() if count > 1]:
            alike = [run for run in runs if run.label == label]
            for run, suffix in zip(alike, distinguish(alike), strict=True):
                run.label += suffix
        for run in runs:
            run.name = run.name or run.label
    return runs


def _by_settings(runs: list[FinishedRun]) -> list[str]:
    """Returns label suffixes from the keys that differ; leaves out keys that separate no more runs."""
    frame = differing_settings(runs)
    keys: list[str] = []
    kinds = 1
    for key in frame:
        divided = len(frame[[*keys, key]].drop_duplicates())
        if divided > kinds and not is_incidental(key):
            keys = [*keys, key]
            kinds = divided
    parts = [
        ", ".join(_setting(key, value) for key, value in zip(keys, values, strict=True))
        for values in frame[keys].itertuples(index=False, name=None)
    ]
    return [f" ({part})" if part else "" for part in parts]


def _by_seed(runs: list[FinishedRun]) -> list[str]:
    several = len({run.seed for run in runs}) > 1
    return [f" seed {run.seed}" if several and run.seed is not None else "" for run in runs]


def _by_path(runs: list[FinishedRun]) -> list[str]:
    """Returns the folders relative to their common parent."""
    folders = [str((run.folder or Path(os.sep)).resolve()) for run in runs]
    common = os.path.commonpath(folders)
    return [f" [{os.path.relpath(folder, common)}]" for folder in folders]


def differing_settings(runs: Sequence[FinishedRun]) -> pd.DataFrame:
    """Returns the keys whose values differ, as a table of text: one row per run, one column per key.

    A dash means that the run does not have the key.
    """
    frame = pd.DataFrame([run.flat for run in runs], dtype=object).map(str, na_action="ignore")
    frame = frame.fillna("–").set_axis([run.label for run in runs])
    return frame.loc[:, frame.nunique() > 1]


def _setting(key: str, value: str) -> str:
    """Shortens a key and its value; a `_target_` becomes the names of its section and its class.

    >>> _setting("optimizer.lr", "0.1"), _setting("model.scoring._target_", "mine.scores.Bilinear")
    ('lr 0.1', 'scoring Bilinear')
    """
    section, _, name = key.rpartition(".")
    if name == "_target_" and section:
        name = section.rpartition(".")[2]
        value = value.rpartition(".")[2]
    return f"{name} {value}"


def is_incidental(key: str) -> bool:
    """Tells whether a key may differ between runs of the same group."""
    return (
        is_within(key, ("seed", "evaluation.scores")) or effect_of(TrainConfig, key) in INCIDENTAL
    )


def separate_texts(runs: Sequence[FinishedRun]) -> None:
    """Renames test sets, so that a name means the same text in all runs.

    For example, runs on different corpora may all have a set `test`. The first text keeps this name. Other
    texts are renamed to `test-2` and so on. Otherwise, sentences of different texts would be paired. Texts
    that differ only in tokenisation count as the same text.
    """
    texts: dict[str, list[str]] = {}
    read: dict[tuple[int, ...], str] = {}  # systems of one test set share its lists of words
    for run in runs:
        for name in run.sets:
            lists = [
                row[side] for row in run.translations(name) for side in ("source", "reference")
            ]
            if (shared := tuple(map(id, lists))) not in read:
                words = "".join(itertools.chain.from_iterable(lists))
                read[shared] = "".join(filter(str.isalnum, words))
            text = read[shared]
            known = texts.setdefault(name, [])
            if text and text not in known:
                known.append(text)
            if text and (place := known.index(text)):
                new = f"{name}-{place + 1}"
                run.stored[new] = name
                run.records[new] = run.records.pop(name)
                run.scores["set"] = run.scores["set"].replace(name, new)
