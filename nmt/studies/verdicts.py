"""Decides claims by their rules from a figure and its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nmt.config import StudyClaim, StudySection
from nmt.config.study import FIGURES
from nmt.evaluation.degradation import Estimate, Group, curves, degradation_of, estimate
from nmt.evaluation.degradation.estimate import FEWEST_SEEDS
from nmt.evaluation.degradation.findings import LOSSES
from nmt.evaluation.degradation.fit import FEWEST_BUCKETS
from nmt.evaluation.scores import Score, score_of_name
from nmt.report.disambiguation import disambiguate_test_sets
from nmt.report.runs import FinishedRun
from nmt.studies.existing import FoundRuns

SUPPORTED, REFUTED, UNDECIDED = "supported", "refuted", "undecided"


@dataclass(frozen=True)
class Verdict:
    """A claim, decided or not.

    Attributes:
        name: of the claim.
        claim: its sentence, source and rule.
        score: that it is about.
        verdict: `SUPPORTED`, `REFUTED` or `UNDECIDED`.
        value, low, high: the figure and its interval; None where there is none.
        confidence: of the interval that the rule looks at.
        p: of the rule's test; None where it has none.
        sentences, seeds: that the figure is of: seeds of the group with the fewest.
        of: what the interval speaks of: `seeds` to come, or these `runs` alone; empty without one.
        reason: why it is undecided; empty otherwise.
    """

    name: str
    claim: StudyClaim
    score: Score
    verdict: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = 0.0
    p: float | None = None
    sentences: int | None = None
    seeds: int | None = None
    of: str = ""
    reason: str = ""


def decide(found: FoundRuns) -> list[Verdict]:
    """Every claim of a study, in its order, from the runs that there are."""
    return [_decide(name, claim, found) for name, claim in found.study.section.claims.items()]


def _decide(name: str, claim: StudyClaim, found: FoundRuns) -> Verdict:
    score = score_of_name(claim.score, f"study.claims.{name}.score")
    groups = [found.study.groups[group] for group in claim.runs]
    runs = [[each.run for each in found.of_group(group)] for group in groups]
    wanted = sum(group.size for group in groups)
    there = sum(map(len, runs))
    if there < wanted:
        return Verdict(
            name, claim, score, UNDECIDED, reason=f"{wanted - there} of {wanted} runs missing"
        )
    section = found.study.section
    measured = measure(claim, score, runs, section.resamples)
    if isinstance(measured, str):
        return Verdict(name, claim, score, UNDECIDED, reason=measured)
    if claim.statistic in FIGURES:
        return decide_figure(name, claim, score, measured, section)
    return decide_length(name, claim, score, measured, section)


def measure(
    claim: StudyClaim, score: Score, runs: Sequence[Sequence[FinishedRun]], resamples: int
) -> list[Group] | str:
    """The groups of a claim by its score, on the sentences that all of their runs have; or why not.

    Args:
        runs: of each group.
    """
    together = [run for group in runs for run in group]
    named = disambiguate_test_sets(together)
    if any(claim.set not in run.sets for run in named):
        apart = all(claim.set in run.sets for run in together)
        return (
            f"{claim.set} is other text in some runs" if apart else f"not all runs have {claim.set}"
        )
    for name, group in zip(claim.runs, runs, strict=True):
        for run in group:
            if not run.translations(claim.set):
                return f"no translations/{claim.set}.jsonl of {name} with seed {run.seed}"
    records = {
        str(place): [
            row for row in run.translations(claim.set) if row["length"] > claim.longer_than
        ]
        for place, run in enumerate(named)
    }
    found = curves(records, [score], resamples=resamples)[score.key]
    if len(found) < len(named):
        return f"not all runs have {score.title}"
    groups, place = [], 0
    for group in runs:
        members = [found[str(place + n)] for n in range(len(group))]
        place += len(group)
        caps = {run.results.get("max_length") for run in group}
        cap = caps.pop() if len(caps) == 1 else None
        groups.append(Group(members, cap, [run.model for run in group]))
    return groups


def decide_figure(
    name: str, claim: StudyClaim, score: Score, groups: Sequence[Group], section: StudySection
) -> Verdict:
    """A claim about a score, a slope, or a difference of two."""
    against = groups[1] if len(groups) > 1 else None
    what: Any = claim.statistic
    part: Any = claim.range
    found = estimate(groups[0], what, part, against=against)
    if found is None:
        few = f"no slope there: fewer than {FEWEST_BUCKETS} buckets"
        reason = few if what == "slope" else "no sentences there"
        return Verdict(name, claim, score, UNDECIDED, reason=reason)
    verdict, tested = apply_rule(claim, found, section.confidence, score.higher_is_better)
    return Verdict(
        name,
        claim,
        score,
        verdict,
        value=found.score,
        sentences=found.sentences,
        seeds=found.seeds,
        of=found.of,
        reason="" if verdict != UNDECIDED else _open(claim, tested),
        **tested,
    )


def apply_rule(
    claim: StudyClaim, found: Estimate, confidence: float, higher_is_better: bool | None
) -> tuple[str, dict[str, Any]]:
    """The verdict of a rule, and the interval and p that it rests on.

    `above` and `below` look at the interval of the confidence asked for. `equal` and `no_fall` are
    one-sided tests at the same error, whose interval is narrower; they are refuted where the
    interval of the full confidence lies outside the margin as a whole.
    """
    margin, error = claim.margin, 1 - confidence
    low, high = found.interval(confidence)
    if low is None or high is None:
        return UNDECIDED, {}
    full = {"low": low, "high": high, "confidence": confidence}
    if claim.rule in ("above", "below"):
        tested = {**full, "p": found.p(margin)}
        if low > margin:
            return (SUPPORTED if claim.rule == "above" else REFUTED), tested
        if high < margin:
            return (SUPPORTED if claim.rule == "below" else REFUTED), tested
        return UNDECIDED, tested
    better = higher_is_better is not False
    if claim.rule == "equal":
        test = found.equivalence(margin, error)
        holds, outside = test["equivalent"], low > margin or high < -margin
    else:
        test = found.no_fall(margin, error, higher_is_better=better)
        holds, outside = test["holds"], high < -margin if better else low > margin
    if outside:
        return REFUTED, {**full, "p": test["p"]}
    narrow = {key: test[key] for key in ("low", "high", "p")} | {"confidence": 1 - 2 * error}
    return (SUPPORTED if holds else UNDECIDED), narrow


def decide_length(
    name: str, claim: StudyClaim, score: Score, groups: Sequence[Group], section: StudySection
) -> Verdict:
    """A claim about the length at which something happens to a score."""
    (group,) = groups
    whole = degradation_of(group, section.confidence)
    located: Mapping[str, Any] | None = (whole["losses"] | {"breakpoint": whole["breakpoint"]})[
        claim.statistic
    ]
    if located is None:
        return Verdict(name, claim, score, UNDECIDED, reason="not defined of these buckets")
    text = group.curves[0].text
    low, high = located["low"], located["high"]
    verdict, margin = UNDECIDED, claim.margin
    reason = f"the interval holds {margin:g} words"
    if located["status"] == "none":
        reason = "there is no such length"
        if claim.statistic in LOSSES:  # whatever is lost, is lost beyond the longest sentences
            low = float(text.axis.lengths[0, -1])
    if low is not None and low > margin:
        verdict = SUPPORTED if claim.rule == "above" else REFUTED
    elif high is not None and high < margin:
        verdict = SUPPORTED if claim.rule == "below" else REFUTED
    return Verdict(
        name,
        claim,
        score,
        verdict,
        value=located["score"],
        low=low,
        high=high,
        confidence=section.confidence,
        sentences=int(text.sentences[text.fitted].sum()),
        seeds=len(group.curves),
        of="seeds" if len(group.curves) >= FEWEST_SEEDS else "runs",
        reason="" if verdict != UNDECIDED else reason,
    )


def _open(claim: StudyClaim, tested: Mapping[str, Any]) -> str:
    """Why a rule has not decided."""
    if not tested:
        return "no resample gives a figure"
    if claim.rule == "equal" and max(-tested["low"], tested["high"]) < claim.margin:
        return f"the interval lies within ±{claim.margin:g}, which the tests do not show"
    if claim.rule == "equal":
        return f"the interval reaches beyond ±{claim.margin:g}, and not as a whole"
    if claim.rule == "no_fall":
        return f"neither a fall by {claim.margin:g} nor its absence is shown"
    return f"the interval holds {claim.margin:g}"
