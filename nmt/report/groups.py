"""Groups of runs that differ by nothing but their seed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from nmt.report.runs import FinishedRun


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
        name = _without_seed(alike)
        same = sum(re.sub(r" \(\d+\)$", "", known) == name for known in groups)
        groups[f"{name} ({same + 1})" if same else name] = alike
    return groups


def _without_seed(alike: Sequence[FinishedRun]) -> str:
    """What the labels of a group have in common; the folder that tells a single run apart stays."""
    folder = r"( \[[^]]*\])?( #\d+)?" if len(alike) > 1 else ""
    names = {re.sub(rf" seed \S+{folder}$", "", run.label) for run in alike}
    return names.pop() if len(names) == 1 else alike[0].label
