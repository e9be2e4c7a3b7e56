"""Claims about models, decided by finished runs.

A file such as `conf/claims/bahdanau.yaml` names groups of runs by filters on their configuration, and
claims about one group or two. The statistic of one group is the mean over its seeds; of two groups it
is the first mean less the second. A rule compares it, with its interval, to a number. With three or
more seeds the interval covers new seeds and sentences. With fewer it covers new sentences for these
models, and the verdict says so.

Legend: N sentences, F statistics of a sentence, R resamples, n runs of a group.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from nmt.config import EvaluationConfig
from nmt.config.keys import CONFIDENCE
from nmt.evaluation.constant_error import constant_error_records
from nmt.evaluation.curves import LONG, SHORT, Curve, Kernel, kernel
from nmt.evaluation.estimate import FEWEST_SEEDS, Estimate, combined, enough_resamples
from nmt.evaluation.scores import Score, score_of_name
from nmt.evaluation.significance import holm
from nmt.evaluation.summary import Measured, common_tables
from nmt.report.runs import FinishedRun
from nmt.report.table import Table, number
from nmt.utils.errors import InputError, first_line
from nmt.utils.text import as_list

SUPPORTED, REFUTED, UNDECIDED, MISSING = "supported", "refuted", "undecided", "runs missing"
THESE = "of these models"  # added to a verdict of too few seeds
STATISTICS = {
    "score": "{}",
    "retention": "share of {} kept",
    "constant_error": "share of {} kept, less that of a constant error rate",
}
RULES = {"above": "above {}", "below": "below {}", "within": "within ±{}"}
RESAMPLES = (1, 4, 16, 64)  # times the number asked for, until more cannot change a verdict


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ in their seed alone.

    Attributes:
        where: values of configuration keys, added to the file's `where`. `system` stands for the
            system's name in results.json, `members` for the number of models of an ensemble.
        make: overrides that make the runs, added to the file's `make`.
        command: the command that makes them.
        of: for `evaluate`: the group whose checkpoints are evaluated.
        together: for `evaluate`: evaluate all seeds as one ensemble.
        seeds: number of seeds, if it is not the file's.
    """

    where: Mapping[str, Any]
    make: str = ""
    command: str = "train"
    of: str | None = None
    together: bool = False
    seeds: int | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence, and how runs decide it.

    Attributes:
        claim: the sentence.
        source: who says it, and where.
        runs: one group, or two whose difference is taken.
        rule: `{above: x}`, `{below: x}` or, for equivalence, `{within: x}`.
        statistic: `score`; `retention`, the score at `long` words divided by that at `short` words
            (`nmt.evaluation.curves`); or `constant_error`, the retention less that of a system with
            constant rates of errors (`nmt.evaluation.constant_error`).
        score: key of a score, `bleu_no_unk`, or MODULE.NAME.
        set: the test set, if it is not the file's.
        lengths: for `score`: first and last number of source words; null leaves an end open.
        short, long: for the others: numbers of source words.
    """

    claim: str
    source: str
    runs: Sequence[str]
    rule: Mapping[str, float]
    statistic: str = "score"
    score: str = "bleu"
    set: str = ""
    lengths: Sequence[int | None] = (None, None)
    short: int = SHORT
    long: int = LONG

    @property
    def part(self) -> str:
        """The lengths that are measured."""
        first, last = self.lengths
        if self.statistic == "score":
            return f"{first or 1} to {last or '…'} words"
        return f"{self.long} against {self.short} words"


@dataclass(frozen=True)
class ClaimFile:
    """A file of claims.

    Attributes:
        name, sha256: of the file.
        title: heading of the report.
        make: overrides of every run.
        where: filter of every group; a group's own value of a key replaces the one here.
        seeds: number of seeds of a group.
    """

    name: str
    sha256: str
    claims: Mapping[str, Claim]
    runs: Mapping[str, RunGroup]
    title: str = "Claims"
    make: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = FEWEST_SEEDS


@dataclass(frozen=True)
class Verdict:
    """A claim with what the runs say.

    Attributes:
        verdict: `SUPPORTED`, `REFUTED`, `UNDECIDED` or `MISSING`.
        estimate: the statistic; None without one.
        p: two-sided, that the truth is the number of the rule; for `within`, that it lies outside.
        seeds: the statistic of each run, by group.
        reason: why there is no verdict.
        commands: the commands that make its missing runs.
    """

    name: str
    claim: Claim
    verdict: str
    estimate: Estimate | None = None
    p: float | None = None
    seeds: Sequence[Sequence[float]] = ()
    reason: str = ""
    commands: Sequence[str] = ()

    @property
    def shown(self) -> str:
        """The verdict; with fewer than `FEWEST_SEEDS` seeds it is of these models alone."""
        few = self.estimate is not None and self.estimate.seeds < FEWEST_SEEDS
        decided = self.verdict in (SUPPORTED, REFUTED)
        return f"{self.verdict}, {THESE}" if few and decided else self.verdict


@dataclass(frozen=True)
class Decided:
    """The claims of a file with their verdicts."""

    file: ClaimFile
    verdicts: Sequence[Verdict]

    @property
    def table(self) -> Table:
        """A row for each claim; the title counts the verdicts."""
        rows = []
        corrected = holm([each.p for each in self.verdicts])  # they are decided together
        for each, p in zip(self.verdicts, corrected, strict=True):
            claim, estimate = each.claim, each.estimate
            ((rule, margin),) = claim.rule.items()
            score = score_of_name(claim.score, "claims: score")
            digits = max(2, score.digits) if claim.statistic == "score" else 3
            ends = estimate.interval(CONFIDENCE) if estimate else (None, None)
            seeds = [", ".join(number(value, digits).text for value in of) for of in each.seeds]
            rows.append(
                {
                    "claim": claim.claim,
                    "who says it": claim.source,
                    "verdict": each.shown,
                    "figure": number(estimate and estimate.score, digits, *ends),
                    "seeds": " less ".join(seeds),
                    "p": number(each.p, 3),
                    "p, Holm": number(p, 3),
                    "measured": f"{STATISTICS[claim.statistic].format(score.title)} of "
                    f"{' less '.join(claim.runs)} on {claim.set}, {claim.part}; "
                    f"{RULES[rule].format(f'{margin:g}')}",
                }
            )
        counts = Counter(each.shown for each in self.verdicts).most_common()
        title = ", ".join(f"{count} {verdict}" for verdict, count in counts)
        notes = [f"{each.name}: {each.reason}" for each in self.verdicts if each.reason]
        return Table("claims", title, pd.DataFrame(rows), notes)

    def markdown(self) -> str:
        """The report: a table of all claims, and the commands for missing runs."""
        text = (
            f"# {self.file.title}\n\n"
            f"File `{self.file.name}`, sha256 `{self.file.sha256}`. Intervals are 95 %: over seeds\n"
            f"and sentences with {FEWEST_SEEDS} seeds or more, else over sentences alone. A verdict\n"
            "is of its claim by itself; p with Holm's correction is of all claims together.\n\n"
        )
        lines = dict.fromkeys(line for each in self.verdicts for line in each.commands)
        missing = ["## Missing runs\n", *(f"    {line}" for line in lines)] if lines else []
        return "\n".join([text + self.table.markdown(), *missing, ""])


def read_claims(path: Path) -> ClaimFile:
    """Reads a file of claims.

    Raises:
        InputError: naming the file and the entry that is wrong.
    """
    try:
        content = path.read_bytes()
        raw = yaml.safe_load(content)
        default = {"set": raw.pop("set", "test")}
        raw["runs"] = {name: RunGroup(**entry) for name, entry in raw["runs"].items()}
        claims = {}
        for name, entry in raw["claims"].items():
            claims[name] = claim = Claim(**default | entry)
            if claim.statistic != "score" and claim.score == "bleu":  # brevity apart
                claims[f"{name}-precisions"] = replace(claim, score="bleu_precisions")
        raw["claims"] = claims
        file = ClaimFile(path.name, hashlib.sha256(content).hexdigest(), **raw)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a file of claims: {first_line(error)}") from error
    for name, claim in file.claims.items():
        for kind, given, known in (
            ("runs", claim.runs, file.runs),
            ("statistic", [claim.statistic], STATISTICS),
            ("rule", claim.rule, RULES),
        ):
            if not given or set(given) - set(known):
                raise InputError(f"{path}: claims.{name}.{kind}: must be among {', '.join(known)}")
    return file


def decide_claims(path: Path, runs: Sequence[FinishedRun], resamples: int = 1000) -> Decided:
    """Decides each claim of a file from finished runs, in which a test set's name stands for one text.

    Raises:
        InputError: as `read_claims`, or for an unknown score.
    """
    file = read_claims(path)
    return Decided(file, [_decide(file, name, runs, resamples) for name in file.claims])


def matches(run: FinishedRun, where: Mapping[str, Any], default: Mapping[str, Any]) -> bool:
    """Whether the configuration of a run has these values.

    Args:
        where: value, or list of accepted values, by key. A class goes by its last name.
        default: the same for keys that `where` lacks; a run without such a key passes.
    """
    members = len((run.results.get("sources") or {}).get("others") or []) + 1
    known = {**run.flat, "system": run.results.get("model"), "members": members}
    wanted = {key: value for key, value in default.items() if key in known} | dict(where)

    def accepts(accepted: Any, value: Any) -> bool:
        names = [value, value.rpartition(".")[2]] if isinstance(value, str) else [value]
        return any(each in names for each in as_list(accepted))

    return all(accepts(value, known.get(key)) for key, value in wanted.items())


def _runs_of(
    file: ClaimFile, name: str, runs: Sequence[FinishedRun], test_set: str | None = None
) -> list[FinishedRun]:
    """The first run of each seed of a group with sentences of a test set; None: trained models."""
    by_seed: dict[int | None, FinishedRun] = {}
    for run in runs:
        if matches(run, file.runs[name].where, file.where):
            trained = not run.results.get("sources")
            if trained if test_set is None else run.translations(test_set):
                by_seed.setdefault(run.seed, run)
    return [by_seed[seed] for seed in sorted(by_seed, key=str)]


def _decide(file: ClaimFile, name: str, runs: Sequence[FinishedRun], resamples: int) -> Verdict:
    claim = file.claims[name]
    missing = {group: make_line(file, group, runs, claim.set) for group in claim.runs}
    if commands := [line for line in missing.values() if line]:
        reason = "missing: " + ", ".join(group for group, line in missing.items() if line)
        return Verdict(name, claim, MISSING, reason=reason, commands=commands)
    groups = [_runs_of(file, group, runs, claim.set) for group in claim.runs]
    if any(len({run.group for run in members}) > 1 for members in groups):
        return Verdict(name, claim, UNDECIDED, reason="runs of a group differ in more than seed")
    models = {file.runs[group].of or group for group in claim.runs}
    measured = measure(claim, groups, resamples, paired=len(models) == 1)
    if isinstance(measured, str):
        return Verdict(name, claim, UNDECIDED, reason=measured)
    estimate, seeds, settled = measured
    verdict, p = apply_rule(claim.rule, estimate)
    reason = "" if settled else "more resamples may change the verdict"
    verdict = verdict if settled else UNDECIDED
    return Verdict(name, claim, verdict, estimate, p, seeds=seeds, reason=reason)


def apply_rule(rule: Mapping[str, float], estimate: Estimate) -> tuple[str, float | None]:
    """The verdict of a rule, and its p.

    `above` and `below` look at the 95 % interval. `within` takes two one-sided tests at 5 %, and is
    refuted if the whole interval lies outside.
    """
    ((kind, margin),) = rule.items()
    low, high = estimate.interval(CONFIDENCE)
    p = estimate.equivalence_p(margin) if kind == "within" else estimate.p(margin)
    if low is None or high is None or p is None:
        return UNDECIDED, p
    supported, refuted = {
        "above": (low > margin, high < margin),
        "below": (high < margin, low > margin),
        "within": (p <= 1 - CONFIDENCE, low > margin or high < -margin),
    }[kind]
    return SUPPORTED if supported else REFUTED if refuted else UNDECIDED, p


def make_line(file: ClaimFile, name: str, runs: Sequence[FinishedRun], test_set: str | None) -> str:
    """The command that makes the missing runs of a group; empty if none is missing."""
    group = file.runs[name]
    known = {run.seed for run in _runs_of(file, name, runs, test_set)}
    missing = (1 if group.together else group.seeds or file.seeds) - len(known)
    if missing <= 0:
        return ""
    if group.of is None:
        free = (str(seed) for seed in itertools.count(1) if seed not in known)
        words = [file.make, group.make, f"seed={','.join(itertools.islice(free, missing))}"]
    else:
        if models := make_line(file, group.of, runs, None):  # which come first
            return models
        trained = _runs_of(file, group.of, runs)
        paths = ",".join(str(run.folder) for run in trained if run.seed not in known)
        words = [f"'checkpoint={f'[{paths}]' if group.together else paths}'", group.make]
    sweep = ["-m"] if missing > 1 else []
    return " ".join(filter(None, [f"python -m nmt.{group.command}", *sweep, *words]))


def measure(
    claim: Claim, groups: Sequence[Sequence[FinishedRun]], resamples: int, paired: bool
) -> tuple[Estimate, list[list[float]], bool] | str:
    """The statistic of a claim, on the sentences for which all runs have the score.

    Args:
        groups: the runs of the claim's groups, by seed.
        resamples: R at the start; it grows until more cannot change the verdict.
        paired: whether both groups are of the same trained models, so that their seeds cancel.

    Returns:
        The estimate, the value of each run by group, and whether R is large enough; or the reason
        why there is no statistic.
    """
    score = score_of_name(claim.score, "claims: score")
    systems = [[_systems(claim, score, run) for run in group] for group in groups]
    flat = [system for group in systems for run in group for system in run]
    lengths, common = common_tables(flat, score.key)
    part = _part(claim, lengths)
    if part is None:
        return f"too few sentences that all runs have {claim.score} of, {claim.part}"
    rest = iter(common)
    tables = [[[next(rest) for _ in run] for run in group] for group in systems]
    pairs = paired and len(groups) == 2 and len(groups[0]) == len(groups[1])
    for factor in RESAMPLES:
        samples = [_samples(claim, score, part, group, factor * resamples) for group in tables]
        if not all(np.isfinite(each[:, 0]).all() for each in samples):
            return f"{score.title} is not known for {claim.part}"
        compared = [samples[0] - samples[1]] if pairs else samples
        estimate = combined(compared, int(part.sentences.min()))
        ((kind, margin),) = claim.rule.items()
        limits = [-margin, margin] if kind == "within" else [margin]
        settled = enough_resamples(compared, estimate, limits)
        if settled:
            break
    return estimate, [each[:, 0].tolist() for each in samples], settled


def _systems(claim: Claim, score: Score, run: FinishedRun) -> list[Measured]:
    """A run, and its system of constant rates where that is needed."""
    records = [run.translations(claim.set)]
    if claim.statistic == "constant_error":
        records.append(constant_error_records(records[0]))
    return [Measured(each, [score], EvaluationConfig()) for each in records]


def _part(claim: Claim, lengths: np.ndarray) -> Kernel | None:
    """The weights of the sentences that a claim is about; None if it is about too few."""
    if claim.statistic == "score":
        first, last = claim.lengths
        inside = (lengths >= (first or 0)) & (lengths <= (last or np.inf))
        count = np.array([inside.sum()])
        return Kernel(np.zeros(1), inside[None].astype(np.float64), count) if count else None
    part = kernel(lengths, at=(claim.short, claim.long)) if len(lengths) else None
    return part if part is not None and len(part.lengths) == 2 else None


def _samples(
    claim: Claim,
    score: Score,
    part: Kernel,
    tables: Sequence[Sequence[np.ndarray]],
    resamples: int,
) -> np.ndarray:
    """The statistic of the runs of a group, of the sentences and of resamples: (n, 1 + R)."""
    sums = [[part.sums(table, resamples) for table in run] for run in tables]
    if claim.statistic == "score":
        return np.stack([score.combine(own)[:, 0] for (own,) in sums])
    kept = []
    for systems in zip(*sums, strict=True):
        values = np.stack([score.curve(each) for each in systems])
        relative = Curve(part, [values]).relative(claim.short)
        kept.append(relative.samples[0][:, :, 1] if relative else np.full((1, 1), np.nan))
    return kept[0] if len(kept) == 1 else kept[0] - kept[1]
