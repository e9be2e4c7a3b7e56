"""How a score falls with sentence length: slopes, lengths of losses, a breakpoint, and differences.

Scores of buckets come from summed statistics, never from averaged sentence scores. How the
statistics are read, and how often their intervals hold the truth: docs/degradation.md.
"""

from nmt.evaluation.degradation.curve import Curve, curves, measured_curves
from nmt.evaluation.degradation.estimate import Estimate, Group, estimate
from nmt.evaluation.degradation.findings import compare_degradation, degradation_of
from nmt.evaluation.degradation.fit import RANGES, Range

__all__ = [
    "RANGES",
    "Curve",
    "Estimate",
    "Group",
    "Range",
    "compare_degradation",
    "curves",
    "degradation_of",
    "estimate",
    "measured_curves",
]
