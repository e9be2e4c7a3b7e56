"""A slope written as a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nmt.evaluation.degradation.fit import WORDS, Range

MINUS = "\N{MINUS SIGN}"


def slope_sentence(
    title: str, slope: Mapping[str, Any], part: Range, cap: int | None, digits: int = 1
) -> str:
    """What a slope says of a score; that it falls or rises only where its interval has not 0.

    Args:
        title: of the score.
        slope: `score`, `low` and `high`, the two None without an interval.
        part: the range that it is of.
        cap: longest training sentence.
        digits: decimals.

    >>> slope_sentence("BLEU", {"score": -1.92, "low": -2.31, "high": -1.6}, "beyond_cap", 50)
    'BLEU falls by 1.9 [1.6, 2.3] for each 10 words beyond 50'
    >>> slope_sentence("BLEU", {"score": 0.1, "low": -0.25, "high": 0.44}, "to_cap", 50)
    'BLEU is not shown to fall or rise up to 50 words: 0.1 [−0.2, 0.4] for each 10 words'
    """
    score, low, high = slope["score"], slope["low"], slope["high"]
    where = {"all": "", "to_cap": f" up to {cap}", "beyond_cap": f" beyond {cap}"}[part]
    if low is not None and high is not None and low <= 0 <= high:
        ends = f"{_number(score, digits)} [{_number(low, digits)}, {_number(high, digits)}]"
        place = f"{where} words" if where else " over all lengths"
        return f"{title} is not shown to fall or rise{place}: {ends} for each {WORDS} words"
    sign = -1 if score < 0 else 1
    between = ""
    if low is not None and high is not None:
        least, most = sorted((sign * low, sign * high))
        between = f" [{_number(least, digits)}, {_number(most, digits)}]"
    verb = "falls" if score < 0 else "rises"
    by = _number(sign * score, digits)
    return f"{title} {verb} by {by}{between} for each {WORDS} words{where}"


def _number(value: float, digits: int) -> str:
    return f"{value:z.{digits}f}".replace("-", MINUS)
