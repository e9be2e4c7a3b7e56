"""A verdict in words: figure, statistic, rule, and the scope of the interval."""

from __future__ import annotations

from nmt.config.keys import CONFIDENCE
from nmt.config.study import FIGURES
from nmt.evaluation.degradation.estimate import FEWEST_SEEDS
from nmt.evaluation.degradation.wording import MINUS
from nmt.evaluation.significance import FEW_SENTENCES, FEWEST
from nmt.report.table import Column, show
from nmt.studies.verdicts import Verdict
from nmt.utils.progress import counted

RANGES = {"all": "", "to_cap": " up to the cap", "beyond_cap": " beyond the cap"}
STATISTICS = {
    "score": "{score}",
    "slope": "change of {score} for 10 more words",
    "tenth": "length at which a tenth of {score} is lost",
    "half": "length at which half of {score} is lost",
    "breakpoint": "length at which the slope of {score} changes",
}


def figure_of(verdict: Verdict, confidence: float | None = None) -> str:
    """The figure with its interval, in the unit of its statistic; a dash without one.

    Args:
        confidence: to be said of the interval; None: its own.
    """
    length = verdict.claim.statistic not in FIGURES
    return shown_figure(
        (verdict.value, verdict.low, verdict.high),
        1 if length else max(2, verdict.score.digits),
        " words" if length else "",
        verdict.confidence if confidence is None else confidence,
    )


def shown_figure(
    measured: tuple[float | None, float | None, float | None],
    digits: int,
    unit: str = "",
    confidence: float = CONFIDENCE,
) -> str:
    """A figure with its interval, whose confidence is said unless it is the usual one.

    >>> shown_figure((5.047, 4.824, None), 1, " words")
    '5.0 words [4.8, …]'
    >>> shown_figure((None, None, 16.0), 1, " words", 0.9)
    'before 16.0 words (90 %)'
    """
    column = Column("figure", "figure", digits)
    value, low, high = (None if each is None else show(each, column) for each in measured)
    if value is not None:
        said = f"{value}{unit} [{low or '…'}, {high or '…'}]"
    elif low is None and high is None:
        return "–"
    elif low is None or high is None:  # it lies outside the data, on the side of the other end
        said = f"before {high}{unit}" if low is None else f"beyond {low}{unit}"
    else:
        said = f"– [{low}, {high}]{unit}"
    return said if confidence == CONFIDENCE else f"{said} ({100 * confidence:g} %)"


def statistic_of(verdict: Verdict) -> str:
    """What is measured, of which runs, on which sentences."""
    claim = verdict.claim
    what = STATISTICS[claim.statistic].format(score=verdict.score.title)
    runs = " less that of ".join(claim.runs)
    longer = f", more than {claim.longer_than} words" if claim.longer_than else ""
    return f"{what} of {runs}, on {claim.set}{RANGES[claim.range]}{longer}"


def rule_of(verdict: Verdict) -> str:
    """The rule in words."""
    claim = verdict.claim
    margin = f"{claim.margin:g}".replace("-", MINUS)
    return {
        "above": f"above {margin}",
        "below": f"below {margin}",
        "equal": f"within ±{margin} of 0",
        "no_fall": f"not worse than 0 by {margin}",
    }[claim.rule]


def shown_p(p: float) -> str:
    """A p value with as many digits as are meaningful.

    >>> shown_p(0.0123456), shown_p(3e-16)
    ('p = 0.0123', 'p < 0.0001')
    """
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.3g}"


def spoken_of(verdict: Verdict) -> str:
    """What the interval generalises to, with p and the numbers of sentences and seeds."""
    if not verdict.of:
        return ""
    speaks = (
        "of other seeds and sentences"
        if verdict.of == "seeds"
        else f"of these trained models on other sentences: fewer than {FEWEST_SEEDS} seeds"
    )
    p = "" if verdict.p is None else f", {shown_p(verdict.p)}"
    few = f"; {FEW_SENTENCES}" if (verdict.sentences or 0) < FEWEST else ""
    return (
        f" ({100 * verdict.confidence:g} % interval, {speaks}; {verdict.sentences:,} sentences, "
        f"{counted(verdict.seeds or 0, 'seed')}{p}{few})"
    )
