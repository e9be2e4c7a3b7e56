"""Keys of a study: its runs, its claims, and the rules that decide them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omegaconf import MISSING

from nmt.config.keys import CONFIDENCE, MOST_RESAMPLES, key

COMMANDS = ("train", "evaluate", "baseline")  # that make the runs of a study
FIGURES = ("score", "slope")  # of one group of runs, or of the difference of two
LENGTHS = ("tenth", "half", "breakpoint")  # in source words, of one group
RANGES = ("all", "to_cap", "beyond_cap")  # as in nmt.evaluation.degradation
RULES = ("above", "below", "equal", "no_fall")


@dataclass
class StudyRuns:
    """Runs that differ by their seed alone: what is typed after the name of a command."""

    title: str = key("", "their name in tables; empty: that of the group")
    command: str = key(
        "train",
        "what makes them: nmt.train, nmt.baseline, or nmt.evaluate on the models of another group",
        choices=COMMANDS,
    )
    of: str | None = key(None, "of command=evaluate: the group whose models are evaluated")
    together: bool = key(False, "of command=evaluate: all of these models as one ensemble")
    reverse: str | None = key(
        None,
        "of command=evaluate: a group of models of the other direction; that of the same seed aligns "
        "the same pairs (evaluation.alignment.reverse_checkpoint)",
    )
    overrides: list[str] = key([], "what is typed for these runs, after study.overrides")
    seeds: list[int] | None = key(
        None, "their seeds; null: study.seeds, or those of the group `of`", minimum=0
    )
    sweep: dict[str, Any] = key(
        {},
        "values to choose from, {key: [value, …]}: every combination is trained with sweep_seed, and "
        "the runs are of the one with the lowest development NLL per word",
    )
    sweep_seed: int = key(1, "seed of the runs of the sweep", minimum=0)
    minutes: float | None = key(
        None, "minutes that one run takes; the plan says so until one was timed", above=0
    )


@dataclass
class StudyClaim:
    """A sentence that runs decide, and the rule that they decide it by."""

    claim: str = key(MISSING, "the sentence that is decided")
    source: str = key(MISSING, "who says so, and where")
    runs: list[str] = key(
        MISSING, "groups of study.runs: one, or two, of which the first less the second is taken"
    )
    statistic: str = key(
        MISSING,
        "score, or slope (change of the score for 10 more words); length where a tenth or half of the "
        "best bucket is lost, or where the slope changes",
        choices=(*FIGURES, *LENGTHS),
    )
    score: str = key("bleu", "a registered score, bleu_no_unk, or one of your own as MODULE.NAME")
    set: str = key("by_length", "test set; left out: that of study.set")
    range: str = key(
        "all",
        "sentences of any length, up to the longest trained on, or beyond it",
        choices=RANGES,
    )
    longer_than: int = key(0, "sentences with more source words than this alone; 0: all", minimum=0)
    rule: str = key(
        MISSING,
        "supported where the statistic is above or below the margin, equal (within the margin of 0), "
        "or does not fall (is not worse than 0 by the margin)",
        choices=RULES,
    )
    margin: float = key(MISSING, "in points of the score (slope: for 10 words), or words")


@dataclass
class StudySection:
    """A study, and how it is run here."""

    title: str = key("", "heading of the report")
    overrides: list[str] = key([], "what is typed for all runs")
    seeds: list[int] = key([1, 2, 3], "seeds of each group of runs", minimum=0)
    runs: dict[str, Any] = key(
        {},
        "groups of runs by name: title, command, of, together, overrides, seeds, sweep, sweep_seed, minutes",
    )
    claims: dict[str, Any] = key(
        {},
        "claims by name: claim, source, runs, statistic, score, set, range, longer_than, rule, margin",
    )
    set: str = key("by_length", "test set of the claims that name none")
    resamples: int = key(
        1000, "bootstrap resamples behind each figure", minimum=100, maximum=MOST_RESAMPLES
    )
    confidence: float = key(
        CONFIDENCE, "share of the truth's inside an interval", above=0.5, below=1
    )
    only: list[str] = key([], "claims whose runs are made, by name; empty: all runs of the study")
    root: str | None = key(None, "folder of the text: data.root of all runs", path=True)
    take: list[str] = key(
        [],
        "run folders, sweep folders, or globs of them, whose runs are taken where they fit",
        path=True,
    )
    accept: str = key(
        "same",
        "runs that are taken: of the same configuration, code and text, or of the same configuration, "
        "whatever code made them",
        choices=("same", "configuration"),
    )
    missing: str = key(
        "run",
        "train the runs that are missing, or leave the claims that need them undecided",
        choices=("run", "leave"),
    )
    plan_only: bool = key(False, "show the plan and what it costs, and end")


@dataclass
class StudyConfig:
    """`nmt.study`."""

    study: StudySection = key(StudySection, "the study")
