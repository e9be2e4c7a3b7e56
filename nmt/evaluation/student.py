"""Student's t distribution, for degrees of freedom from 1 on; SciPy is no dependency."""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

NORMAL_FROM = 1e5  # degrees of freedom from which the normal law is the same to 5 digits
CLOSE = 1e-11  # a last step, in parts of the value
STEPS = 100  # at most; few are needed
_PANELS = 1000
_PLACES = np.arange(2.0 * _PANELS + 1)


def t_probability(t: float, df: float) -> float:
    """The probability of a value of at most `t`.

    With t = sqrt(df) tan a the density is a power of cos a, which is integrated by Simpson's rule.

    >>> round(t_probability(4.302653, 2), 6), round(t_probability(-1.959964, math.inf), 6)
    (0.975, 0.025)
    """
    if df >= NORMAL_FROM:
        return NormalDist().cdf(t)
    end = math.atan(abs(t) / math.sqrt(df))
    heights = np.cos(_PLACES * (end / (2 * _PANELS))) ** (df - 1)
    odd, even = heights[1::2].sum(), heights[2:-1:2].sum()
    area = end / (6 * _PANELS) * (heights[0] + 4 * odd + 2 * even + heights[-1])
    beyond = 0.5 - min(0.5, _scale(df) * float(area))
    return beyond if t < 0 else 1.0 - beyond


def _scale(df: float) -> float:
    return math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: float) -> float:
    """The value that is not exceeded with a probability, 0 to 1 exclusive, by Newton's method.

    The normal law's quantile lies between 0 and it, and on either side of 0 the distribution bends
    towards 0, so that no step overshoots.

    >>> round(t_quantile(0.975, 2), 4), round(t_quantile(0.975, 8.5), 4)
    (4.3027, 2.2826)
    """
    value = NormalDist().inv_cdf(probability)
    if df >= NORMAL_FROM:
        return value
    for _ in range(STEPS):
        density = _scale(df) / math.sqrt(df) * (1 + value**2 / df) ** (-(df + 1) / 2)
        step = (probability - t_probability(value, df)) / density
        value += step
        if abs(step) <= CLOSE * max(1.0, abs(value)):
            break
    return value
