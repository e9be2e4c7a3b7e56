"""The headline of a comparison: what the slopes of BLEU say, and the names of the runs."""

from __future__ import annotations

from collections.abc import Sequence

from nmt.evaluation.scores import REGISTERED
from nmt.report.comparison import SetComparison
from nmt.report.falls import verdicts
from nmt.report.groups import grouped
from nmt.report.runs import FinishedRun
from nmt.utils.progress import enumeration

MOST = 6
"""Lines that are told one by one; of more the one that falls most and the one that falls least."""


def verdict(comparison: SetComparison) -> str | None:
    """What the slopes of BLEU say of each group of seeds; None where nothing could be fitted.

    A score is said to fall only where the interval of its slope does not hold 0.
    """
    falls = comparison.falls
    about = REGISTERED["bleu"].description()
    fitted = []
    for name, found in falls.of_groups.get("bleu", {}).items():
        said = verdicts(found, about, falls.caps[name])
        if said:
            slope = found["all"]["slope"]
            fitted.append((slope["score"] if slope else 0.0, f"{name}: {'; '.join(said)}."))
    if len(fitted) > MOST:
        fitted = [min(fitted), max(fitted)]
    return " ".join(sentence for _, sentence in fitted) or None


def names_of(runs: Sequence[FinishedRun]) -> str:
    """Runs as a title says them: by group, four at most."""
    names = list(grouped(runs))
    return enumeration(names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"])
