"""Compares runs and other systems: one frame of scores, and a test of each pair.

The statistics come from `nmt.evaluation`. This file decides which sentences and pairs they are of.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nmt.config import CompareConfig, EvaluationConfig
from nmt.config.keys import CONFIDENCE, EDGES
from nmt.evaluation import significance
from nmt.evaluation.constant_error import constant_error_records
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.scores.text import TextScore
from nmt.evaluation.summary import Measured, length_curves, score_rows
from nmt.evaluation.table import score_table
from nmt.report.curves import CURVES, RETENTION, Curves, curve_rows, retention_rows, tidy
from nmt.report.runs import FinishedRun, find_runs, grouped, named, separate_texts
from nmt.report.systems import add_scores, read_systems
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage, counted

MAX_PAIRED = 25  # runs compared pair by pair: 300 would make 44,850 pairs
MAX_UNKNOWN = 4  # unknown words of a pair: more are counted with these
UNKNOWN_WORDS = "unknown_words"  # subset: BLEU by the number of unknown words, in `from` and `to`
DIFFERENCES = [
    *("set", "score", "a", "b", "bucket", "from", "to", "sentences", "score_a", "score_b"),
    *("delta", "low", "high", "p", "p_corrected", "p_randomised", "p_randomised_corrected"),
]
BREVITY = [REGISTERED["brevity_penalty"], REGISTERED["bleu_precisions"]]  # BLEU is their product
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
            part = _TestSet(
                name, [run for run in runs if name in run.sets], wanted, added, resamples
            )
            tables += [part.scores[label] for label in part.scores]
            notes[name] = part.notes()
            known = part.curves()
            higher = [key for key, score in part.known.items() if score.higher_is_better]
            kept = [*higher, *(score.key for score in added)]
            curves += [{"set": name, **row} for row in curve_rows(known, part.groups)]
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


class _TestSet:
    """The runs on one test set. What is computed here has the buckets of the first run.

    Attributes:
        tested: scores whose differences are tested.
        known: all scores, by key.
        measured: statistics of the sentences, by run.
        no_unk: sentences that the shortlists of all runs cover; None without shortlists.
        groups: labels of the runs that differ in their seed alone and have sentences.
        scores: the scores of each run, by its label.
    """

    def __init__(
        self,
        name: str,
        runs: list[FinishedRun],
        wanted: Sequence[Score] | None,
        added: Sequence[Score],
        resamples: int,
    ) -> None:
        self.name, self.runs = name, runs
        stored = {run.label: run.scores[run.scores["set"] == name] for run in runs}
        keys = set(pd.concat(stored.values())["score"])
        language = next((run.language for run in runs if run.language), None)
        own = choose_scores([k for k in REGISTERED if k in keys] or None, language=language)
        chosen = own if wanted is None else [each.for_language(language) for each in wanted]
        self.tested = [*chosen, *added]
        self.known = {score.key: score for score in [*BREVITY, *own, *self.tested]}
        asked = {score.key for score in [*(wanted or ()), *added, *BREVITY]}
        edges = (runs[0].config.get("evaluation") or {}).get("edges") or list(EDGES)
        self.settings = EvaluationConfig(edges=edges, resamples=resamples)
        self.measured = {
            run.label: Measured(
                run.translations(name),
                list(self.known.values()),
                self.settings,
                computed=None if run.external else asked,
            )
            for run in runs
        }
        self.groups = {
            group: [run.label for run in members]
            for group, members in grouped(runs).items()
            if all(len(self.measured[run.label].ids) for run in members)
        }
        covered = [ids for run in runs if (ids := without_unknown(run, name)) is not None]
        self.no_unk = set.intersection(*covered) if covered else None
        narrowed = any(ids != self.no_unk for ids in covered)
        self.scores = {
            label: self._completed(label, frame, {NO_UNK.key} if narrowed else set())
            for label, frame in stored.items()
        }

    def _completed(self, label: str, frame: pd.DataFrame, outdated: set[str]) -> pd.DataFrame:
        """The stored scores of a run, with those that it lacks or that depend on the other runs."""
        measured, edges = self.measured[label], self.settings.edges or ()
        if not len(measured.ids):
            return frame
        anew = outdated | (set(measured.scores) - set(frame["key"]))
        everyone = np.ones(len(measured.ids), dtype=bool)
        shared = everyone if self.no_unk is None else np.isin(measured.ids, list(self.no_unk))
        rows: list[dict[str, Any]] = []
        for key in (key for key in measured.scores if key in anew):
            inside = shared if key == NO_UNK.key else everyone
            rows += score_rows(measured, self.name, key, inside, edges)
        head = {"set": self.name, "subset": UNKNOWN_WORDS, "score": "bleu"}
        unknown = np.minimum(measured.unknown, MAX_UNKNOWN)  # words that the run's shortlists lack
        for number in range(MAX_UNKNOWN + 1):
            if (numbers := measured.of("bleu", unknown == number)) is not None:
                last = None if number == MAX_UNKNOWN else number
                rows.append(head | {"from": number, "to": last} | numbers)
        return pd.concat(
            [frame[~frame["key"].isin(anew)], named(score_table(rows)).assign(run=label)]
        )

    def curves(self) -> Curves:
        """The curves of the groups of seeds, and of systems of a constant error rate."""
        members = {
            ("score", name): [self.measured[label] for label in labels]
            for name, labels in self.groups.items()
        }
        first = {run.label: run for run in self.runs}
        constant = {
            ("constant", name): [self._constant(first[labels[0]])]
            for name, labels in self.groups.items()
            if any(record["reference"] for record in first[labels[0]].translations(self.name))
        }
        tested = [score.key for score in self.tested if score.by_length]
        keys = dict.fromkeys(["bleu", "brevity_penalty", "bleu_precisions", NO_UNK.key, *tested])
        return length_curves(members | constant, keys)

    def _constant(self, run: FinishedRun) -> Measured:
        """A system with the BLEU of a run and the same error rate per word at every length.

        It has no scores of detokenised text: its errors are made in tokens.
        """
        records = constant_error_records(run.translations(self.name))
        for record in records:  # its scores are those of the whole set alone
            record.pop("bleu_stats_no_unk", None)
        scores = [each for each in self.known.values() if not isinstance(each, TextScore)]
        system = Measured(records, scores, self.settings, computed=())
        system.lengths = self.measured[run.label].lengths
        return system

    def differences(self) -> Iterator[dict[str, Any]]:
        """The tests of each score, on the sentences for which all runs that have it have it."""
        if not self.settings.resamples:
            return
        paired = best_runs(self.runs, pd.concat(self.scores.values()))
        for score in self.tested:
            having = {
                run.label: measured
                for run in paired
                if (measured := self.measured[run.label]).has(score.key).any()
            }
            if len(having) < 2:
                continue
            common = functools.reduce(
                np.intersect1d, [each.ids[each.has(score.key)] for each in having.values()]
            )
            if not len(common):
                continue
            places = {label: np.searchsorted(each.ids, common) for label, each in having.items()}
            first = next(iter(having))
            tests = significance.compare(
                {
                    label: {score.key: each.tables[score.key][places[label]]}
                    for label, each in having.items()
                },
                {score.key: score.combine},
                having[first].lengths[places[first]],
                self.settings.edges or (),
                resamples=self.settings.resamples,
            )
            for row in tests[score.key]:
                if score.by_length or row["bucket"] == "all":
                    yield {"score": score.key, **row}

    def notes(self) -> list[str]:
        """What a reader must know of the scores on this set."""
        notes = []
        renamed = {run.label: run.stored[self.name] for run in self.runs if self.name in run.stored}
        if renamed:
            stored = next(iter(renamed.values()))
            labels = ", ".join(renamed)
            notes.append(f"{self.name} is the test set {stored} of {labels}, with another text.")
        if self.no_unk:
            notes.append(
                f"No UNK: {counted(len(self.no_unk), 'sentence')} covered by the shortlists of all "
                "runs, translated with <unk> forbidden."
            )
        notes += [
            f"{each.title} signature: {each.signature}" for each in self.tested if each.signature
        ]
        pairs = max((len(measured.ids) for measured in self.measured.values()), default=0)
        if 0 < pairs < significance.FEWEST:
            notes.append(f"{counted(pairs, 'sentence')}: {significance.FEW_SENTENCES}.")
        if len(self.runs) > MAX_PAIRED:
            notes.append(
                f"Of {len(self.runs)} runs, the {MAX_PAIRED} of the highest BLEU (other systems first) "
                "are compared in pairs and sentence by sentence; runs= takes others."
            )
        searches = dict.fromkeys(map(search_settings, self.runs))
        notes += [f"Search: {settings}." for settings in searches if settings]
        if len({run.results.get("commit") for run in self.runs} - {None}) > 1:
            notes.append("The runs are of different commits of the code.")
        return notes


def smallest_bucket(frame: pd.DataFrame, test_set: str) -> int:
    """Number of sentences in the smallest bucket of a set; 0 without two buckets."""
    rows = frame[(frame["set"] == test_set) & (frame["key"] == "bleu") & (frame["bucket"] != "all")]
    return int(rows["sentences"].min()) if rows["from"].nunique() > 1 else 0


def without_unknown(run: FinishedRun, test_set: str) -> set[int] | None:
    """Sentences that a run's shortlists cover; None if it has none, as with subwords."""
    rows = [] if run.external else run.translations(test_set)
    if all(row.get("no_unk") is None for row in rows):
        return None
    return {row["id"] for row in rows if row["no_unk"]}


def search_settings(run: FinishedRun) -> str:
    """The settings of the search behind a run's translations, such as `beam 12`."""
    search = run.config.get("search") or {}
    if not search:
        return ""
    beam = search.get("beam_size")
    words = ["greedy" if beam == 1 else f"beam {beam}"]
    keys = [key for key in ("length_penalty", "max_ratio", "min_ratio") if search.get(key)]
    words += [f"{key.replace('_', ' ')} {search[key]:g}" for key in keys]
    if search.get("replace_unk", "none") != "none":
        words.append(f"<unk> replaced ({search['replace_unk']})")
    return ", ".join(words)


def best_runs(runs: Sequence[FinishedRun], scores: pd.DataFrame) -> list[FinishedRun]:
    """At most MAX_PAIRED of some runs: other systems, then the runs of the highest BLEU."""
    if len(runs) <= MAX_PAIRED:
        return list(runs)
    scores = scores[(scores["bucket"] == "all") & (scores["key"] == "bleu")]
    values = scores.set_index("run")["value"]
    ranked = sorted(runs, key=lambda run: (not run.external, -values.get(run.label, 0.0)))
    chosen = {run.label for run in ranked[:MAX_PAIRED]}
    return [run for run in runs if run.label in chosen]
