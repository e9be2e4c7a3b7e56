"""Student's t distribution for any positive number of degrees of freedom; SciPy is no dependency."""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

NORMAL_FROM = 1e5  # degrees of freedom from which the normal law is the same to 5 digits
CLOSE = 1e-8  # to a quantile, in parts of it: on which side a value lies is then computed
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
    """The value that is not exceeded with a probability, 0 to 1; by bisection about `_newton`'s.

    >>> round(t_quantile(0.975, 2), 4), round(t_quantile(0.975, 8.5), 4)
    (4.3027, 2.2826)
    """
    if df >= NORMAL_FROM:
        return NormalDist().inv_cdf(probability)
    about = _newton(probability, df)

    def beyond(value: float) -> float:
        far = abs(value - about) > CLOSE * max(1.0, abs(about))
        return value - about if far else t_probability(value, df) - probability

    low, high = -1.0, 1.0
    while beyond(low) > 0:
        low *= 2
    while beyond(high) < 0:
        high *= 2
    while high - low > 1e-9 * max(1.0, abs(high)):
        middle = (low + high) / 2
        if beyond(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _newton(probability: float, df: float) -> float:
    """A quantile by Newton's method, from the normal law's, which lies nearer to 0; NaN if not found."""
    value = NormalDist().inv_cdf(probability)
    for _ in range(100):
        density = _scale(df) / math.sqrt(df) * (1 + value**2 / df) ** (-(df + 1) / 2)
        step = (probability - t_probability(value, df)) / density
        value += step
        if abs(step) <= 1e-3 * CLOSE * max(1.0, abs(value)):
            return value
    return math.nan
