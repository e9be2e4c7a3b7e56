"""Groups of runs that differ by nothing but their seed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nmt.report.runs import Run


def grouped(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs by group, in the order of the first of each; a group has its runs' name without the seed."""
    members: dict[str, list[Run]] = {}
    for run in runs:
        members.setdefault(run.group, []).append(run)
    groups: dict[str, list[Run]] = {}
    for alike in members.values():
        labels = {re.sub(r" seed \S+$", "", run.label) for run in alike}
        name = labels.pop() if len(labels) == 1 else alike[0].label
        same = sum(re.sub(r" \(\d+\)$", "", known) == name for known in groups)
        groups[f"{name} ({same + 1})" if same else name] = alike
    return groups
