"""Scores that other tools and people computed, with what their values mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd
from omegaconf import MISSING

from nmt.config.keys import key
from nmt.evaluation.scores.base import Ratio


class Meaning(NamedTuple):
    """The direction of a score, and the ends of its scale."""

    higher_is_better: bool | None = None
    best: float | None = None
    worst: float | None = None


# A score has the meaning of the first of these names that is a word of its name. COMET, MetricX and BLEURT
# may have a number or a letter before or after them, as in xcomet or metricx24.
KNOWN = {
    "comet": Meaning(True, 1, 0),
    "metricx": Meaning(False, 0, 25),
    "bleurt": Meaning(True),
    "mqm": Meaning(False, 0, 25),
    "gemba": Meaning(True, 100, 0),
    "esa": Meaning(True, 100, 0),
    "da": Meaning(True, 100, 0),
}
WITHIN = ("comet", "metricx", "bleurt")  # names that may be a part of a word
PEOPLE = ("mqm", "esa", "da")  # scores that people gave
BEYOND = 0.1  # share of its scale by which a learnt metric may be outside of it
SENTENCES, WORDS = "sentences", "words"  # values of `per`
BETTER = {True: "high is better", False: "low is better", None: "neither high nor low is better"}


@dataclass
class ScoreOptions:
    """The options of `scores.NAME`."""

    file: Any = MISSING  # a file or a list of files
    better: str | None = key(None, "direction of the score", choices=("high", "low"))
    best: float | None = None
    worst: float | None = None
    per: str = SENTENCES  # the values are summed, and divided by a sum of this
    weights: dict[str, float] = field(default_factory=dict)  # of errors in MQM ratings


def known_name(key: str) -> str:
    """Returns the name in `KNOWN` that a score's name contains, or "".

    >>> known_name("wmt22-comet-da"), known_name("XCOMET_XL"), known_name("human_esa"), known_name("mine")
    ('comet', 'comet', 'esa', '')
    """
    words = re.findall(r"[a-z]+", key.lower())
    return next(
        (n for n in KNOWN if n in words or (n in WITHIN and any(n in word for word in words))), ""
    )


class FromFile(Ratio):
    """A score that was read from a file: a mean over sentences, or a sum divided by a sum such as words.

    The columns of `values` are the key of the score, and `system`, `set`, ids and properties of sentences.
    """

    digits = 3

    def __init__(self, key: str, meaning: Meaning, per: str, values: pd.DataFrame) -> None:
        unit = per.removesuffix("s")
        self.key = key  # type: ignore[misc]
        self.title = key if per == SENTENCES else f"{key.removesuffix(f'_per_{unit}')} per {unit}"  # type: ignore[misc]
        self.higher_is_better, self.best, self.worst = meaning  # type: ignore[misc]
        self.per = per
        self.values = values
        ends = [
            f"{end} {at:g}" for end in ("best", "worst") if (at := getattr(self, end)) is not None
        ]
        how = f"sum divided by the number of {per}" if per != SENTENCES else "mean over sentences"
        says = ", ".join([BETTER[self.higher_is_better], *ends])
        self.notes = [f"{self.title}: {says}; {how}."]


def declare(name: str, options: ScoreOptions, values: pd.DataFrame) -> FromFile:
    """Returns the score in a column of a table: what its options say, else what is known of its name.

    Penalties such as MQM may be stored with a minus. Then none is above 0, and high is better.
    """
    higher, best, worst = KNOWN.get(known_name(name), Meaning())
    low, high = values[name].min(), values[name].max()
    if higher is False and worst is not None and low < 0 and high <= 0:
        higher, worst = True, -worst
    if options.per != SENTENCES:
        best, worst = (0 if best == 0 else None), None
    notes = []
    if best is not None and worst is not None:
        ends = sorted([best, worst])
        beyond = BEYOND * abs(best - worst)
        if low < ends[0] - beyond or high > ends[1] + beyond:
            usual = "{:g} to {:g}".format(*ends)
            notes.append(
                f"{name}: values from {low:g} to {high:g}, not {usual}: best and worst are unknown."
            )
            best = worst = None
    if options.better and higher != (options.better == "high"):
        higher, best, worst = options.better == "high", None, None
    best = best if options.best is None else options.best
    worst = worst if options.worst is None else options.worst
    if higher is None:
        notes.append(f"{name}: the direction is not known; type scores.{name}.better=high or low.")
    score = FromFile(name, Meaning(higher, best, worst), options.per, values)
    score.notes += notes
    return score
