"""Scores that other tools and people computed, with what their values mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from nmt.evaluation.scores.base import Ratio
from nmt.utils.errors import InputError


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
OPTIONS = ("file", "better", "best", "worst", "per", "weights")


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
    """A score that was read from a file: a mean over sentences, or a sum divided by a sum such as words."""

    digits = 3

    def __init__(self, key: str, meaning: Meaning, per: str = SENTENCES) -> None:
        unit = per.removesuffix("s")
        self.key = key  # type: ignore[misc]
        self.title = key if per == SENTENCES else f"{key.removesuffix(f'_per_{unit}')} per {unit}"  # type: ignore[misc]
        self.higher_is_better, self.best, self.worst = meaning  # type: ignore[misc]
        self.per = per
        self.notes: list[str] = []

    @property
    def meaning(self) -> str:
        """Says in words what the values mean."""
        ends = [
            f"{name} {value:g}"
            for name, value in (("best", self.best), ("worst", self.worst))
            if value is not None
        ]
        better = {True: "high", False: "low", None: "neither high nor low"}[self.higher_is_better]
        mean = (
            "mean over sentences"
            if self.per == SENTENCES
            else f"sum divided by the number of {self.per}"
        )
        return f"{self.title}: {', '.join([f'{better} is better', *ends])}; {mean}."


class ScoreFile(NamedTuple):
    """A score and its values.

    The columns of `table` are the key of the score, and `system`, `set`, ids and properties of sentences.
    """

    score: FromFile
    table: pd.DataFrame


def options_of(name: str, given: Any) -> dict[str, Any]:
    """Returns the options of `scores.NAME`, which is a file, a list of files, or a mapping with a `file`.

    Raises:
        InputError: if an option is unknown, or if its value is.
    """
    options = dict(given) if isinstance(given, Mapping) else {"file": given}
    if unknown := [key for key in options if key not in OPTIONS]:
        raise InputError(f"scores.{name}.{unknown[0]}: unknown; choose {', '.join(OPTIONS)}")
    if not options.get("file"):
        raise InputError(f"scores.{name}.file: missing; type +scores.{name}.file=FILE")
    if options.get("better", "low") not in ("high", "low"):
        raise InputError(f"scores.{name}.better={options['better']}: must be high or low")
    for key in ("best", "worst"):
        if not isinstance(options.get(key, 0), int | float):
            raise InputError(f"scores.{name}.{key}={options[key]}: must be a number")
    return options


def declare(name: str, options: Mapping[str, Any], values: pd.Series) -> FromFile:
    """Returns the score of a file: what its options say, else what is known of its name.

    Penalties such as MQM may be stored with a minus. Then none is above 0, and high is better.
    """
    meaning = KNOWN.get(known_name(name), Meaning())
    low, high = values.min(), values.max()
    per = str(options.get("per", SENTENCES))
    if meaning.higher_is_better is False and low < 0 and high <= 0:
        meaning = Meaning(True, 0, None if meaning.worst is None else -meaning.worst)
    if per != SENTENCES:
        meaning = meaning._replace(best=meaning.best if meaning.best == 0 else None, worst=None)
    notes = []
    if meaning.best is not None and meaning.worst is not None:
        ends = sorted([meaning.best, meaning.worst])
        beyond = BEYOND * (ends[1] - ends[0])
        if low < ends[0] - beyond or high > ends[1] + beyond:
            usual = f"{ends[0]:g} to {ends[1]:g}"
            notes.append(
                f"{name}: values from {low:g} to {high:g}, not {usual}: best and worst are unknown."
            )
            meaning = Meaning(meaning.higher_is_better)
    if "better" in options:
        better = options["better"] == "high"
        meaning = meaning if better == meaning.higher_is_better else Meaning(better)
    best, worst = (options.get(end, getattr(meaning, end)) for end in ("best", "worst"))
    meaning = Meaning(meaning.higher_is_better, best, worst)
    score = FromFile(name, meaning, per)
    if score.higher_is_better is None:
        notes.append(
            f"{name}: the direction is not known; scores.{name}.better=high or low says it."
        )
    score.notes = [score.meaning, *notes]
    return score
