"""A W&B workspace and a report that lay runs over one another in native panels.

The panels are drawn from what `nmt.report.wandb.panels` and the training log. Both are built without a login;
saving them, and logging the comparison page, needs one. `wandb-workspaces` is an extra.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from nmt.report.comparison import scored_sets
from nmt.report.runs import FinishedRun
from nmt.report.style import file_name
from nmt.report.wandb.panels import (
    ALIGNMENT,
    FIGURES,
    LENGTH,
    PAGE,
    PICTURED,
    TABLE,
    TRANSLATIONS,
    UPDATE,
    length_curves,
    length_metric,
    log_page,
    score_titles,
    summary_metric,
    summary_of,
)
from nmt.utils.errors import InputError, RunError, first_line
from nmt.utils.optional import need
from nmt.utils.wandb_key import WITHOUT_KEY, has_key

OVER_UPDATES = {
    "valid/bleu": "Development BLEU (greedy)",
    "valid/nll_per_word": "Development NLL a word (nats)",
    "train/nll_per_word": "Training NLL a word (nats)",
    "valid/attention_entropy": "Attention entropy (nats)",
    "valid/alignment_error_rate": "Development alignment error rate",
    "train/gradient_norm": "Norm of the gradient",
}
BARS = ("bleu", "bleu_no_unk", "alignment_error_rate", "nll_per_sentence")  # drawn of each set
COMPARISON = "comparison/page"
NEEDS_ATTENTION = {"valid/attention_entropy", "valid/alignment_error_rate"}


@dataclass(frozen=True)
class Project:
    """Where in W&B: the user or team, and the project."""

    entity: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Project:
        """Reads ENTITY/PROJECT. Raises InputError."""
        found = re.fullmatch(r"([\w.-]+)/([^/\\#?%:\s]+)", text)
        if found is None:
            raise InputError(f"wandb={text}: must be ENTITY/PROJECT, such as my-team/nmt")
        return cls(*found.groups())

    def __str__(self) -> str:
        return f"{self.entity}/{self.name}"


@dataclass(frozen=True)
class Part:
    """Panels under one heading, with a sentence that says how to read them."""

    title: str
    text: str
    panels: list[Any]


def check_project(text: str) -> Project:
    """Where the dashboards go; refuses at the start what would be found missing at the end.

    Raises:
        InputError: for what is not ENTITY/PROJECT, without the extra, and without a login.
    """
    project = Project.parse(text)
    _libraries()
    if not has_key():
        raise InputError(f"wandb={text}: {WITHOUT_KEY}")
    return project


def parts(runs: Sequence[FinishedRun]) -> list[Part]:
    """All panels of some runs, those left out that none of them has anything for."""
    _, reports = _libraries()
    sets = scored_sets(runs)
    attention = any(run.results.get("scoring", "none") != "none" for run in runs)
    found = [_over_length(reports, runs, name) for name in sets]
    found.append(
        Part(
            "Validation",
            "Curves over updates on the development set, and the training between validations.",
            [
                reports.LinePlot(title=title, x=UPDATE, y=[metric], title_x="updates")
                for metric, title in OVER_UPDATES.items()
                if attention or metric not in NEEDS_ATTENTION
            ],
        )
    )
    found.append(_scores(reports, runs, sets))
    tables = [reports.WeavePanelSummaryTable(table_name=TRANSLATIONS)] if sets else []
    text = "Sentences of all lengths with their translations; of some, the weights of attention."
    found.append(Part("Translations", text, tables))
    if attention:
        keys = [f"{ALIGNMENT}/{place}" for place in range(1, PICTURED + 1)]
        panels = [
            reports.MediaBrowser(title="The same sentences at every validation", media_keys=keys)
        ]
        panels += [
            reports.MediaBrowser(title=f"Four sentences of {name}", media_keys=[_figure(name)])
            for name in sets
        ]
        text = "Source words along the top, target words down the side, weights from black (0) to white (1)."
        found.append(Part("Alignments", text, panels))
    pages = [
        reports.MediaBrowser(title="The page that compares the runs", media_keys=[COMPARISON]),
        reports.MediaBrowser(title="Each run's own page", media_keys=[PAGE]),
    ]
    found.append(Part("Pages", "The pages with the alignment explorer, as written.", pages))
    return [part for part in found if part.panels]


def build_workspace(project: Project, runs: Sequence[FinishedRun]) -> Any:
    """A `wandb_workspaces.workspaces.Workspace` over all runs of the project, present and to come."""
    workspaces, _ = _libraries()
    sets = scored_sets(runs)
    return workspaces.Workspace(
        entity=project.entity,
        project=project.name,
        name="nmt: translation by length",
        sections=[
            workspaces.Section(name=part.title, panels=_arranged(part.panels, 8), is_open=True)
            for part in parts(runs)
        ],
        settings=workspaces.WorkspaceSettings(max_runs=20),
        runset_settings=workspaces.RunsetSettings(
            pinned_columns=[
                "run:displayName",
                "config:model.value.title",
                "config:data.value.max_length",
                "config:seed.value",
                *(f"summary:{summary_metric(name, 'bleu')}" for name in sets),
            ]
        ),
    )


def build_report(
    project: Project, runs: Sequence[FinishedRun], comparison: str | None = None
) -> Any:
    """A `wandb_workspaces.reports.v2.Report` of these runs.

    Args:
        runs: where W&B knows some of them the report shows these alone, otherwise the whole project.
        comparison: id of the W&B run that holds the comparison page.
    """
    workspaces, reports = _libraries()
    ids = [known for run in runs if (known := wandb_id(run))]
    shown = [*ids, comparison] if ids and comparison else ids
    runset = reports.Runset(
        entity=project.entity,
        project=project.name,
        name="Compared runs",
        filters=workspaces.And(workspaces.Metric("ID").isin(shown)) if shown else "",
    )
    names = ", ".join(run.label for run in runs)
    blocks: list[Any] = [reports.TableOfContents(), reports.P(text=f"Compared: {names}.")]
    for part in parts(runs):
        grid = reports.PanelGrid(runsets=[runset], panels=_arranged(part.panels, 12))
        blocks += [reports.H2(text=part.title), reports.P(text=part.text), grid]
    return reports.Report(
        entity=project.entity,
        project=project.name,
        title="Translation quality by length",
        description="Made by python -m nmt.compare; its page and tables hold intervals and tests.",
        blocks=blocks,
        width="fluid",
    )


def save_dashboards(project: Project, runs: Sequence[FinishedRun], page: Path) -> list[str]:
    """Logs the comparison page, saves report and workspace, and returns the addresses of both.

    Args:
        runs: those with a configuration; outside systems have nothing in W&B.
        page: the comparison page.

    Raises:
        RunError: if W&B does not take them, in one line.
    """
    try:
        comparison = log_comparison(project, page)
        report = build_report(project, runs, comparison).save()
        workspace = build_workspace(project, runs).save()
        return [report.url, workspace.url]
    except Exception as error:  # the network, the key, the rights, the service
        reason = first_line(error)
        raise RunError(f"wandb={project}: not saved ({reason}); the page is {page}") from error


def log_comparison(project: Project, page: Path) -> str:
    """Logs the comparison page in a W&B run of its own and returns the run's id."""
    import wandb

    run = wandb.init(
        entity=project.entity,
        project=project.name,
        name=f"comparison: {page.parent.resolve().name}",
        job_type="comparison",
        dir=str(page.parent),
        reinit="create_new",
        settings=wandb.Settings(console="off", silent=True),
    )
    try:
        log_page(run, page, COMPARISON)
    finally:
        run.finish()
    return str(run.id)


def wandb_id(run: FinishedRun) -> str | None:
    """The id that a run logged to W&B under; None where it did not."""
    file = run.folder / "wandb" / "id" if run.folder else None
    return file.read_text().strip() if file and file.is_file() else None


def _libraries() -> tuple[ModuleType, ModuleType]:
    names = ("wandb_workspaces.workspaces", "wandb_workspaces.reports.v2")
    workspaces, reports = (need(name, "wandb", "wandb=ENTITY/PROJECT") for name in names)
    return workspaces, reports


def _over_length(reports: ModuleType, runs: Sequence[FinishedRun], test_set: str) -> Part:
    titles = _titles(runs, by_length=True)
    logged = {
        metric
        for run in runs
        for _, _, curves in length_curves(run.results["test"].get(test_set, {}), titles)
        for metric in curves
    }
    panels = [
        reports.LinePlot(
            title=f"{title} by length, {test_set}",
            x=LENGTH,
            y=[length_metric(test_set, score)],
            title_x="words of a sentence, at most",
        )
        for score, title in titles.items()
        if score in logged
    ]
    text = "One point a bucket of lengths, at its longest sentences; the table below has intervals and counts."
    return Part(f"By length: {test_set}", text, panels)


def _scores(reports: ModuleType, runs: Sequence[FinishedRun], sets: Sequence[str]) -> Part:
    titles = _titles(runs)
    panels = [
        reports.BarPlot(title=f"{titles[score]}, {name}", metrics=[summary_metric(name, score)])
        for name in sets
        for score in BARS
        if any(
            summary_of(name, run.results["test"][name], [score]) for run in runs if name in run.sets
        )
    ]
    panels += [
        reports.WeavePanelSummaryTable(table_name=TABLE),
        reports.RunComparer(diff_only="split"),
    ]
    return Part(
        "Scores", "The whole test sets, the buckets of lengths, and what sets runs apart.", panels
    )


def _arranged(panels: Sequence[Any], tall: int) -> list[Any]:
    """Panels three abreast on W&B's grid of 24 columns; what holds pages and tables takes its width."""
    left = top = height = 0
    for panel in panels:
        wide = 8 if type(panel).__name__ in ("LinePlot", "BarPlot", "ScatterPlot") else 24
        rows = tall if wide == 8 else 2 * tall
        if left + wide > 24:
            left, top, height = 0, top + height, 0
        panel.layout.x, panel.layout.y, panel.layout.w, panel.layout.h = left, top, wide, rows
        left, height = left + wide, max(height, rows)
    return list(panels)


def _titles(runs: Sequence[FinishedRun], by_length: bool = False) -> dict[str, str]:
    return {
        key: title for run in runs for key, title in score_titles(run.results, by_length).items()
    }


def _figure(test_set: str) -> str:
    return f"{FIGURES}/{file_name(f'{test_set}-four')}"
