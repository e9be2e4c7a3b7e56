"""Compares runs and other systems: one frame of scores, curves over length, and a test of each pair.

The statistics come from `nmt.evaluation`. This file selects the sentences and the pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, combinations
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from nmt.config.commands import CompareConfig
from nmt.config.keys import CONFIDENCE, EDGES
from nmt.config.schema import EvaluationConfig
from nmt.evaluation import significance
from nmt.evaluation.constant_error import measure_constant_error
from nmt.evaluation.domains import (
    adjusted_kernel,
    comparable_domains,
    kernel_of_domain,
    shares_at,
)
from nmt.evaluation.length_curve import FEWEST, Curve, LengthScale, length_curves
from nmt.evaluation.position import POSITION_OF
from nmt.evaluation.records import Record, in_order
from nmt.evaluation.resampling import count_documents
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.scores.text import missing_tokenizer
from nmt.evaluation.scores_csv import score_table, tidy
from nmt.evaluation.summary import Measured, common_sentences, compute_statistics
from nmt.report.retention import (
    ADJUSTED,
    CURVES,
    RETENTION,
    Curves,
    curve_rows,
    domain_rows,
    retention_rows,
)
from nmt.report.runs import FinishedRun, find_runs, grouped, separate_texts
from nmt.report.systems import add_scores, read_scores, read_systems
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage
from nmt.utils.text import counted

DIFFERENCES = (
    "set",
    "score",
    "a",
    "b",
    "bucket",
    "from",
    "to",
    "sentences",
    "score_a",
    "score_b",
    "delta",
    "low",
    "high",
    "interval",
    "p",
    "p_corrected",
)
TABLES = {"curves": CURVES, "retention": RETENTION, "differences": DIFFERENCES}
LEVEL = f"{100 * CONFIDENCE:g} %"
REPEATED = 5  # equal outputs of different sentences that a note mentions
FEWEST_DOCUMENTS = 20  # with fewer a note says that intervals are too narrow
CHANGED_MIX = 0.1  # change of a domain's share that a note mentions
MAX_PAIRED = 25  # runs compared pair by pair: 300 runs would give 44,850 pairs
BREVITY = [REGISTERED["brevity_penalty"], REGISTERED["bleu_precisions"]]  # BLEU is their product


@dataclass(frozen=True)
class Comparison:
    """Runs and other systems on their test sets.

    `scores` has the columns of `scores.csv`, and `run`, `key` (`bleu_no_unk` for BLEU without unknown
    words) and `bucket` (`all` for the whole set). Scores without unknown words use the sentences that
    the shortlists of all runs cover.
    """

    runs: list[FinishedRun]  # with unique labels; other systems last
    scores: pd.DataFrame
    about: dict[str, dict[str, Any]]  # `Score.description`s by key
    curves: pd.DataFrame
    retention: pd.DataFrame
    differences: pd.DataFrame
    notes: dict[str, list[str]]  # for readers, by test set

    @cached_property
    def sets(self) -> list[str]:
        """Names of the test sets; first the one whose smallest length bucket has most sentences.

        Sets of joined inputs come last.
        """
        buckets = self.scores[(self.scores["key"] == "bleu") & self.scores["from"].notna()]
        sizes = buckets.groupby("set").agg(count=("from", "nunique"), least=("sentences", "min"))
        least = sizes.loc[sizes["count"] > 1, "least"]
        names = dict.fromkeys(self.scores["set"])
        return sorted(names, key=lambda name: (POSITION_OF in name, -least.get(name, 0)))

    @cached_property
    def groups(self) -> dict[str, list[FinishedRun]]:
        """Runs that differ only in their seed, by the name of the group."""
        return grouped(self.runs)

    def unit(self, test_set: str) -> str:
        """What the lengths of a test set count, in the plural."""
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

    def by_length(self, test_set: str) -> pd.DataFrame:
        """Returns the scores on the length buckets of a test set."""
        return self.buckets[self.buckets["set"] == test_set]

    def present(self, test_set: str) -> list[FinishedRun]:
        """Returns the runs on a test set."""
        return [run for run in self.runs if test_set in run.sets]

    def paired(self, test_set: str) -> list[FinishedRun]:
        """Returns the runs that are compared pair by pair and sentence by sentence."""
        return best_runs(self.present(test_set), self.whole(test_set))


def build_comparison(config: CompareConfig, shown: bool = False) -> Comparison:
    """Compares runs with each other and with other systems.

    Args:
        config: runs, systems, scores and resamples.
        shown: show progress.

    Raises:
        InputError: if a pattern matches no finished run, a file cannot be read, or a score or test
            set is unknown.
    """
    if not config.runs and not config.systems:
        raise InputError("runs: must be given, or systems with source and reference")
    given = config.scores
    files = {k: v for k, v in given.items() if v} if isinstance(given, Mapping) else {}
    wanted = None if given is None or files else list(given)
    choose_scores(wanted or [], "scores")  # a misspelt score is refused before the runs are read
    runs = find_runs(config.runs)
    separate_texts(runs)
    tables = read_scores(files, several=len(runs) + len(config.systems or ()) > 1)
    runs += read_systems(config, runs, shown=shown)
    separate_texts(runs)
    added = add_scores(tables, runs)
    return compare_finished(runs, wanted, added, config.resamples, shown=shown)


def compare_finished(
    runs: Sequence[FinishedRun],
    wanted: Sequence[str] | None = None,
    added: Sequence[Score] = (),
    resamples: int = 1000,
    *,
    shown: bool = False,
) -> Comparison:
    """Compares runs that were read.

    Args:
        runs: with unique labels.
        wanted: names of the scores to test (`choose_scores`), also computed for runs that lack them;
            None: all that the runs have.
        added: further scores, whose statistics are in the records.
        resamples: bootstrap resamples behind intervals and tests; 0: no tests.
        shown: show progress.
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
            notes[name] = [*part.notes(), *part.domain_notes(), *part.retention_notes(curves)]
            higher = [key for key, score in part.known.items() if score.higher_is_better]
            kept = [*higher, *(score.key for score in added)]
            of_set: dict[str, list[Iterator[dict[str, Any]]]] = {
                "curves": [curve_rows(curves, part.groups, part.controls, part.curves_of_pair)],
                "retention": [retention_rows(curves, kept, part.scale)],
                "differences": [part.differences()],
            }
            for domain, own in by_domain.items():
                of_set["curves"].append(domain_rows(own, domain))
                of_set["retention"].append(retention_rows(own, kept, part.scale, domain))
            for kind, parts in of_set.items():
                rows[kind] += [{"set": name, **row} for row in chain.from_iterable(parts)]
            stage.advance()
    frame = pd.concat(scores, ignore_index=True)
    tables = {kind: tidy(rows[kind], columns) for kind, columns in TABLES.items()}
    named = choose_scores(wanted or [], "scores")
    about = describe(frame, runs, [*named, *added])
    return Comparison(list(runs), frame, about, **tables, notes=notes)


def describe(
    frame: pd.DataFrame, runs: Sequence[FinishedRun], own: Sequence[Score]
) -> dict[str, dict[str, Any]]:
    """Describes how to show the scores of a frame, by key.

    For a score of the user that is not in `own`, results.json has the description: its code is not
    imported.
    """
    known = [REGISTERED["bleu"], NO_UNK, *REGISTERED.values(), *own]
    about = {score.key: score.description() for score in known}
    for run in runs:
        about |= (run.results.get("scores") or {}) | about
    present = set(frame["key"])
    shown = {key: description for key, description in about.items() if key in present}
    if NO_UNK.key in shown:
        shown["bleu"]["title"] += ", all"
    return shown


def best_runs(runs: Sequence[FinishedRun], whole: pd.DataFrame) -> list[FinishedRun]:
    """Selects at most MAX_PAIRED runs: first other systems, then the highest BLEU on the set."""
    bleu = whole[whole["key"] == "bleu"].set_index("run")["value"]
    ranked = sorted(runs, key=lambda run: (not run.external, -bleu.get(run.label, 0.0)))
    chosen = {run.label for run in ranked[:MAX_PAIRED]}
    return [run for run in runs if run.label in chosen]


def repetition_notes(name: str, records: Sequence[Record]) -> list[str]:
    """Says how many outputs of a system are empty, and whether it repeats one output, as a refusal."""
    outputs = Counter(
        record.get("detokenised", " ".join(record["hypothesis"])).strip()
        for record in records
        if record["source"]
    )
    empty = outputs.pop("", 0)
    sources = {tuple(record["source"]) for record in records}
    [(text, count)] = outputs.most_common(1) or [("", 0)]
    parts = [f"{counted(empty, 'output')} empty"] if empty else []
    if count >= REPEATED and len(sources) > len(records) - count:
        parts.append(f"{count} outputs are {shorten(text, 60, placeholder='…')!r}")
    return [f"{name}: {'; '.join(parts)}."] if parts else []


class SetComparison:
    """The runs on one test set; scores computed here use the length buckets of the first run.

    Attributes:
        tested: scores whose differences are tested; `known`: all scores, by key.
        keys: keys of the tested scores that have curves.
        measured: statistics of the sentences, by run.
        domains: names of the domains; empty unless every sentence has one.
        no_unk: the sentences that the shortlists of all runs cover; None without shortlists.
        outdated: keys whose stored scores are of other sentences than these.
        groups: the groups of seeds whose runs all have sentences.
        controls: names of the groups, other systems first; each is compared with those before it.
    """

    def __init__(
        self,
        name: str,
        runs: Sequence[FinishedRun],
        wanted: Sequence[str] | None,
        added: Sequence[Score],
        resamples: int,
        *,
        shown: bool = False,
    ) -> None:
        self.name = name
        self.shown = shown
        self.runs = [run for run in runs if name in run.sets]
        self.stored = pd.concat([run.scores.assign(run=run.label) for run in self.runs])
        self.stored = self.stored[self.stored["set"] == name]
        keys = set(self.stored["score"])
        language = next((run.language for run in self.runs if run.language), None)
        stored = [key for key in REGISTERED if key in keys]
        chosen = choose_scores(stored or None if wanted is None else wanted, "scores", language)
        own = choose_scores(stored, language=language)
        self.tested = [*chosen, *added]
        self.keys = [score.key for score in self.tested if score.by_length]
        self.known = {score.key: score for score in [*BREVITY, *own, *self.tested]}
        edges = (self.runs[0].config.get("evaluation") or {}).get("edges") or EDGES
        scales = (run.scales[name] for run in self.runs if name in run.scales)
        self.scale = next(scales, LengthScale(edges=edges))
        self.settings = EvaluationConfig(edges=list(self.scale.edges), resamples=resamples)
        named = () if wanted is None else chosen
        for score in self.known.values():
            if score.slow or score.signature is not None:
                lacking = {
                    run.label: run.translations(name)
                    for run in self.runs
                    if run.external or score in named or not score.slow
                }
                compute_statistics(lacking, score, shown=shown)
        self.measured = {
            run.label: Measured(
                run.translations(name), [*self.known.values()], self.settings, compute_slow=False
            )
            for run in self.runs
        }
        found = [each.domains for each in self.measured.values() if each.domains is not None]
        self.domains = sorted(set(found[0].tolist())) if len(found) == len(self.measured) else []
        self.groups = {
            group: members
            for group, members in grouped(self.runs).items()
            if all(len(self.measured[run.label].ids) for run in members)
        }
        systems = {run.label for run in self.runs if run.external}
        self.controls = sorted(self.groups, key=lambda name: name not in systems)
        covered = [ids for run in self.runs if (ids := run.covered(name)) is not None]
        self.no_unk = set.intersection(*covered) if covered else None
        self.outdated = {NO_UNK.key} if any(ids != self.no_unk for ids in covered) else set()
        for measured in self.measured.values() if covered else ():
            others = ~np.isin(measured.ids, list(self.no_unk or ()))
            measured.tables[NO_UNK.key][others] = np.nan

    def completed_scores(self) -> pd.DataFrame:
        """Returns stored and missing scores; No UNK is on the sentences that all runs cover."""
        tables = []
        for label, measured in self.measured.items():
            stored = self.stored[self.stored["run"] == label]
            keys = list(measured.scores) if len(measured.ids) else []  # without: as stored
            anew = [key for key in keys if key in self.outdated or key not in set(stored["key"])]
            rows = [row for key in anew for row in measured.rows(self.name, key)]
            tables += [stored[~stored["key"].isin(anew)], score_table(rows).assign(run=label)]
        return pd.concat(tables)

    def curves(self) -> Curves:
        """Computes the curves of the groups, and of systems with a constant error rate."""
        members = {("score", name): self.measured_of(name) for name in self.groups}
        records = {run.label: run.translations(self.name) for run in self.runs}
        runs = [
            run.label
            for of_group in self.groups.values()
            for run in of_group
            if any(record["reference"] for record in records[run.label])
        ]
        simulated = measure_constant_error(
            [records[label] for label in runs],
            [self.measured[label] for label in runs],
            shown=self.shown,
        )
        constant = dict(zip(runs, simulated, strict=True))
        for name, of_group in self.groups.items():
            if all(run.label in constant for run in of_group):
                members["constant", name] = [constant[run.label] for run in of_group]
        keys = dict.fromkeys(["bleu", "brevity_penalty", "bleu_precisions", NO_UNK.key, *self.keys])
        return length_curves(members, keys, self.scale.weights, together=False)

    def curves_by_domain(self) -> dict[str, Curves]:
        """Computes curves of the groups in each domain, and adjusted to one mix of them, if known."""
        members = {("score", name): self.measured_of(name) for name in self.groups}
        weights = {
            domain: partial(kernel_of_domain, self.scale, domain=domain) for domain in self.domains
        }
        if len(weights) > 1:
            weights[ADJUSTED] = partial(adjusted_kernel, self.scale)
        return {
            domain: length_curves(members, self.keys, of_domain, together=False)
            for domain, of_domain in weights.items()
        }

    def curves_of_pair(self, key: str, name: str, other: str) -> tuple[Curve, Curve] | None:
        """Computes the curves of two groups on the sentences for which both have the score."""
        pair = {each: self.measured_of(each) for each in (name, other)}
        curves = length_curves(pair, [key], self.scale.weights).get(key)
        return None if curves is None else (curves[name], curves[other])

    def measured_of(self, group: str) -> list[Measured]:
        """Returns the statistics of a group's runs."""
        return [self.measured[run.label] for run in self.groups[group]]

    def differences(self) -> Iterator[dict[str, Any]]:
        """Yields the tests of each score, of each pair on the sentences for which both have it."""
        resamples = self.settings.resamples
        edges = self.settings.edges or ()
        whole = self.stored[self.stored["bucket"] == "all"]
        paired = {run.label: self.measured[run.label] for run in best_runs(self.runs, whole)}
        for score in self.tested if resamples else ():
            having = {label: each for label, each in paired.items() if each.has(score.key).any()}
            sentences = {each.ids[each.has(score.key)].tobytes() for each in having.values()}
            # All at once if all have the same sentences: the resamples of a run are computed once.
            compared = (
                [having] if len(sentences) == 1 else map(dict, combinations(having.items(), 2))
            )
            for part in compared:
                common = common_sentences([*part.values()], score.key)
                if not len(common.ids):
                    continue
                for row in significance.paired_differences(
                    dict(zip(part, common.tables, strict=True)),
                    score.combine,
                    common.lengths,
                    edges if score.by_length else None,
                    resamples,
                    common.documents,
                ):
                    yield {"score": score.key, **row}

    def notes(self) -> list[str]:
        """Returns what a reader must know about the scores on this set."""
        notes = [
            f"{self.name}: {run.stored[self.name]} of {run.label}, renamed since its text differs."
            for run in self.runs
            if self.name in run.stored
        ]
        if self.no_unk:
            notes.append(
                f"No UNK: {counted(len(self.no_unk), 'sentence')} covered by the shortlists of all "
                "runs, translated with <unk> forbidden."
            )
        notes += [f"{s.title} signature: {s.signature}" for s in self.tested if s.signature]
        languages = {run.language for run in self.runs}
        notes += [note for note in map(missing_tokenizer, sorted(map(str, languages))) if note]
        pairs = max((len(measured.ids) for measured in self.measured.values()), default=0)
        if 0 < pairs < significance.FEWEST:
            few = f"intervals of fewer than {significance.FEWEST} sentences are too narrow"
            notes.append(f"{counted(pairs, 'sentence')}: {few}.")
        documents = [count_documents(each.documents) for each in self.measured.values()]
        if (known := [count for count in documents if count]) and len(known) == len(documents):
            drawn = f"Intervals draw {counted(min(known), 'document')} whole."
            few = "Intervals of so few documents contain the true value less often than they say."
            notes.append(f"{drawn} {few}" if min(known) < FEWEST_DOCUMENTS else drawn)
        notes += self.copy_notes()
        for run in self.runs if self.name in self.runs[0].records else ():
            notes += repetition_notes(run.label, run.translations(self.name))
        if len(self.runs) > MAX_PAIRED:
            notes.append(
                f"Of {len(self.runs)} runs, the {MAX_PAIRED} with the highest BLEU (other systems first) "
                "are compared in pairs and sentence by sentence; runs= selects others."
            )
        searches = dict.fromkeys(run.search for run in self.runs)
        notes += [f"Search: {settings}." for settings in searches if settings]
        if len({run.results.get("commit") for run in self.runs} - {None}) > 1:
            notes.append("The runs used different commits of the code.")
        return notes

    def domain_notes(self) -> list[str]:
        """Says how the domains of short sentences differ from those of long ones."""
        if len(self.domains) < 2:
            return []
        common = common_sentences([*self.measured.values()], "bleu")
        lengths = self.scale.short, self.scale.long
        short, long = (shares_at(common, length) for length in lengths)
        domain = max(short, key=lambda name: abs(short[name] - long[name]))
        notes = []
        if abs(short[domain] - long[domain]) >= CHANGED_MIX:
            notes.append(
                f"Domains change with length: {domain} is {short[domain]:.0%} of the lines of about "
                f"{lengths[0]} {self.scale.unit}, and {long[domain]:.0%} at {lengths[1]}."
            )
        compared = comparable_domains(self.scale, common)
        if missing := sorted({*short} - {*compared}):
            notes.append(
                f"Adjusted curves leave out {', '.join(missing)}: too few lines at {lengths[0]} or "
                f"{lengths[1]} {self.scale.unit}."
            )
        return notes

    def copy_notes(self) -> list[str]:
        """Says how many references equal their source, and what the scores are without them."""
        records = in_order(self.runs[0].translations(self.name))
        copied = {row["id"] for row in records if row["source"] == row["reference"]}
        if not copied or len(copied) == len(records):
            return []
        changes = []
        for measured in self.measured.values():
            has = measured.has("bleu")
            kept = has & ~np.isin(measured.ids, list(copied))
            if kept.any():
                table = measured.tables["bleu"]
                sums = np.stack([table[part].sum(axis=0) for part in (has, kept)])
                whole, rest = measured.scores["bleu"].combine(sums)
                changes.append(rest - whole)
        effect = f"{min(changes):+.1f} to {max(changes):+.1f}" if changes else "unknown"
        return [
            f"{counted(len(copied), 'reference')} equal the source (addresses, names); BLEU without "
            f"these sentences: {effect}."
        ]

    def retention_notes(self, curves: Curves) -> list[str]:
        """Says for which groups the retention of BLEU is unknown, and of which lengths there are too few."""
        short, long = self.scale.short, self.scale.long
        unknown: dict[str, list[str]] = {}
        for name in self.groups:
            curve = curves.get("bleu", {}).get(("score", name))
            ends = [x for x in (short, long) if curve is None or not np.isfinite(curve.at(x).score)]
            if curve is not None and ends == [long] and curve.lengths[-1] > short:
                continue  # retention at the last length of the curve
            if ends:
                lengths = " and ".join(map(str, ends))
                unknown.setdefault(lengths, []).append(name)
        return [
            f"Retention of BLEU is unknown for {', '.join(names)}: fewer than {FEWEST} sentences, or too "
            f"few matches, at about {lengths} {self.scale.unit}."
            for lengths, names in unknown.items()
        ]
