"""Compares runs and other systems: scores, curves over length, and a significance test for each pair.

The statistics come from `nmt.evaluation`; `nmt.report.set_comparison` selects the sentences and the pairs of runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import pandas as pd

from nmt.config.commands import CompareConfig
from nmt.config.keys import CONFIDENCE
from nmt.evaluation.length_curve import LengthScale
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.scores_csv import score_table, tidy
from nmt.evaluation.significance import TESTED
from nmt.report.notes import notes_of
from nmt.report.retention import CURVES, RETENTION, curve_rows, domain_rows, retention_rows
from nmt.report.runs import FinishedRun, find_runs, grouped, separate_texts
from nmt.report.score_against_score import AGAINST, compare_scores
from nmt.report.score_files import add_scores, read_scores
from nmt.report.set_comparison import SetComparison, best_runs
from nmt.report.systems import read_systems
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage
from nmt.utils.text import as_list

DIFFERENCES = ("set", "score", "a", "b", "bucket", "from", "to", "sentences", *TESTED)
TABLES = {"curves": CURVES, "retention": RETENTION, "differences": DIFFERENCES, "against": AGAINST}
LEVEL = f"{100 * CONFIDENCE:g} %"


@dataclass(frozen=True)
class Comparison:
    """The scores of runs and other systems on their test sets.

    `scores` has a column `run` and the columns of `nmt.evaluation.scores_csv.score_table`. The key of BLEU
    without unknown words is `bleu_no_unk`. Scores without unknown words use only sentences whose words are in
    the shortlists of all runs.
    """

    runs: list[FinishedRun]  # labels are unique; other systems come last
    scores: pd.DataFrame
    about: dict[str, dict[str, Any]]  # key of a score -> `Score.description()`
    curves: pd.DataFrame
    retention: pd.DataFrame
    differences: pd.DataFrame
    against: pd.DataFrame  # each score compared with another one
    notes: dict[str, list[str]]  # test set -> explanations of its scores

    @cached_property
    def sets(self) -> list[str]:
        """Names of the test sets, in descending order of the number of sentences in their smallest length bucket."""
        buckets = self.scores[(self.scores["key"] == "bleu") & self.scores["from"].notna()]
        sizes = buckets.groupby("set").agg(count=("from", "nunique"), least=("sentences", "min"))
        least = sizes.loc[sizes["count"] > 1, "least"]
        names = dict.fromkeys(self.scores["set"])
        return sorted(names, key=lambda name: -least.get(name, 0))

    @cached_property
    def groups(self) -> dict[str, list[FinishedRun]]:
        """Groups of runs that differ only in their seed, by name."""
        return grouped(self.runs)

    def unit(self, test_set: str) -> str:
        """Returns the unit of sentence length in a test set, such as `words`."""
        scales = (run.scales[test_set] for run in self.runs if test_set in run.scales)
        return next(scales, LengthScale()).unit

    def whole(self, test_set: str) -> pd.DataFrame:
        """Returns the scores on a whole test set."""
        frame = self.scores.query("set == @test_set and bucket == 'all'")
        return frame[frame["key"].isin(self.about)]

    @cached_property
    def buckets(self) -> pd.DataFrame:
        """The scores on the length buckets of all test sets, short sentences first."""
        frame = self.scores[self.scores["key"].isin(self.about) & self.scores["from"].notna()]
        return frame.sort_values("from", kind="stable")

    def main(self, test_set: str) -> list[str]:
        """Returns the key of the first score on a test set: BLEU, if there are translations."""
        present = set(self.whole(test_set)["key"])
        return [key for key in self.about if key in present][:1]

    def by_length(self, test_set: str) -> pd.DataFrame:
        """Returns the scores on the length buckets of a test set."""
        return self.buckets[self.buckets["set"] == test_set]

    def present(self, test_set: str) -> list[FinishedRun]:
        """Returns the runs that have this test set."""
        return [run for run in self.runs if test_set in run.sets]

    def paired(self, test_set: str) -> list[FinishedRun]:
        """Returns the runs that are compared pair by pair and sentence by sentence."""
        return best_runs(self.present(test_set), self.whole(test_set))


def build_comparison(config: CompareConfig) -> Comparison:
    """Compares runs with each other and with other systems.

    Raises:
        InputError: if neither runs nor systems are given, if a pattern matches no finished run, if a
            file cannot be read, or if a score or test set is unknown.
    """
    given = config.scores
    files = {k: v for k, v in given.items() if v} if isinstance(given, Mapping) else {}
    against = files.pop("against", None)
    wanted = None if given is None or files else choose_scores(list(given), "scores")
    if not config.runs and not config.systems:
        if not files:
            raise InputError(
                "runs: missing; type runs=FOLDER, or give systems, source and reference, or +scores.NAME=FILE"
            )
        wanted = choose_scores([])  # nothing else can be computed from scores alone
    runs = find_runs(config.runs)
    separate_texts(runs)
    scored = read_scores(files, as_list(config.select or []))
    runs += read_systems(config, runs, scored)
    separate_texts(runs)
    add_scores(scored, runs)
    return compare_finished(runs, wanted, scored, config.resamples, against=against, shown=True)


def compare_finished(
    runs: Sequence[FinishedRun],
    wanted: Sequence[Score] | None = None,
    added: Sequence[Score] = (),
    resamples: int = 1000,
    *,
    against: str | None = None,
    shown: bool = False,
) -> Comparison:
    """Compares runs that are already read.

    Args:
        runs: runs with unique labels.
        wanted: scores to test. Missing scores are computed. None: all scores that the runs have.
        added: more scores to test. Their statistics are already in the records.
        resamples: number of bootstrap resamples for intervals and tests; 0: no tests.
        against: key of the score with which the others are compared (`compare_scores`).
    """
    names = list(dict.fromkeys(name for run in runs for name in run.sets))
    scores = [score_table([]).assign(run="")]
    notes = {}
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in TABLES}
    with Stage("comparing", len(names), "test set", shown=shown) as stage:
        for name in names:
            part = SetComparison(name, runs, wanted, added, resamples, shown=shown)
            scores.append(part.completed_scores())
            curves = part.curves()
            by_domain = part.curves_by_domain()
            retained: list[dict[str, Any]] = [
                row
                for domain, own in {"": curves, **by_domain}.items()
                for row in retention_rows(own, part.compared, part.scale, domain)
            ]
            notes[name] = notes_of(part, curves, [row for row in retained if not row["domain"]])
            of_set: dict[str, list[Iterable[dict[str, Any]]]] = {
                "curves": [
                    curve_rows(curves, part.groups, part.controls, part.curves_of_pair),
                    *(domain_rows(own, domain) for domain, own in by_domain.items()),
                ],
                "retention": [retained],
                "differences": [part.differences()],
                "against": [compare_scores(part, against)],
            }
            for kind, parts in of_set.items():
                rows[kind] += [
                    {"set": name, **row}
                    for row in chain.from_iterable(parts)
                    if not part.hides(row)
                ]
            stage.advance()
    frame = pd.concat(scores, ignore_index=True)
    about = describe(frame, runs, [*(wanted or ()), *added])
    tables = {kind: tidy(rows[kind], columns) for kind, columns in TABLES.items()}
    return Comparison(list(runs), frame, about, **tables, notes=notes)


def describe(
    frame: pd.DataFrame, runs: Sequence[FinishedRun], own: Sequence[Score]
) -> dict[str, dict[str, Any]]:
    """Returns the `Score.description()` of each score of a frame, by key.

    If a user's score is not in `own`, the description comes from results.json. So the code of the score need
    not be imported.
    """
    known = [REGISTERED["bleu"], NO_UNK, *REGISTERED.values(), *own]
    about = {score.key: score.description() for score in known}
    for run in runs:
        about |= (run.results.get("scores") or {}) | about
    present = set(frame["key"])
    shown = {key: about[key] for key in about if key in present}
    if NO_UNK.key in shown:
        shown["bleu"]["title"] += ", all"
    return shown
