"""Groups of runs that differ by nothing but their seed, and those of many that are compared in pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nmt.evaluation.results import score_of
from nmt.report.runs import FinishedRun

MOST_PAIRED = 25  # runs, or groups, that are compared pair by pair: 300 would make 44,850 pairs


def bleu_of(results: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """BLEU of each run on a test set, 0 where it has none, from the set's entries of results.json."""
    return {
        label: (score_of(result, "bleu") or {}).get("score", 0.0)
        for label, result in results.items()
    }


def paired(scores: Mapping[str, float], outside: Sequence[str]) -> list[str]:
    """Names of the runs, or groups, that are compared pair by pair, in the order given.

    All of them; of more than `MOST_PAIRED` those of the highest scores, outside systems first.
    """
    ranked = sorted(scores, key=lambda name: (name not in outside, -scores[name]))
    return [name for name in scores if name in ranked[:MOST_PAIRED]]


def paired_note(count: int, noun: str) -> str | None:
    """What is said where `paired` has left some out of so many; None where it has not."""
    if count <= MOST_PAIRED:
        return None
    return (
        f"Of the {count} {noun} these are the {MOST_PAIRED} of the highest BLEU on the set "
        "(outside systems first); runs= takes others."
    )


def grouped(runs: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    """Runs by group, in the order of the first of each; a group has its runs' name without the seed.

    A seed is once in a group: a second run of it, such as an evaluation of the same checkpoint, is
    no second draw, and belongs to a group of second runs.
    """
    members: dict[tuple[str, int], list[FinishedRun]] = {}
    seen: Counter[tuple[str, int | None]] = Counter()
    for run in runs:
        members.setdefault((run.group, seen[run.group, run.seed]), []).append(run)
        seen[run.group, run.seed] += 1
    groups: dict[str, list[FinishedRun]] = {}
    for alike in members.values():
        name = free = _without_seed(alike)
        number = 1
        while free in groups:
            number += 1
            free = f"{name} ({number})"
        groups[free] = alike
    return groups


def _without_seed(alike: Sequence[FinishedRun]) -> str:
    """What the labels of a group have in common; the folder that tells a single run apart stays."""
    folder = r"( \[[^]]*\])?( #\d+)?" if len(alike) > 1 else ""
    names = {re.sub(rf" seed \S+{folder}$", "", run.label) for run in alike}
    return names.pop() if len(names) == 1 else alike[0].label
