"""The cost of a study: the missing runs and the time that they will take."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from nmt.studies.existing import RUNS, FoundRuns
from nmt.studies.plan import RunGroup
from nmt.studies.planned import PlannedRun
from nmt.utils.progress import counted, duration

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GroupCost:
    """What a group of runs still takes.

    Attributes:
        found, begun, ahead: finished runs; those with a folder that have not; those to be made,
            the begun ones among them.
        later: runs that are known when a sweep has ended, or when models are trained.
        minutes: of one run; None where nothing says so.
        measured: whether runs of the group have taken them; else the study says so.
    """

    found: int
    begun: int
    ahead: int
    later: int
    minutes: float | None
    measured: bool

    @property
    def total(self) -> float | None:
        """Minutes of all runs ahead, one after the other; a begun one counts as a whole one."""
        runs = self.ahead + self.later
        if not runs:
            return 0.0
        return None if self.minutes is None else runs * self.minutes


def cost_of(group: RunGroup, found: FoundRuns, folder: Path, counted_before: set[str]) -> GroupCost:
    """The cost of a group; runs that an earlier group needs as well are counted there."""
    needed = [run for run in found.needed(group) if run.identity not in counted_before]
    counted_before |= {run.identity for run in needed}
    there = [each for run in needed if (each := found.of(run)) is not None]
    ahead = [run for run in needed if found.of(run) is None]
    timed = [minutes for each in there if (minutes := each.minutes) is not None]
    later = group.size - len(found.final(group)) if group.settings.of else 0
    if group.points and found.chosen(group) is None:
        later = len([seed for seed in group.seeds if seed != group.settings.sweep_seed])
    return GroupCost(
        found=len(there),
        begun=sum(_has_begun(run, folder) for run in ahead),
        ahead=len(ahead),
        later=later,
        minutes=median(timed) if timed else group.settings.minutes,
        measured=bool(timed),
    )


def say_plan(found: FoundRuns, folder: Path) -> None:
    """Logs what a study has and what it still takes."""
    launcher: Any = HydraConfig.get().launcher
    at_a_time = max(1, OmegaConf.select(launcher, "n_jobs", default=1))
    claims = counted(len(found.study.section.claims), "claim")
    log.info("study %s: %s in %s", found.study.name, claims, folder)
    before: set[str] = set()
    costs = {
        name: cost_of(group, found, folder, before) for name, group in found.study.wanted.items()
    }
    width = max(map(len, costs))
    for name, cost in costs.items():
        log.info("  %-*s  %s", width, name, describe(cost))
    runs = sum(cost.ahead + cost.later for cost in costs.values())
    totals = [cost.total for cost in costs.values()]
    known = sum(total for total in totals if total is not None)
    if not runs:
        log.info("no runs to make")
        return
    parts = [f"to make: {counted(runs, 'run')}"]
    if known:
        parts.append(f"about {duration(60 * known / at_a_time)}")
        if at_a_time > 1:
            parts.append(f"{at_a_time} at a time")
    if None in totals:
        parts.append("without those of unknown time" if known else "time not known")
    log.info(", ".join(parts))


def describe(cost: GroupCost) -> str:
    """The cost of a group in a line."""
    parts = [f"{cost.found} found"]
    if cost.ahead:
        begun = f" ({cost.begun} begun)" if cost.begun else ""
        parts.append(f"{cost.ahead} to make{begun}")
    if cost.later:
        parts.append(f"{cost.later} after other runs")
    if cost.ahead + cost.later:
        if cost.minutes is None:
            parts.append("time not known")
        else:
            origin = "measured" if cost.measured else "as the study says"
            parts.append(f"{duration(60 * cost.minutes)} each, {origin}")
    return ", ".join(parts)


def _has_begun(run: PlannedRun, folder: Path) -> bool:
    return (folder / RUNS / run.folder_name / ".hydra").is_dir()
