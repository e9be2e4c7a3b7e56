"""Student's t distribution for any positive number of degrees of freedom; SciPy is no dependency."""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np

NORMAL_FROM = 1e5  # degrees of freedom from which the normal law is the same to 5 digits
_PANELS = 1000


def t_probability(t: float, df: float) -> float:
    """The probability of a value of at most `t`.

    With t = sqrt(df) tan a the density is a power of cos a, which is integrated by Simpson's rule.

    >>> round(t_probability(4.302653, 2), 6), round(t_probability(-1.959964, math.inf), 6)
    (0.975, 0.025)
    """
    if df >= NORMAL_FROM:
        return NormalDist().cdf(t)
    end = math.atan(abs(t) / math.sqrt(df))
    places = np.linspace(0.0, end, 2 * _PANELS + 1)
    heights = np.cos(places) ** (df - 1)
    odd, even = heights[1::2].sum(), heights[2:-1:2].sum()
    area = end / (6 * _PANELS) * (heights[0] + 4 * odd + 2 * even + heights[-1])
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(math.pi)
    beyond = 0.5 - min(0.5, scale * float(area))
    return beyond if t < 0 else 1.0 - beyond


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: float) -> float:
    """The value that is not exceeded with a probability, 0 to 1; by bisection.

    >>> round(t_quantile(0.975, 2), 4), round(t_quantile(0.975, 8.5), 4)
    (4.3027, 2.2826)
    """
    if df >= NORMAL_FROM:
        return NormalDist().inv_cdf(probability)
    low, high = -1.0, 1.0
    while t_probability(low, df) > probability:
        low *= 2
    while t_probability(high, df) < probability:
        high *= 2
    while high - low > 1e-9 * max(1.0, abs(high)):
        middle = (low + high) / 2
        if t_probability(middle, df) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2
