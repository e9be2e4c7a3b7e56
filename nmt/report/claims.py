"""Claims about models, decided by finished runs.

A file such as `conf/claims/bahdanau.yaml` names groups of runs by filters on their configuration, and
claims about one group or two. The statistic of one group is the mean over its seeds; of two groups it
is the first mean less the second. A rule compares it, with its interval, to a number. With three or
more seeds the interval covers new seeds and sentences; with fewer, new sentences for these models.

Legend: N sentences, F statistics of a sentence, R resamples, n runs of a group.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from nmt.config.keys import CONFIDENCE
from nmt.evaluation.estimate import FEWEST_SEEDS, Estimate, combined
from nmt.evaluation.resampling import resampled_sums
from nmt.evaluation.scores import Score, score_of_name
from nmt.report.runs import FinishedRun
from nmt.utils.errors import InputError, first_line
from nmt.utils.progress import counted

SUPPORTED, REFUTED, UNDECIDED, MISSING = "supported", "refuted", "undecided", "runs missing"
SHORT, LONG = (6, 15), (41, 50)  # source words that retention and loss compare by default
STATISTICS = {"score": "{}", "retention": "share of {} kept", "loss": "{} lost"}
RULES = {"above": "above {}", "below": "below {}", "within": "within ±{}"}


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
        statistic: `score`; `retention`, the score of long sentences divided by that of short ones;
            or `loss`, the score of short sentences less that of long ones.
        score: key of a score, `bleu_no_unk`, or MODULE.NAME.
        set: the test set, if it is not the file's.
        lengths: for `score`: first and last number of source words; null leaves an end open.
        short, long: for `retention` and `loss`: the same for the two parts.
    """

    claim: str
    source: str
    runs: Sequence[str]
    rule: Mapping[str, float]
    statistic: str = "score"
    score: str = "bleu"
    set: str = ""
    lengths: Sequence[int | None] = (None, None)
    short: Sequence[int | None] = SHORT
    long: Sequence[int | None] = LONG

    @property
    def parts(self) -> list[Sequence[int | None]]:
        """The ranges of lengths that are measured."""
        return [self.lengths] if self.statistic == "score" else [self.long, self.short]


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
        reason: why there is no verdict.
        commands: the commands that make its missing runs.
    """

    name: str
    claim: Claim
    verdict: str
    estimate: Estimate | None = None
    reason: str = ""
    commands: Sequence[str] = ()

    @property
    def figure(self) -> str:
        """The statistic with its 95 % interval and its number of seeds."""
        if self.estimate is None:
            return "–"
        numbers = (self.estimate.score, *self.estimate.interval(CONFIDENCE))
        digits = (
            3
            if self.claim.statistic == "retention"
            else max(2, score_of_name(self.claim.score, "claims: score").digits)
        )
        value, low, high = ("–" if x is None else f"{x:.{digits}f}" for x in numbers)
        text = f"{value} [{low}, {high}]".replace("-", "\N{MINUS SIGN}")
        return f"{text}, {counted(self.estimate.seeds, 'seed')}"

    @property
    def measured(self) -> str:
        """What the figure is, and the rule."""
        claim = self.claim
        ((rule, margin),) = claim.rule.items()
        what = STATISTICS[claim.statistic].format(score_of_name(claim.score, "claims: score").title)
        part = " against ".join(_words(part) for part in claim.parts)
        runs = " less ".join(claim.runs)
        return f"{what} of {runs} on {claim.set}, {part}; {RULES[rule].format(f'{margin:g}')}"


@dataclass(frozen=True)
class Decided:
    """The claims of a file with their verdicts."""

    file: ClaimFile
    verdicts: Sequence[Verdict]

    @property
    def summary(self) -> str:
        """How many claims have which verdict."""
        counts = Counter(each.verdict for each in self.verdicts)
        return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())

    @property
    def commands(self) -> list[str]:
        """The commands that make all missing runs."""
        return list(dict.fromkeys(line for each in self.verdicts for line in each.commands))

    @property
    def rows(self) -> list[dict[str, str]]:
        """A row of text for each claim, for tables and pages."""
        return [
            {
                "claim": each.claim.claim,
                "who says it": each.claim.source,
                "verdict": each.verdict,
                "figure": each.figure,
                "measured": each.measured,
                "reason": each.reason,
            }
            for each in self.verdicts
        ]

    def markdown(self) -> str:
        """The report: a table of all claims, and the commands for missing runs."""
        columns = [name for name in self.rows[0] if name != "reason"]
        rows = [columns, ["---"] * len(columns)]
        rows += [[row[name].replace("|", "\\|") for name in columns] for row in self.rows]
        parts = [
            f"# {self.file.title}",
            f"{self.summary}. File `{self.file.name}`, sha256 `{self.file.sha256}`. Intervals are 95 %: "
            f"over seeds and sentences with {FEWEST_SEEDS} seeds or more, else over sentences alone.",
            "\n".join(f"| {' | '.join(row)} |" for row in rows),
            "\n".join(f"- {each.name}: {each.reason}" for each in self.verdicts if each.reason),
        ]
        if self.commands:
            parts += ["## Missing runs", "\n".join(f"    {line}" for line in self.commands)]
        return "\n\n".join(filter(None, parts)) + "\n"


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
        raw["claims"] = {name: Claim(**default | entry) for name, entry in raw["claims"].items()}
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
        run: the run.
        where: value, or list of accepted values, by key. A class goes by its last name.
        default: the same for keys that `where` lacks; a run without such a key passes.
    """
    members = len((run.results.get("sources") or {}).get("others") or []) + 1
    known = {**run.flat, "system": run.results.get("model"), "members": members}
    wanted = {key: value for key, value in default.items() if key in known} | dict(where)
    return all(_accepts(value, known.get(key)) for key, value in wanted.items())


def _accepts(wanted: Any, value: Any) -> bool:
    names = (value, value.rpartition(".")[2]) if isinstance(value, str) else (value,)
    return any(each in names for each in (wanted if isinstance(wanted, list) else [wanted]))


def _runs_of(
    file: ClaimFile, name: str, runs: Sequence[FinishedRun], test_set: str | None = None
) -> list[FinishedRun]:
    """The first run of each seed of a group with sentences of a test set; None: trained models."""
    found = [run for run in runs if matches(run, file.runs[name].where, file.where)]
    if test_set is None:
        usable = [run for run in found if not run.results.get("sources")]
    else:
        usable = [run for run in found if run.translations(test_set)]
    by_seed = {run.seed: run for run in reversed(usable)}
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
    estimate = measure(claim, groups, resamples, paired=len(models) == 1)
    if estimate is None:
        return Verdict(name, claim, UNDECIDED, reason=f"not all runs have {claim.score} there")
    return Verdict(name, claim, apply_rule(claim.rule, estimate), estimate)


def apply_rule(rule: Mapping[str, float], estimate: Estimate) -> str:
    """The verdict of a rule.

    `above` and `below` look at the 95 % interval. `within` takes two one-sided tests at 5 %, and is
    refuted if the whole interval lies outside.
    """
    ((kind, margin),) = rule.items()
    low, high = estimate.interval(CONFIDENCE)
    if low is None or high is None:
        return UNDECIDED
    if kind == "within":
        if estimate.equivalence(margin, 1 - CONFIDENCE)["equivalent"]:
            return SUPPORTED
        return REFUTED if low > margin or high < -margin else UNDECIDED
    if low <= margin <= high:
        return UNDECIDED
    return SUPPORTED if (low > margin) == (kind == "above") else REFUTED


def make_line(file: ClaimFile, name: str, runs: Sequence[FinishedRun], test_set: str | None) -> str:
    """The command that makes the missing runs of a group; empty if none is missing."""
    group = file.runs[name]
    known = {run.seed for run in _runs_of(file, name, runs, test_set)}
    seeds = group.seeds or file.seeds
    missing = (1 if group.together else seeds) - len(known)
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
    claim: Claim,
    groups: Sequence[Sequence[FinishedRun]],
    resamples: int,
    *,
    paired: bool = False,
) -> Estimate | None:
    """The statistic of a claim, on the sentences for which all runs have the score.

    Args:
        claim: what is measured.
        groups: the runs of the claim's groups, by seed.
        resamples: R.
        paired: whether both groups are of the same trained models, so that their seeds cancel.

    Returns None if a run has no such sentence, or if the statistic is undefined.
    """
    score = score_of_name(claim.score, "claims: score")
    tables = [[_statistics(run, claim.set, score) for run in group] for group in groups]
    ids = functools.reduce(np.intersect1d, [ids for group in tables for ids, _, _ in group])
    if not len(ids):
        return None
    figures = []
    for group in tables:
        values = []
        for own, lengths, rows in group:
            places = np.searchsorted(own, ids)
            inside = [_inside(lengths[places], part) for part in claim.parts]
            first, *rest = (_resampled(score, rows[places] * i[:, None], resamples) for i in inside)
            if claim.statistic == "retention":
                first = first / rest[0]
            elif claim.statistic == "loss":
                first = rest[0] - first
            values.append(first)
        figures.append(np.stack(values))
    if not all(np.isfinite(each[:, 0]).all() for each in figures):
        return None
    if paired and len(figures) == 2 and len(figures[0]) == len(figures[1]):
        figures = [figures[0] - figures[1]]
    return combined(figures, int(np.any(inside, axis=0).sum()))


def _statistics(
    run: FinishedRun, name: str, score: Score
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ids (N,), lengths (N,) and statistics (N, F) of the sentences for which a run has the score."""
    records = sorted(run.translations(name), key=lambda record: record["id"])
    rows = score.table(records)
    known = ~np.isnan(rows[:, 0])
    ids, lengths = (np.array([record[key] for record in records]) for key in ("id", "length"))
    return ids[known], lengths[known], rows[known]


def _resampled(score: Score, rows: np.ndarray, resamples: int) -> np.ndarray:
    """(1 + R,) the score of the sentences and of their resamples."""
    sums = np.concatenate([rows.sum(axis=0, keepdims=True), resampled_sums(rows, resamples)])
    return score.combine(sums)


def _inside(lengths: np.ndarray, part: Sequence[int | None]) -> np.ndarray:
    first, last = part
    return (lengths >= (first or 0)) & (lengths <= (last or np.inf))


def _words(part: Sequence[int | None]) -> str:
    first, last = part
    return f"{first or 1} to {last or '…'} words"
