"""Compares runs and other systems: one frame of scores, and a test of each pair.

The statistics come from `nmt.evaluation`. This file decides which sentences and pairs they are of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.config import CompareConfig
from nmt.config.keys import CONFIDENCE
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.table import score_table
from nmt.report.curves import CURVES, RETENTION, curve_rows, retention_rows, tidy
from nmt.report.runs import FinishedRun, find_runs, grouped, named, separate_texts
from nmt.report.set_comparison import SetComparison, best_runs
from nmt.report.systems import add_scores, read_systems
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage

DIFFERENCES = [
    *("set", "score", "a", "b", "bucket", "from", "to", "sentences", "score_a", "score_b"),
    *("delta", "low", "high", "p", "p_corrected"),
]
LEVEL = f"{100 * CONFIDENCE:g} %"


@dataclass(frozen=True)
class Comparison:
    """Runs and other systems on their test sets.

    Attributes:
        runs: with unique labels; other systems last.
        scores: a row a number, as `scores.csv`, with the columns `run`, `key` (`bleu_no_unk` for
            BLEU without unknown words) and `bucket` (`all` for the whole set). Scores without
            unknown words are of the sentences that the shortlists of all runs cover.
        about: how to show each score, by key: `title`, `unit`, `digits`, `higher_is_better`. BLEU
            comes first.
        curves: the scores as curves over length, in `nmt.report.curves.CURVES`.
        retention: what long sentences keep of the scores, in `nmt.report.curves.RETENTION`.
        differences: the test of each pair of runs in `DIFFERENCES`.
        notes: what a reader must know of a test set, by its name.
        unfinished: folders of runs that have not finished.
    """

    runs: list[FinishedRun]
    scores: pd.DataFrame
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    curves: pd.DataFrame = field(default_factory=lambda: tidy([], CURVES))
    retention: pd.DataFrame = field(default_factory=lambda: tidy([], RETENTION))
    differences: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=DIFFERENCES))
    notes: dict[str, list[str]] = field(default_factory=dict)
    unfinished: list[Path] = field(default_factory=list)

    @cached_property
    def sets(self) -> list[str]:
        """Names of the test sets: those whose smallest bucket has the most sentences first."""
        names = list(dict.fromkeys(self.scores["set"]))
        return sorted(names, key=lambda name: -smallest_bucket(self.scores, name))

    @cached_property
    def groups(self) -> dict[str, list[FinishedRun]]:
        """Runs that differ in nothing but their seed, by the name of the group."""
        return grouped(self.runs)

    def subset(self, test_set: str, *subsets: str) -> pd.DataFrame:
        """The scores on some subsets of a test set."""
        frame = self.scores
        return frame[(frame["set"] == test_set) & frame["subset"].isin(subsets)]

    def whole(self, test_set: str) -> pd.DataFrame:
        """The scores on a whole test set."""
        frame = self.subset(test_set, "all", "no_unk")
        return frame[frame["bucket"] == "all"]

    def by_length(self, test_set: str) -> pd.DataFrame:
        """The scores on the buckets of a test set, short sentences first."""
        frame = self.subset(test_set, "all", "no_unk")
        return frame[frame["bucket"] != "all"].sort_values("from", kind="stable")

    def present(self, test_set: str) -> list[FinishedRun]:
        """The runs that were scored on a test set."""
        scored = set(self.scores.loc[self.scores["set"] == test_set, "run"])
        return [run for run in self.runs if run.label in scored]

    def paired(self, test_set: str) -> list[FinishedRun]:
        """The runs that are compared pair by pair and sentence by sentence."""
        return best_runs(self.present(test_set), self.scores[self.scores["set"] == test_set])


def compare(config: CompareConfig, shown: bool = False) -> Comparison:
    """Compares runs with each other and with other systems.

    Args:
        config: runs, systems, scores and resamples.
        shown: show progress.

    Raises:
        InputError: if a pattern leads to no finished run, a file cannot be read, or a score or
            test set is unknown.
    """
    if not config.runs and not config.systems:
        raise InputError("runs: must be given, or systems with source and reference")
    given = config.scores
    files = {k: v for k, v in given.items() if v} if isinstance(given, Mapping) else {}
    wanted = None if given is None or files else choose_scores(list(given), "scores")
    runs, unfinished = find_runs(config.runs)
    runs = separate_texts(runs)
    runs = separate_texts([*runs, *read_systems(config, runs)])
    added = add_scores(files, runs)
    return compare_runs(runs, wanted, added, config.resamples, unfinished, shown=shown)


def compare_runs(
    runs: Sequence[FinishedRun],
    wanted: Sequence[Score] | None = None,
    added: Sequence[Score] = (),
    resamples: int = 1000,
    unfinished: Sequence[Path] = (),
    *,
    shown: bool = False,
) -> Comparison:
    """Compares runs that were read.

    Args:
        runs: with unique labels.
        wanted: the scores that are tested, and computed where a run lacks them; None: all that the
            runs have.
        added: scores whose statistics the records hold, besides `wanted`.
        resamples: bootstrap resamples behind intervals and tests; 0: no tests.
        unfinished: folders of runs that have not finished.
        shown: show progress.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.sets))
    tables, notes = [named(score_table([])).assign(run="")], {}
    curves, retention, differences = [], [], []
    with Stage("comparing", len(names), "test set", shown=shown) as stage:
        for name in names:
            part = SetComparison(name, runs, wanted, added, resamples)
            known = part.curves()
            higher = [key for key, score in part.known.items() if score.higher_is_better]
            kept = [*higher, *(score.key for score in added)]
            tables.append(part.scores)
            notes[name] = part.notes()
            curves += [
                {"set": name, **row} for row in curve_rows(known, part.groups, part.controls)
            ]
            retention += [{"set": name, **row} for row in retention_rows(known, kept)]
            differences += [{"set": name, **row} for row in part.differences()]
            stage.advance()
    frame = pd.concat(tables, ignore_index=True)
    return Comparison(
        list(runs),
        frame,
        describe(frame, runs, added),
        tidy(curves, CURVES),
        tidy(retention, RETENTION),
        pd.DataFrame(differences, columns=DIFFERENCES).astype({"from": "Int64", "to": "Int64"}),
        notes,
        list(unfinished),
    )


def only(run: FinishedRun) -> Comparison:
    """A run by itself, as it was scored."""
    return Comparison([run], run.scores, describe(run.scores, [run]))


def describe(
    frame: pd.DataFrame, runs: Sequence[FinishedRun], added: Sequence[Score] = ()
) -> dict[str, dict[str, Any]]:
    """How to show the scores of a frame, by key.

    A score of the user's own is described by results.json: its code is not imported.
    """
    known = {"bleu": REGISTERED["bleu"], NO_UNK.key: NO_UNK, **REGISTERED}
    stored = {k: about for run in runs for k, about in (run.results.get("scores") or {}).items()}
    about = {
        **{key: score.description() for key, score in known.items()},
        **{key: description for key, description in stored.items() if key not in known},
        **{score.key: score.description() for score in added},
    }
    present = set(frame.loc[frame["subset"].isin(["all", "no_unk"]), "key"])
    plain = {"unit": "", "digits": 2, "higher_is_better": None}
    order = [key for key in about if key in present] + sorted(present - set(about))
    shown = {key: plain | {"title": key} | about.get(key, {}) for key in order}
    if NO_UNK.key in shown:
        shown["bleu"]["title"] += ", all"
    return shown


def smallest_bucket(frame: pd.DataFrame, test_set: str) -> int:
    """Number of sentences in the smallest bucket of a set; 0 without two buckets."""
    rows = frame[(frame["set"] == test_set) & (frame["key"] == "bleu") & (frame["bucket"] != "all")]
    return int(rows["sentences"].min()) if rows["from"].nunique() > 1 else 0
