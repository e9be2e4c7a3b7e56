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
from scipy import stats

from nmt.config import CompareConfig, EvaluationConfig
from nmt.config.keys import CONFIDENCE, EDGES
from nmt.evaluation import significance
from nmt.evaluation.buckets import Bucket
from nmt.evaluation.constant_error import constant_error_records
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.scores.text import TextScore
from nmt.evaluation.summary import Measured, score_rows
from nmt.evaluation.table import score_table
from nmt.report.curves import CURVES, RETENTION, SetCurves, curve_frame
from nmt.report.runs import FinishedRun, find_runs, grouped, separate_texts
from nmt.report.systems import add_scores, read_systems
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage, counted

MAX_PAIRED = 25  # runs compared pair by pair: 300 would make 44,850 pairs
MAX_UNKNOWN = 4  # unknown words of a pair: more are counted with these
DIFFERENCES = [
    *("set", "score", "a", "b", "bucket", "from", "to", "sentences", "score_a", "score_b"),
    *("delta", "low", "high", "p", "p_corrected", "p_randomised", "p_randomised_corrected"),
]
BREVITY = [REGISTERED["brevity_penalty"], REGISTERED["bleu_precisions"]]  # BLEU is their product
UNKNOWN_WORDS = ["run", "set", "unknown", "value", "low", "high", "sentences"]


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
        unknown_words: BLEU by the number of unknown words, in `UNKNOWN_WORDS`.
        notes: what a reader must know of a test set, by its name.
        unfinished: folders of runs that have not finished.
    """

    runs: list[FinishedRun]
    scores: pd.DataFrame
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    curves: pd.DataFrame = field(default_factory=lambda: curve_frame([], CURVES))
    retention: pd.DataFrame = field(default_factory=lambda: curve_frame([], RETENTION))
    differences: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=DIFFERENCES))
    unknown_words: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=UNKNOWN_WORDS))
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

    def whole(self, test_set: str) -> pd.DataFrame:
        """The scores on a whole test set."""
        frame = self.scores
        return frame[(frame["set"] == test_set) & (frame["bucket"] == "all")]

    def by_length(self, test_set: str) -> pd.DataFrame:
        """The scores on the buckets of a test set, short sentences first."""
        frame = self.scores
        frame = frame[(frame["set"] == test_set) & (frame["bucket"] != "all")]
        return frame.sort_values("from", kind="stable")

    def present(self, test_set: str) -> list[FinishedRun]:
        """The runs that were scored on a test set."""
        scored = set(self.scores.loc[self.scores["set"] == test_set, "run"])
        return [run for run in self.runs if run.label in scored]

    def paired(self, test_set: str) -> list[FinishedRun]:
        """The runs that are compared pair by pair and sentence by sentence: at most MAX_PAIRED.

        Other systems come first, then the runs of the highest BLEU.
        """
        return _paired(self.present(test_set), self.whole(test_set))

    @property
    def level(self) -> str:
        """Confidence levels of the runs' intervals, such as `95 %`."""
        return f"{100 * CONFIDENCE:g} %"


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
    found, unfinished = find_runs(config.runs)
    found = separate_texts(found)
    found = separate_texts([*found, *read_systems(config, found)])
    added = add_scores(files, found)
    return compare_runs(found, wanted, added, config.resamples, unfinished, shown=shown)


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
    parts = []
    with Stage("comparing", len(names), "test set", shown=shown) as stage:
        for name in names:
            present = [run for run in runs if name in run.sets]
            parts.append(_TestSet(name, present, wanted, added, resamples))
            stage.advance()
    tables = [part.scores for part in parts] or [score_table([]).assign(run="")]
    frame = _with_names(pd.concat(tables, ignore_index=True))
    about = describe(frame, runs, added)
    kept = {key for key in about if about[key]["higher_is_better"]} | {s.key for s in added}
    curves = [part.curves() for part in parts]
    differences = [row for part in parts for row in part.differences()]
    unknown = [row for part in parts for row in part.unknown_words()]
    return Comparison(
        runs=list(runs),
        scores=frame,
        about=about,
        curves=curve_frame([row for c in curves for row in c.rows()], CURVES),
        retention=curve_frame([row for c in curves for row in c.retention(kept)], RETENTION),
        differences=pd.DataFrame(differences, columns=DIFFERENCES).astype(
            {"from": "Int64", "to": "Int64"}
        ),
        unknown_words=pd.DataFrame(unknown, columns=UNKNOWN_WORDS),
        notes={part.name: part.notes() for part in parts},
        unfinished=list(unfinished),
    )


def only(run: FinishedRun) -> Comparison:
    """A run by itself, as it was scored."""
    frame = _with_names(run.scores)
    return Comparison([run], frame, describe(frame, [run]))


def describe(
    frame: pd.DataFrame, runs: Sequence[FinishedRun], added: Sequence[Score] = ()
) -> dict[str, dict[str, Any]]:
    """How to show the scores of a frame, by key.

    A score of the user's own is described by results.json: its code is not imported.
    """
    stored = {k: about for run in runs for k, about in (run.results.get("scores") or {}).items()}
    known = {"bleu": REGISTERED["bleu"], NO_UNK.key: NO_UNK, **REGISTERED}
    about = {
        **{key: score.description() for key, score in known.items()},
        **{key: description for key, description in stored.items() if key not in known},
        **{score.key: score.description() for score in added},
    }
    plain = {"unit": "", "digits": 2, "higher_is_better": None}
    present = set(frame["key"])
    order = [key for key in about if key in present] + sorted(present - set(about))
    found = {key: plain | {"title": key} | about.get(key, {}) for key in order}
    if NO_UNK.key in found:
        found["bleu"]["title"] += ", all"
    return found


class _TestSet:
    """The runs on one test set.

    The buckets are those of the first run: sentences of runs with others are counted anew.

    Attributes:
        scores: the scores of all runs, as `Comparison.scores`.
    """

    def __init__(
        self,
        name: str,
        runs: list[FinishedRun],
        wanted: Sequence[Score] | None,
        added: Sequence[Score],
        resamples: int,
    ) -> None:
        self.name, self.runs, self.resamples = name, runs, resamples
        frames = {run.label: run.scores[run.scores["set"] == name] for run in runs}
        known = set(pd.concat(frames.values())["score"])
        language = next((run.language for run in runs if run.language), None)
        keys = [key for key in REGISTERED if key in known] if known else None
        own = choose_scores(keys, language=language)
        tested = own if wanted is None else [each.for_language(language) for each in wanted]
        self.tested = [*tested, *added]
        asked = {score.key for score in [*(wanted or ()), *added, *BREVITY]}
        self.edges = edges_of(runs[0], name)
        self.measured = {
            run.label: Measured(
                run.translations(name),
                list({s.key: s for s in [*BREVITY, *own, *self.tested]}.values()),
                EvaluationConfig(edges=self.edges, resamples=resamples),
                computed=None if run.external else asked,
            )
            for run in runs
        }
        settings = [edges_of(run, name) for run in runs]
        self.recounted = [
            run.label
            for run, each in zip(runs, settings, strict=True)
            if each != settings[0] and not run.external
        ]
        covered = [ids for run in runs if (ids := without_unknown(run, name)) is not None]
        self.no_unk = set.intersection(*covered) if covered else None  # in the shortlists of all
        self.narrowed = any(ids != self.no_unk for ids in covered)
        lacking = {run.label: set(self.measured[run.label].scores) for run in runs if run.external}
        self.scores = pd.concat(
            [
                self._completed(label, frame, lacking.get(label, asked))
                for label, frame in frames.items()
            ]
        )

    def _completed(self, label: str, frame: pd.DataFrame, asked: set[str]) -> pd.DataFrame:
        """The scores of a run, with those computed anew that depend on the other runs."""
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
                every = score_rows(measured, self.name, key, everyone, self.edges)
                rows += [row for row in every if "from" in row]
        if self.narrowed and (frame["subset"] == "no_unk").any():
            shared = np.isin(measured.ids, list(self.no_unk or ()))
            frame = frame[frame["subset"] != "no_unk"]
            rows = [row for row in rows if row["subset"] != "no_unk"]
            rows += score_rows(measured, self.name, NO_UNK.key, shared, self.edges)
        lacking = asked - set(_with_names(frame)["key"])
        for key in [key for key in measured.scores if key in lacking]:
            rows += score_rows(measured, self.name, key, everyone, self.edges)
        return pd.concat([frame, score_table(rows).assign(run=label)]) if rows else frame

    def curves(self) -> SetCurves:
        """The curves of the groups of seeds, and of systems of a constant error rate."""
        groups = {
            name: {run.label: self.measured[run.label] for run in members}
            for name, members in grouped(self.runs).items()
            if all(len(self.measured[run.label].ids) for run in members)
        }
        constant = {
            name: self._constant(next(iter(runs)))
            for name, runs in groups.items()
            if any(record["reference"] for record in self._records(next(iter(runs))))
        }
        tested = [score.key for score in self.tested if score.by_length]
        keys = dict.fromkeys(["bleu", "brevity_penalty", "bleu_precisions", NO_UNK.key, *tested])
        return SetCurves(self.name, groups, constant, list(keys))

    def _constant(self, label: str) -> Measured:
        """A system with the BLEU of a run and the same error rate per word at every length.

        It has no scores of detokenised text: its errors are made in tokens.
        """
        records = constant_error_records(self._records(label))
        for record in records:  # its scores are those of the whole set alone
            record.pop("bleu_stats_no_unk", None)
        measured = self.measured[label]
        settings = EvaluationConfig(edges=self.edges, resamples=self.resamples)
        scores = [each for each in measured.scores.values() if not isinstance(each, TextScore)]
        system = Measured(records, scores, settings, computed=())
        system.lengths = measured.lengths
        return system

    def _records(self, label: str) -> list[dict[str, Any]]:
        return next(run for run in self.runs if run.label == label).translations(self.name)

    def differences(self) -> Iterator[dict[str, Any]]:
        """The tests of each score, on the sentences for which all runs that have it have it."""
        if not self.resamples:
            return
        frame = _with_names(self.scores)
        paired = [run.label for run in _paired(self.runs, frame[frame["bucket"] == "all"])]
        alike: dict[Any, list[Score]] = {}
        for score in self.tested:
            having = tuple(label for label in paired if self.measured[label].has(score.key).any())
            if len(having) > 1:
                ids = [m.ids[m.has(score.key)] for m in map(self.measured.__getitem__, having)]
                common = functools.reduce(np.intersect1d, ids)
                if len(common):
                    alike.setdefault((having, tuple(common.tolist())), []).append(score)
        for (having, common), together in alike.items():
            places = {label: np.searchsorted(self.measured[label].ids, common) for label in having}
            found = significance.compare(
                {
                    label: {
                        s.key: self.measured[label].tables[s.key][places[label]] for s in together
                    }
                    for label in having
                },
                {score.key: score.combine for score in together},
                self.measured[having[0]].lengths[places[having[0]]],
                self.edges,
                resamples=self.resamples,
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
                    yield {"run": label, "set": self.name, "unknown": name} | found

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
            f"{each.title} signature: {each.signature}" for each in self.tested if each.signature
        ]
        pairs = max((len(measured.ids) for measured in self.measured.values()), default=0)
        if 0 < pairs < significance.FEWEST:
            notes.append(f"{counted(pairs, 'sentence')}: {significance.FEW_SENTENCES}.")
        if self.recounted:
            notes.append(f"By length in the buckets of the first run: {', '.join(self.recounted)}.")
        searches = dict.fromkeys(map(search_settings, self.runs))
        notes += [f"Search: {settings}." for settings in searches if settings]
        if len({run.results.get("commit") for run in self.runs} - {None}) > 1:
            notes.append("The runs are of different commits of the code.")
        return notes + self._correlation()

    def _correlation(self) -> list[str]:
        """How alignment error rate and BLEU go together over at least four runs."""
        whole = self.scores[self.scores["from"].isna() & (self.scores["subset"] == "all")]
        values = whole.pivot_table(index="run", columns="score", values="value")
        values = values.reindex(columns=["alignment_error_rate", "bleu"]).dropna()
        if len(values) < 4 or (values.nunique() == 1).any():
            return []
        r = stats.pearsonr(*values.to_numpy().T)
        low, high = r.confidence_interval()
        return [
            f"Over {len(values)} runs AER and BLEU correlate by {r.statistic:.2f} "
            f"(Pearson's r, 95 % interval over runs {low:.2f} to {high:.2f})."
        ]


def _with_names(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the columns `key` and `bucket` of `Comparison.scores`."""
    pairs = zip(frame["from"], frame["to"], strict=True)
    buckets = [
        "all" if pd.isna(first) else Bucket(int(first), None if pd.isna(last) else int(last)).name
        for first, last in pairs
    ]
    whole = frame["subset"] == "all"
    key = frame["score"].where(whole, frame["score"] + "_" + frame["subset"])
    return frame.assign(key=key, bucket=pd.Series(buckets, index=frame.index, dtype="str"))


def smallest_bucket(frame: pd.DataFrame, test_set: str) -> int:
    """Number of sentences in the smallest bucket of a set; 0 without two buckets."""
    rows = frame[(frame["set"] == test_set) & (frame["key"] == "bleu") & (frame["bucket"] != "all")]
    return int(rows["sentences"].min()) if rows["from"].nunique() > 1 else 0


def edges_of(run: FinishedRun, test_set: str) -> list[int]:
    """Last lengths of a run's buckets, as it was configured, or as its scores have them."""
    if run.evaluation.get("edges"):
        return list(run.evaluation["edges"])
    found = run.scores.loc[run.scores["set"] == test_set, "to"].dropna().unique()
    return sorted(map(int, found)) or list(EDGES)


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


def _paired(runs: Sequence[FinishedRun], whole: pd.DataFrame) -> list[FinishedRun]:
    if len(runs) <= MAX_PAIRED:
        return list(runs)
    values = whole[whole["key"] == "bleu"].set_index("run")["value"]
    ranked = sorted(runs, key=lambda run: (not run.external, -values.get(run.label, 0.0)))
    chosen = {run.label for run in ranked[:MAX_PAIRED]}
    return [run for run in runs if run.label in chosen]
