"""What the runs on one test set are compared by: scores, curves, tests, and notes for the reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nmt.config import EvaluationConfig
from nmt.config.keys import EDGES
from nmt.evaluation import significance
from nmt.evaluation.constant_error import constant_error_records
from nmt.evaluation.curves import length_curves
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.scores.text import TextScore
from nmt.evaluation.summary import Measured, common_tables
from nmt.evaluation.table import score_table
from nmt.report.curves import Curves
from nmt.report.runs import FinishedRun, grouped, named
from nmt.utils.text import counted

MAX_PAIRED = 25  # runs compared pair by pair: 300 would make 44,850 pairs
MAX_UNKNOWN = 4  # unknown words of a pair: more are counted with these
UNKNOWN_WORDS = "unknown_words"  # subset: BLEU by the number of unknown words, in `from` and `to`
BREVITY = [REGISTERED["brevity_penalty"], REGISTERED["bleu_precisions"]]  # BLEU is their product


class SetComparison:
    """The runs on one test set. What is computed here has the buckets of the first run.

    Attributes:
        runs: that were scored on the set.
        tested: scores whose differences are tested.
        known: all scores, by key.
        measured: statistics of the sentences, by run.
        no_unk: sentences that the shortlists of all runs cover; None without shortlists.
        groups: labels of the runs that differ in their seed alone and have sentences.
        controls: names of the groups, other systems first: each is compared with those before it.
        scores: of all runs, as `Comparison.scores`.
    """

    def __init__(
        self,
        name: str,
        runs: Sequence[FinishedRun],
        wanted: Sequence[Score] | None,
        added: Sequence[Score],
        resamples: int,
    ) -> None:
        self.name = name
        self.runs = [run for run in runs if name in run.sets]
        stored = {run.label: run.scores[run.scores["set"] == name] for run in self.runs}
        keys = set(pd.concat(stored.values())["score"])
        language = next((run.language for run in self.runs if run.language), None)
        own = choose_scores([k for k in REGISTERED if k in keys] or None, language=language)
        chosen = own if wanted is None else [each.for_language(language) for each in wanted]
        self.tested = [*chosen, *added]
        self.known = {score.key: score for score in [*BREVITY, *own, *self.tested]}
        edges = (self.runs[0].config.get("evaluation") or {}).get("edges") or list(EDGES)
        self.settings = EvaluationConfig(edges=edges, resamples=resamples)
        self.measured = {
            run.label: Measured(
                run.translations(name),
                list(self.known.values()),
                self.settings,
                computed=None if run.external else [score.key for score in wanted or ()],
            )
            for run in self.runs
        }
        self.groups = {
            group: [run.label for run in members]
            for group, members in grouped(self.runs).items()
            if all(len(self.measured[run.label].ids) for run in members)
        }
        systems = {run.label for run in self.runs if run.external}
        self.controls = sorted(self.groups, key=lambda name: name not in systems)
        covered = [ids for run in self.runs if (ids := run.covered(name)) is not None]
        self.no_unk = set.intersection(*covered) if covered else None
        outdated = {NO_UNK.key} if any(ids != self.no_unk for ids in covered) else set()
        self.scores = pd.concat(
            [self._completed(label, frame, outdated) for label, frame in stored.items()]
        )

    def _completed(self, label: str, frame: pd.DataFrame, outdated: set[str]) -> pd.DataFrame:
        """The stored scores of a run, with those that it lacks or that depend on the other runs."""
        measured = self.measured[label]
        if not len(measured.ids):
            return frame
        everyone = np.ones(len(measured.ids), dtype=bool)
        shared = everyone if self.no_unk is None else np.isin(measured.ids, list(self.no_unk))
        anew = outdated | (set(measured.scores) - set(frame["key"]))
        rows: list[dict[str, Any]] = []
        for key in (key for key in measured.scores if key in anew):
            inside = shared if key == NO_UNK.key else everyone
            rows += measured.rows(self.name, key, inside)
        head = {"set": self.name, "subset": UNKNOWN_WORDS, "score": "bleu"}
        unknown = np.minimum(measured.unknown, MAX_UNKNOWN)  # words that the run's shortlists lack
        for number in range(MAX_UNKNOWN + 1):
            if (numbers := measured.of("bleu", unknown == number)) is not None:
                last = None if number == MAX_UNKNOWN else number
                rows.append(head | {"from": number, "to": last} | numbers)
        table = named(score_table(rows)).assign(run=label)
        return pd.concat([frame[~frame["key"].isin(anew)], table])

    def curves(self) -> Curves:
        """The curves of the groups of seeds, and of systems of a constant error rate."""
        members = {
            ("score", name): [self.measured[label] for label in labels]
            for name, labels in self.groups.items()
        }
        by_label = {run.label: run for run in self.runs}
        for name, (first, *_) in self.groups.items():
            records = by_label[first].translations(self.name)
            if any(record["reference"] for record in records):
                members["constant", name] = [self._constant(by_label[first])]
        tested = [score.key for score in self.tested if score.by_length]
        keys = dict.fromkeys(["bleu", "brevity_penalty", "bleu_precisions", NO_UNK.key, *tested])
        return length_curves(members, keys)

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
        """The tests of each score, on the sentences for which all compared runs have that score."""
        resamples = self.settings.resamples
        paired = [run.label for run in best_runs(self.runs, self.scores)]
        for score in self.tested if resamples else ():
            having = {label: self.measured[label] for label in paired}
            having = {label: each for label, each in having.items() if each.has(score.key).any()}
            if len(having) < 2:
                continue
            lengths, tables = common_tables([*having.values()], score.key)
            if not len(lengths):
                continue
            compared, edges = dict(zip(having, tables, strict=True)), self.settings.edges or ()
            for row in significance.compare(compared, score.combine, lengths, edges, resamples):
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
        notes += [f"{s.title} signature: {s.signature}" for s in self.tested if s.signature]
        pairs = max((len(measured.ids) for measured in self.measured.values()), default=0)
        if 0 < pairs < significance.FEWEST:
            notes.append(f"{counted(pairs, 'sentence')}: {significance.FEW_SENTENCES}.")
        if len(self.runs) > MAX_PAIRED:
            notes.append(
                f"Of {len(self.runs)} runs, the {MAX_PAIRED} of the highest BLEU (other systems first) "
                "are compared in pairs and sentence by sentence; runs= takes others."
            )
        searches = dict.fromkeys(run.search for run in self.runs)
        notes += [f"Search: {settings}." for settings in searches if settings]
        if len({run.results.get("commit") for run in self.runs} - {None}) > 1:
            notes.append("The runs are of different commits of the code.")
        return notes


def best_runs(runs: Sequence[FinishedRun], scores: pd.DataFrame) -> list[FinishedRun]:
    """At most MAX_PAIRED of some runs: other systems, then the runs of the highest BLEU."""
    if len(runs) <= MAX_PAIRED:
        return list(runs)
    scores = scores[(scores["bucket"] == "all") & (scores["key"] == "bleu")]
    values = scores.set_index("run")["value"]
    ranked = sorted(runs, key=lambda run: (not run.external, -values.get(run.label, 0.0)))
    chosen = {run.label for run in ranked[:MAX_PAIRED]}
    return [run for run in runs if run.label in chosen]
