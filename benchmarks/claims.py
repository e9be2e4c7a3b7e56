"""Decides claims about models, using the results of finished runs.

A file such as `benchmarks/claims/bahdanau.yaml` defines groups of runs by filters on their configuration. It also
defines claims about one or two of these groups. The statistic of a claim is a mean over the seeds of a group.
For two groups, it is the first mean minus the second. A rule compares the statistic and its interval with a
number. With three or more seeds, the interval accounts for the choice of the seeds and of the sentences. With
fewer seeds, it accounts only for the choice of the sentences, and the verdict says "for these models only".

Sizes: n runs in a group, R resamples.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from benchmarks.decisions import enough_resamples, equivalence_p, p_value
from nmt.config.keys import CONFIDENCE
from nmt.evaluation.constant_error import measure_constant_error
from nmt.evaluation.estimate import FEWEST_SEEDS, Estimate, combined
from nmt.evaluation.length_curve import (
    LONG,
    SHORT,
    Curve,
    Kernel,
    excess_retention,
    kernel,
    length_curves,
)
from nmt.evaluation.measured import CommonSentences, Measured
from nmt.evaluation.scores import score_of_name
from nmt.evaluation.significance import holm
from nmt.report.runs import FinishedRun
from nmt.report.table import Cell, Table, number
from nmt.utils.errors import InputError, first_line
from nmt.utils.text import as_list

SUPPORTED, REFUTED, UNDECIDED, MISSING = "supported", "refuted", "undecided", "runs missing"
STATISTICS = {
    "score": "{}",
    "retention": "retention of {}",
    "excess_retention": "retention of {}, minus retention at a constant error rate",
}
RULES = {"above": "above {:g}", "below": "below {:g}", "within": "within ±{:g}"}
RESAMPLES = (1, 4, 16, 64)  # multiples of R, tried while more resamples may change the verdict


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ only in their seed.

    `where` gives required values of configuration keys. It extends and overrides the `where` of the file. It
    accepts two more keys: `system` (value of `model` in results.json, or in a system's system.json) and `members`
    (number of models in the ensemble).
    """

    where: Mapping[str, Any]
    make: str = ""  # overrides for `command`
    command: str = "nmt.train"  # module of the command that creates the runs
    of: str | None = None  # for `nmt.evaluate`: the group whose checkpoints are evaluated
    together: bool = False  # for `nmt.evaluate`: whether all seeds form one ensemble
    seeds: int | None = None  # number of seeds; None: the file's `seeds`


@dataclass(frozen=True)
class Claim:
    """A claim in words, and the measurement that decides it.

    `statistic` is `score`, `retention` or `excess_retention`. Retention is the score at `long` words divided
    by the score at `short` words (`nmt.evaluation.length_curve`). Excess retention is the retention minus
    that of a system with constant error rates (`nmt.evaluation.constant_error`).
    """

    claim: str
    source: str  # such as `the paper, Figure 2`
    runs: Sequence[str]  # one group, or two groups whose difference is measured
    rule: Mapping[str, float]  # {above: x}, {below: x} or {within: x} (equivalence)
    statistic: str = "score"
    score: str = "bleu"  # key of a built-in score, or MODULE.NAME
    set: str = ""  # test set; empty: the file's `set`
    lengths: Sequence[int | None] = (None, None)  # fewest and most source words; null: no limit
    short: int = SHORT
    long: int = LONG

    @property
    def part(self) -> str:
        """The measured lengths as text: `10 to 20 words`, or `50 against 10 words`."""
        first, last = self.lengths
        if self.statistic == "score":
            return f"{first or 1} to {last or '…'} words"
        return f"{self.long} against {self.short} words"

    def weights(self, sentences: CommonSentences) -> Kernel:
        """Returns sentence weights: 1 within `lengths`, else 0; for retention, kernels at `short` and `long`."""
        lengths = sentences.lengths
        if self.statistic != "score":
            ends = kernel(lengths, at=(self.short, self.long), short=self.short)
            return ends if len(ends.lengths) == 2 else replace(ends, lengths=ends.lengths[:0])
        first, last = self.lengths
        inside = (lengths >= (first or 0)) & (lengths <= (last or np.inf))
        rows = 1.0 * inside[None][: int(inside.any())]  # empty if no sentence has such a length
        return Kernel(np.zeros(len(rows)), rows, rows.sum(axis=1))


@dataclass(frozen=True)
class ClaimFile:
    """A file of claims. It has a key for each attribute after `sha256`, and a key `set`, the default test set."""

    name: str
    sha256: str
    claims: Mapping[str, Claim]
    runs: Mapping[str, RunGroup]
    title: str = "Claims"
    make: str = ""  # overrides of every training run
    where: Mapping[str, Any] = field(default_factory=dict)  # for keys that a group's `where` lacks
    seeds: int = FEWEST_SEEDS  # seeds per group

    def members(
        self, name: str, runs: Sequence[FinishedRun], test_set: str | None = None
    ) -> list[FinishedRun]:
        """Returns the first run of each seed of a group, among runs with `test_set`; None: among training runs."""
        by_seed: dict[int | None, FinishedRun] = {}
        for run in runs:
            if matches(run, self.runs[name].where, self.where):
                trained = not run.results.get("sources")
                if trained if test_set is None else run.translations(test_set):
                    by_seed.setdefault(run.seed, run)
        return [by_seed[seed] for seed in sorted(by_seed, key=str)]

    def command(self, name: str, runs: Sequence[FinishedRun], test_set: str | None) -> str:
        """Returns the command that creates the missing runs of a group; empty if none is missing."""
        group = self.runs[name]
        known = {run.seed for run in self.members(name, runs, test_set)}
        missing = (1 if group.together else group.seeds or self.seeds) - len(known)
        if missing <= 0:
            return ""
        if group.of is None:
            free = [str(seed) for seed in range(1, 100) if seed not in known]
            words = [self.make, group.make, f"seed={','.join(free[:missing])}"]
        else:
            if models := self.command(group.of, runs, None):  # train these first
                return models
            trained = self.members(group.of, runs)
            paths = ",".join(str(run.folder) for run in trained if run.seed not in known)
            words = [f"'checkpoint={f'[{paths}]' if group.together else paths}'", group.make]
        sweep = ["-m"] if missing > 1 else []
        return " ".join(filter(None, [f"python -m {group.command}", *sweep, *words]))


def read_claims(path: Path) -> ClaimFile:
    """Reads a file of claims.

    Raises:
        InputError: if the file is not a valid file of claims. The message names the wrong entry.
    """
    try:
        content = path.read_bytes()
        raw = yaml.safe_load(content)
        default = {"set": raw.pop("set", "test")}
        raw["runs"] = {name: RunGroup(**entry) for name, entry in raw["runs"].items()}
        claims = {}
        for name, entry in raw["claims"].items():
            claims[name] = claim = Claim(**default | entry)
            if claim.statistic != "score" and claim.score == "bleu":
                # The claim is also decided without brevity penalty.
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


def matches(run: FinishedRun, where: Mapping[str, Any], default: Mapping[str, Any]) -> bool:
    """Tells whether the configuration of a run has the wanted values.

    Args:
        where: for each key, the accepted value or values. A value that names a class may omit the module.
        default: accepted values of the keys that are not in `where`; keys that the run does not have are ignored.
    """
    members = len((run.results.get("sources") or {}).get("others") or []) + 1
    known = {**run.flat, "system": run.results.get("model"), "members": members}
    wanted = {key: value for key, value in default.items() if key in known} | dict(where)

    def accepts(accepted: Any, value: Any) -> bool:
        names = [value, value.rpartition(".")[2]] if isinstance(value, str) else [value]
        return any(each in names for each in as_list(accepted))

    return all(accepts(value, known.get(key)) for key, value in wanted.items())


def decided_rows(
    file: ClaimFile, runs: Sequence[FinishedRun], resamples: int
) -> Iterator[dict[str, Any]]:
    """Yields the result of `decide` for each claim; if runs are missing, the `commands` that create them.

    In `runs`, test sets of the same name must have the same text.

    Raises:
        InputError: if a score is unknown.
    """
    for claim in file.claims.values():
        commands = {group: file.command(group, runs, claim.set) for group in claim.runs}
        groups = [file.members(group, runs, claim.set) for group in claim.runs]
        if missing := {group: line for group, line in commands.items() if line}:
            reason = f"missing: {', '.join(missing)}"
            yield {"verdict": MISSING, "reason": reason, "commands": missing.values()}
        elif any(len({run.group for run in members}) > 1 for members in groups):
            yield {"verdict": UNDECIDED, "reason": "runs of a group differ in more than seed"}
        else:
            models = {file.runs[group].of or group for group in claim.runs}
            yield decide(claim, groups, resamples, paired=len(models) == 1)


def claims_table(file: ClaimFile, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Makes a table with one row per claim; its title counts the verdicts, and its notes name missing runs."""
    shown = []
    corrected = holm([row.get("p") for row in rows])
    for claim, row, p in zip(file.claims.values(), rows, corrected, strict=True):
        score = score_of_name(claim.score, "claims: score").title
        ((rule, margin),) = claim.rule.items()
        shown.append(
            {
                "claim": claim.claim,
                "source": claim.source,
                "verdict": verdict_words(row),
                "figure": row.get("figure", Cell()),
                "seeds": row.get("values", ""),
                "p": number(row.get("p"), 3),
                "p, Holm": number(p, 3),
                "measured": f"{STATISTICS[claim.statistic].format(score)} of "
                f"{' minus '.join(claim.runs)} on {claim.set}, {claim.part}; "
                f"{RULES[rule].format(margin)}",
            }
        )
    counts = Counter(map(verdict_words, rows)).most_common()
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in counts)
    notes = [
        f"File {file.name}, sha256 {file.sha256}. Intervals: {100 * CONFIDENCE:g} %, over seeds and "
        f"sentences with {FEWEST_SEEDS} seeds or more, else over sentences only. Each verdict considers "
        "its claim alone; p with Holm's correction considers all claims.",
        *(
            f"{name}: {row['reason']}"
            for name, row in zip(file.claims, rows, strict=True)
            if row["reason"]
        ),
        *dict.fromkeys(f"Missing runs: {line}" for row in rows for line in row.get("commands", ())),
    ]
    return Table("claims", f"{file.title}: {verdicts}", pd.DataFrame(shown), notes)


def verdict_words(row: Mapping[str, Any]) -> str:
    """Returns the verdict of a row; with fewer than `FEWEST_SEEDS` seeds, adds "for these models only"."""
    few = row["verdict"] in (SUPPORTED, REFUTED) and int(row["seeds"]) < FEWEST_SEEDS
    return f"{row['verdict']}, for these models only" if few else str(row["verdict"])


def decide(
    claim: Claim, groups: Sequence[Sequence[FinishedRun]], resamples: int, *, paired: bool = False
) -> dict[str, Any]:
    """Decides a claim, using only the sentences for which all runs have the score.

    Args:
        groups: the runs of the claim's groups, in order of their seeds.
        resamples: initial R; see `RESAMPLES`.
        paired: whether both groups use the same trained models. The effects of the seeds then cancel.

    Returns:
        `verdict`; `reason`, if it is undecided; `estimate`; `figure`, the estimate as text; `seeds`, the
        number of seeds; `values` of the runs, as text; `p`, two-sided. The null hypothesis of `p` is that the
        true value equals the number of the rule. For `within`, it is that the value lies outside ±the number.
    """
    score = score_of_name(claim.score, "claims: score")
    ((kind, margin),) = claim.rule.items()
    limits = [-margin, margin] if kind == "within" else [margin]
    systems = {}
    for place, group in enumerate(groups):
        records = [run.translations(claim.set) for run in group]
        measured = [Measured(each, [score]) for each in records]
        systems["score", place] = measured
        if claim.statistic == "excess_retention":
            systems["constant", place] = measure_constant_error(records, measured)
    masked = claim.statistic != "score"
    reason = f"{score.title} of {claim.part}: too few sentences with it in all runs"
    for factor in RESAMPLES:
        resampled = factor * resamples
        found = length_curves(systems, [score.key], claim.weights, resampled, masked=masked)
        curves = found.get(score.key, {})
        if curves.keys() != systems.keys():
            return {"verdict": UNDECIDED, "reason": reason}
        pairs = [(curves["score", n], curves.get(("constant", n))) for n in range(len(groups))]
        samples = [_statistic(claim, *pair) for pair in pairs]
        if not all(np.isfinite(each[:, 0]).all() for each in samples):
            return {"verdict": UNDECIDED, "reason": reason}
        if paired and len(samples) == 2 and len(samples[0]) == len(samples[1]):
            samples = [samples[0] - samples[1]]
        curve, _ = pairs[0]
        estimate = combined(samples, int(curve.kernel.sentences.min()), curve.documents)
        if settled := enough_resamples(samples, estimate, limits):
            break
    verdict, p = apply_rule(claim.rule, estimate)
    digits = max(2, score.digits) if claim.statistic == "score" else 3
    values = [
        ", ".join(
            number(alone.item(), digits).text
            for n in range(len(group))
            for alone in [_statistic(claim, curve.alone(n), constant and constant.alone(n))]
        )
        for group, (curve, constant) in zip(groups, pairs, strict=True)
    ]
    return {
        "verdict": verdict if settled else UNDECIDED,
        "reason": "" if settled else "more resamples may change the verdict",
        "estimate": estimate,
        "figure": number(estimate.score, digits, *estimate.interval(CONFIDENCE)),
        "p": p,
        "seeds": estimate.seeds,
        "values": " minus ".join(values),
    }


def _statistic(claim: Claim, curve: Curve, constant: Curve | None) -> np.ndarray:
    """Returns a statistic at the last length of a curve: (n runs, 1 + R); first all sentences, then the R resamples."""
    if constant is not None:
        curve = excess_retention(curve, constant)
    elif claim.statistic == "retention":
        curve = curve.relative
    return curve.samples[0][:, :, -1]


def apply_rule(rule: Mapping[str, float], estimate: Estimate) -> tuple[str, float | None]:
    """Returns the verdict of a rule, and its p-value.

    `above` and `below` use the 95 % interval. `within` uses two one-sided tests at 5 %, and is refuted
    if the whole 95 % interval is outside ±the number.
    """
    ((kind, margin),) = rule.items()
    low, high = estimate.interval(CONFIDENCE)
    p = (equivalence_p if kind == "within" else p_value)(estimate, margin)
    if low is None or high is None or p is None:
        return UNDECIDED, p
    supported, refuted = {
        "above": (low > margin, high < margin),
        "below": (high < margin, low > margin),
        "within": (p <= 1 - CONFIDENCE, low > margin or high < -margin),
    }[kind]
    return SUPPORTED if supported else REFUTED if refuted else UNDECIDED, p
