"""The curve over length in a sentence: from which score to which each line goes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from nmt.evaluation.buckets import bucket_name
from nmt.evaluation.results import bucket_score
from nmt.report.comparison import SetComparison
from nmt.report.groups import grouped
from nmt.report.runs import FinishedRun

MOST = 6
"""Lines that are told one by one; of more the first and the last by how much they lose."""

NO_BREAK = "\u2011"
"""A hyphen that no line ends at."""


def verdict(comparison: SetComparison) -> str | None:
    """What BLEU does from the shortest sentences to the longest; None with fewer than two buckets.

    Runs that differ by their seed alone are told by their mean.
    """
    losses = []
    for name, members in grouped(comparison.runs).items():
        first, last = _ends([comparison.rows(run.label) for run in members])
        if first is not None and last is not None:
            losses.append((first[1] - last[1], name, first, last))
    if not losses:
        return None
    losses.sort(key=lambda one: -one[0])
    told = losses if len(losses) <= MOST else [losses[0], losses[-1]]
    parts = [
        f"{name} {'falls' if loss > 0 else 'goes'} from {first[1]:.1f} ({first[0]} words) "
        f"to {last[1]:.1f} ({last[0]} words)"
        for loss, name, first, last in told
    ]
    return f"BLEU with length: {'; '.join(parts)}."


def _ends(tables: Sequence[Sequence[dict[str, Any]]]) -> tuple[Any, Any]:
    """(bucket, mean BLEU) of the first and the last bucket that every table has; None twice else."""
    found: dict[str, tuple[int, list[float]]] = {}
    for rows in tables:
        for row in rows:
            score = bucket_score(row, "bleu")
            if score is not None and score["score"] is not None:
                name = bucket_name(row).replace("-", NO_BREAK)
                found.setdefault(name, (row["from"], []))[1].append(score["score"])
    shared = sorted(
        (start, name, fmean(scores))
        for name, (start, scores) in found.items()
        if len(scores) == len(tables)
    )
    if len(shared) < 2:
        return None, None
    return shared[0][1:], shared[-1][1:]


def names_of(runs: Sequence[FinishedRun], most: int = 4) -> str:
    """Runs as a title says them: by group, the first few."""
    names = list(grouped(runs))
    if len(names) <= most:
        return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
