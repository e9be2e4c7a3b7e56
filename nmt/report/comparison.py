"""Compares runs and outside systems: one frame of scores, and a test of each pair.

The statistics come from `nmt.evaluation`; this file decides which sentences and pairs they are of.
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
from scipy import stats

from nmt.config import EvaluationConfig
from nmt.config.keys import CONFIDENCE, EDGES
from nmt.data.tokenise import tokeniser
from nmt.evaluation import significance
from nmt.evaluation.buckets import Bucket, buckets
from nmt.evaluation.external import read_external
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.summary import Measured, score_rows
from nmt.evaluation.table import score_table
from nmt.report.runs import (
    FinishedRun,
    find_runs,
    grouped,
    keys_of,
    score_descriptions,
    separate_texts,
    sets_of,
)
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage, counted

MAX_PAIRED = 25  # runs compared pair by pair: 300 would make 44,850 pairs
MAX_UNKNOWN = 4  # unknown words of a pair: more are counted with these
DIFFERENCES = [
    *("set", "score", "a", "b", "bucket", "from", "to", "sentences", "score_a", "score_b"),
    *("delta", "low", "high", "p", "p_corrected", "p_randomised", "p_randomised_corrected"),
]


@dataclass(frozen=True)
class Comparison:
    """Runs and outside systems on their test sets.

    Attributes:
        runs: with unique labels; outside systems last.
        scores: a row a number, as `scores.csv`, with the column `run`. Scores without unknown words
            are of the sentences that the shortlists of all runs cover.
        differences: the test of each pair of runs in `DIFFERENCES`.
        unknown_words: BLEU by the number of unknown words: `run`, `set`, `unknown`, `value`, `low`,
            `high`, `sentences`.
        notes: what a reader must know of a test set, by its name.
        unfinished: folders of runs that have not finished.
    """

    runs: list[FinishedRun]
    scores: pd.DataFrame
    differences: pd.DataFrame
    unknown_words: pd.DataFrame
    notes: dict[str, list[str]] = field(default_factory=dict)
    unfinished: list[Path] = field(default_factory=list)

    @cached_property
    def sets(self) -> list[str]:
        """Names of the test sets: those whose smallest bucket has the most sentences first."""
        names = list(dict.fromkeys(self.scores["set"]))
        return sorted(names, key=lambda name: -smallest_bucket(self.scores, name))

    @cached_property
    def groups(self) -> dict[str, list[FinishedRun]]:
        """Runs that differ by nothing but their seed, by the name of the group."""
        return grouped(self.runs)

    @cached_property
    def about(self) -> dict[str, dict[str, Any]]:
        """How to show each score, by key (`nmt.report.runs.score_descriptions`)."""
        return score_descriptions(
            [FinishedRun("", run.results, table=self.scores) for run in self.runs]
        )

    def on(self, test_set: str) -> pd.DataFrame:
        """The scores on a test set, with the columns `key` and `bucket` (`all` for the whole set)."""
        frame = self.scores[self.scores["set"] == test_set]
        return frame.assign(key=keys_of(frame), bucket=bucket_names(frame))

    def present(self, test_set: str) -> list[FinishedRun]:
        """The runs that were scored on a test set."""
        scored = set(self.scores.loc[self.scores["set"] == test_set, "run"])
        return [run for run in self.runs if run.label in scored]

    def paired(self, test_set: str) -> list[FinishedRun]:
        """The runs that are compared pair by pair and sentence by sentence: at most MAX_PAIRED.

        Outside systems come first, then the runs of the highest BLEU.
        """
        return _paired(self.present(test_set), self.on(test_set))

    @property
    def level(self) -> str:
        """Confidence levels of the runs' intervals, such as `95 %`."""
        levels = {run.confidence for run in self.runs if not run.external} or {CONFIDENCE}
        return "/".join(f"{100 * level:g} %" for level in sorted(levels))


def compare(
    runs: Sequence[str | Path],
    systems: Mapping[str, Mapping[str, str]] | None = None,
    *,
    scores: Sequence[str] | None = None,
    resamples: int = 1000,
    shown: bool = False,
) -> Comparison:
    """Compares runs with each other and with the output of outside systems.

    Args:
        runs: run folders, sweep folders, or globs of them.
        systems: by the name of a system, by test set, the file of its translations.
        scores: names of the scores that are tested, and computed where a run lacks them; None: all
            that the runs have.
        resamples: bootstrap resamples behind intervals and tests; 0: no tests.
        shown: show progress.

    Raises:
        InputError: if a pattern leads to no finished run, a file cannot be read, or a score or
            test set is unknown.
    """
    asked = None if scores is None else choose_scores(list(scores), "scores")
    found, unfinished = find_runs(runs)
    found = separate_texts(found)
    for name, files in (systems or {}).items():
        if name in {run.label for run in found}:
            raise InputError(f"external.{name}: a run has this name; give the system another")
        found.append(_read_system(name, files, found, asked, resamples))
    return compare_runs(found, asked, resamples=resamples, unfinished=unfinished, shown=shown)


def compare_runs(
    runs: Sequence[FinishedRun],
    scores: Sequence[Score] | None = None,
    *,
    resamples: int = 1000,
    unfinished: Sequence[Path] = (),
    shown: bool = False,
) -> Comparison:
    """Compares runs that were read, as `compare`."""
    tables: list[pd.DataFrame] = []
    tests: list[dict[str, Any]] = []
    unknown: list[dict[str, Any]] = []
    notes: dict[str, list[str]] = {}
    names = sets_of(runs)
    with Stage("comparing", len(names), "test set", shown=shown) as stage:
        for name in names:
            one = _SetComparison([run for run in runs if name in run.sets], name, scores, resamples)
            tables.append(one.frame)
            tests += one.differences()
            unknown += one.unknown_words()
            notes[name] = one.notes()
            stage.advance()
    columns = ["run", "set", "unknown", "value", "low", "high", "sentences"]
    return Comparison(
        list(runs),
        pd.concat(tables, ignore_index=True) if tables else score_table([]).assign(run=""),
        pd.DataFrame(tests, columns=DIFFERENCES).astype({"from": "Int64", "to": "Int64"}),
        pd.DataFrame(unknown, columns=columns),
        notes,
        list(unfinished),
    )


def only(run: FinishedRun) -> Comparison:
    """A run by itself, as it was scored."""
    return Comparison([run], run.scores, pd.DataFrame(columns=DIFFERENCES), pd.DataFrame())


class _SetComparison:
    """The runs on one test set.

    Buckets are those of the first run: the sentences of runs with others are counted anew.
    """

    def __init__(
        self,
        runs: list[FinishedRun],
        name: str,
        scores: Sequence[Score] | None,
        resamples: int,
    ) -> None:
        self.runs, self.name, self.resamples = runs, name, resamples
        frames = {run.label: run.scores[run.scores["set"] == name] for run in runs}
        known = set(pd.concat(frames.values())["score"])
        language = target_language(runs)
        own = choose_scores([key for key in REGISTERED if key in known], language=language)
        self.scores = own if scores is None else [each.for_language(language) for each in scores]
        asked = {score.key for score in scores or ()}
        chosen = {score.key: score for score in [*own, *self.scores]}
        self.edges = edges_of(runs[0], name)
        self.measured = {
            run.label: Measured(
                run.translations(name),
                list(chosen.values()),
                EvaluationConfig(edges=self.edges, resamples=resamples, confidence=run.confidence),
                computed=asked,
            )
            for run in runs
        }
        self.recounted = [run.label for run in runs if self._buckets_differ(run)]
        covered = [ids for run in runs if (ids := without_unknown(run, name)) is not None]
        self.no_unk = set.intersection(*covered) if covered else None  # shared by all shortlists
        self.narrowed = any(ids != self.no_unk for ids in covered)
        self.frame = pd.concat(
            [self._completed(label, frame, asked) for label, frame in frames.items()]
        )

    def _buckets_differ(self, run: FinishedRun) -> bool:
        """Whether a run's buckets have other edges than the first run's, or are of the other side."""
        known = {(bucket.first, bucket.last) for bucket in buckets(self.edges)}
        found = run.scores[run.scores["set"] == self.name].dropna(subset="from")
        pairs = zip(
            found["from"], found["to"].astype(object).where(found["to"].notna(), None), strict=True
        )
        sides = {each.evaluation.get("bucket_by", "source") for each in (run, self.runs[0])}
        return not set(pairs) <= known or (len(sides) > 1 and not run.external)

    def _completed(self, label: str, frame: pd.DataFrame, asked: set[str]) -> pd.DataFrame:
        """The scores of a run with those that depend on the other runs computed anew."""
        measured = self.measured[label]
        if not len(measured.ids):
            return frame
        rows: list[dict[str, Any]] = []
        everyone = np.ones(len(measured.ids), dtype=bool)
        if label in self.recounted:
            first = self.measured[self.runs[0].label]
            measured.lengths = first.lengths[np.searchsorted(first.ids, measured.ids)]
            frame = frame[frame["from"].isna()]
            for key in measured.scores:
                rows += [
                    row
                    for row in score_rows(measured, self.name, key, everyone, self.edges)
                    if "from" in row
                ]
        if self.narrowed and (frame["subset"] == "no_unk").any():
            shared = np.isin(measured.ids, list(self.no_unk or ()))
            frame = frame[frame["subset"] != "no_unk"]
            rows = [row for row in rows if row["subset"] != "no_unk"]
            rows += score_rows(measured, self.name, NO_UNK.key, shared, self.edges)
        for key in asked - set(frame["score"]):
            rows += score_rows(measured, self.name, key, everyone, self.edges)
        return pd.concat([frame, score_table(rows).assign(run=label)]) if rows else frame

    def differences(self) -> Iterator[dict[str, Any]]:
        """The tests of each score on the sentences for which all runs that have it have it."""
        if not self.resamples:
            return
        frame = self.frame.assign(key=keys_of(self.frame), bucket=bucket_names(self.frame))
        paired = [run.label for run in _paired(self.runs, frame)]
        alike: dict[Any, list[Score]] = {}
        for score in self.scores:
            having = tuple(label for label in paired if self.measured[label].has(score.key).any())
            if len(having) > 1:
                ids = [m.ids[m.has(score.key)] for m in map(self.measured.__getitem__, having)]
                common = functools.reduce(np.intersect1d, ids)
                alike.setdefault((having, tuple(common.tolist())), []).append(score)
        for (having, common), together in alike.items():
            if not common:
                continue
            places = {label: np.searchsorted(self.measured[label].ids, common) for label in having}
            tables = {
                label: {s.key: self.measured[label].tables[s.key][places[label]] for s in together}
                for label in having
            }
            found = significance.compare(
                tables,
                {score.key: score.combine for score in together},
                self.measured[having[0]].lengths[places[having[0]]],
                self.edges,
                resamples=self.resamples,
                confidence=max(run.confidence for run in self.runs),
            )
            for score in together:
                for row in found[score.key]:
                    if score.by_length or row["bucket"] == "all":
                        yield {"set": self.name, "score": score.key, **row}

    def unknown_words(self) -> Iterator[dict[str, Any]]:
        """BLEU by the number of words of a pair that the run's own shortlists lack."""
        for label, measured in self.measured.items():
            counts = np.minimum(measured.unknown, MAX_UNKNOWN)
            for number in range(MAX_UNKNOWN + 1):
                found = measured.of("bleu", counts == number)
                if found is not None:
                    name = f"{number}+" if number == MAX_UNKNOWN else str(number)
                    row = {"run": label, "set": self.name, "unknown": name}
                    yield row | found

    def notes(self) -> list[str]:
        """What a reader must know of the scores on this set."""
        notes = []
        renamed = {run.label: run.stored[self.name] for run in self.runs if self.name in run.stored}
        if renamed:
            stored = next(iter(renamed.values()))
            labels = ", ".join(renamed)
            notes.append(f"{self.name} is the test set {stored} of {labels}, with another text.")
        if self.no_unk is not None:
            notes.append(
                f"No UNK: {counted(len(self.no_unk), 'sentence')} covered by the shortlists of all "
                "runs, translated with <unk> forbidden."
                if self.no_unk
                else "No UNK is empty: the shortlists of all runs cover no sentence in common."
            )
        notes += [
            f"{each.title} signature: {each.signature}" for each in self.scores if each.signature
        ]
        pairs = max((len(measured.ids) for measured in self.measured.values()), default=0)
        if 0 < pairs < significance.FEWEST:
            notes.append(f"{counted(pairs, 'sentence')}: {significance.FEW_SENTENCES}.")
        if self.recounted:
            notes.append(f"By length in the buckets of the first run: {', '.join(self.recounted)}.")
        notes += dict.fromkeys(
            f"Search: {said}." for run in self.runs if (said := search_settings(run))
        )
        commits = {run.results.get("commit") for run in self.runs} - {None}
        if len(commits) > 1:
            notes.append("The runs are of different commits of the code.")
        return notes + self._correlation()

    def _correlation(self) -> list[str]:
        """How alignment error rate and BLEU go together over at least four runs."""
        whole = self.frame[self.frame["from"].isna() & (self.frame["subset"] == "all")]
        values = whole.pivot_table(index="run", columns="score", values="value")
        if not {"bleu", "alignment_error_rate"} <= set(values):
            return []
        pairs = values[["alignment_error_rate", "bleu"]].dropna()
        if len(pairs) < 4 or (pairs.nunique() == 1).any():
            return []
        r = stats.pearsonr(*pairs.to_numpy().T)
        low, high = r.confidence_interval()
        return [
            f"Over {len(pairs)} runs AER and BLEU correlate by {r.statistic:.2f} "
            f"(Pearson's r, 95 % interval {low:.2f} to {high:.2f})."
        ]


def bucket_names(frame: pd.DataFrame) -> pd.Series:
    """The name of the bucket of each row; `all` for whole sets."""
    pairs = zip(frame["from"], frame["to"], strict=True)
    names = [
        "all" if pd.isna(first) else Bucket(int(first), None if pd.isna(last) else int(last)).name
        for first, last in pairs
    ]
    return pd.Series(names, index=frame.index, dtype="str")


def bleu_by_length(frame: pd.DataFrame, test_set: str) -> pd.DataFrame:
    """The BLEU of all sentences in the buckets of a set, short sentences first."""
    wanted = (frame["set"] == test_set) & (frame["score"] == "bleu") & (frame["subset"] == "all")
    return frame[wanted & frame["from"].notna()].sort_values("from", kind="stable")


def smallest_bucket(frame: pd.DataFrame, test_set: str) -> int:
    """Number of sentences in the smallest bucket of a set; 0 without two buckets."""
    rows = bleu_by_length(frame, test_set)
    return int(rows["sentences"].min()) if rows["from"].nunique() > 1 else 0


def edges_of(run: FinishedRun, test_set: str) -> list[int]:
    """Last lengths of a run's buckets, as it was configured, or as its scores have them."""
    if run.evaluation.get("edges"):
        return list(run.evaluation["edges"])
    found = run.scores.loc[run.scores["set"] == test_set, "to"].dropna().unique()
    return sorted(map(int, found)) or list(EDGES)


def target_language(runs: Sequence[FinishedRun]) -> str | None:
    """The language that runs translate into, which scores of text are tokenised for."""
    languages = (run.flat.get("data.languages") for run in runs)
    return next((found[1] for found in languages if found), None)


def without_unknown(run: FinishedRun, test_set: str) -> set[int] | None:
    """Sentences that a run's shortlists cover; None if it has none, as with subwords."""
    rows = [] if run.external else run.translations(test_set)
    if all(row.get("no_unk") is None for row in rows):
        return None
    return {row["id"] for row in rows if row["no_unk"]}


def search_settings(run: FinishedRun) -> str:
    """The settings of the search that a run's translations were made with, such as `beam 12`."""
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


def _paired(runs: Sequence[FinishedRun], frame: pd.DataFrame) -> list[FinishedRun]:
    if len(runs) <= MAX_PAIRED:
        return list(runs)
    whole = frame[(frame["key"] == "bleu") & (frame["bucket"] == "all")].set_index("run")["value"]
    ranked = sorted(runs, key=lambda run: (not run.external, -whole.get(run.label, 0.0)))
    chosen = {run.label for run in ranked[:MAX_PAIRED]}
    return [run for run in runs if run.label in chosen]


def _read_system(
    name: str,
    files: Mapping[str, str],
    runs: Sequence[FinishedRun],
    scores: Sequence[Score] | None,
    resamples: int,
) -> FinishedRun:
    """Another system's translations, a file a test set, scored as those of the runs."""
    sentences: dict[tuple[str, str], list[dict[str, Any]]] = {}
    table: list[dict[str, Any]] = []
    for test_set, path in files.items():
        key = f"external.{name}.{test_set}"
        scored = [run for run in runs if run.translations(test_set)]
        if not scored:
            known = ", ".join(sets_of(runs)) or "none"
            raise InputError(f"{key}: no run was tested on {test_set}; the runs have: {known}")
        # a run of subwords does not know which sentences are without unknown words
        run = max(scored, key=lambda run: without_unknown(run, test_set) is not None)
        language = target_language([run])
        options = [run.flat.get("tokenizer.normalise", True), run.flat.get("tokenizer.characters")]
        moses = tokeniser(language or "en", bool(options[0]), bool(options[1]))
        sentences["translations", test_set] = read_external(
            path,
            run.translations(test_set),
            tokenised=any(
                run.flat.get(f"data.test.{test_set}.{key}") for key in ("tokenised", "grammar")
            ),
            tokenise=moses.tokenise,
            detokenise=moses.detokenise,
            key=key,
        )
        names = {score for each in scored for score in each.scores["score"]}
        known_scores = choose_scores(
            [each for each in REGISTERED if each in names], language=language
        )
        chosen = {score.key: score for score in known_scores}
        chosen |= {score.key: score.for_language(language) for score in scores or ()}
        edges = edges_of(run, test_set)
        settings = EvaluationConfig(edges=edges, resamples=resamples, confidence=run.confidence)
        rows = sentences["translations", test_set]
        measured = Measured(rows, list(chosen.values()), settings)
        everyone = np.ones(len(measured.ids), dtype=bool)
        for each in measured.scores:
            table += score_rows(measured, test_set, each, everyone, edges)
    return FinishedRun(name, {"name": name}, lines=sentences, table=score_table(table))
