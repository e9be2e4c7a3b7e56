"""A W&B workspace and a report that lay runs over one another in native panels.

The panels draw what `nmt.report.loggers` and the training log. Both are built without a login; saving
them needs one. `wandb=preview` writes what would be saved, and a picture of it. `wandb-workspaces` is
an extra.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from nmt.report.comparison import Comparison
from nmt.report.loggers import (
    CURVES,
    FIGURES,
    HEATMAPS,
    LENGTH,
    PAGE,
    SCORES,
    TRANSLATIONS,
    UPDATE,
    length_curves,
    summary_of,
)
from nmt.report.runs import FinishedRun
from nmt.report.style import draw_figure, run_style, shown
from nmt.utils.environment import WITHOUT_KEY, has_wandb_key, need
from nmt.utils.errors import InputError, RunError, first_line
from nmt.utils.files import write_text

PREVIEW = "preview"
COMPARISON = "comparison/page"
OVER_UPDATES = {
    "valid/bleu": "Development BLEU (greedy)",
    "valid/nll_per_word": "Development NLL per word (nats)",
    "train/nll_per_word": "Training NLL per word (nats)",
    "valid/attention_entropy": "Attention entropy (nats)",
    "valid/eos_weight": "Attention on </s>",
    "valid/alignment_error_rate": "Development alignment error rate",
}
BARS = ("bleu", "bleu_no_unk", "alignment_error_rate")  # of each test set


def check_project(text: str) -> None:
    """Checks `wandb=` at the start of a comparison.

    Raises:
        InputError: for what is neither ENTITY/PROJECT nor `preview`, without the extra, and without
            a login.
    """
    for module in ("workspaces", "reports.v2"):
        need(f"wandb_workspaces.{module}", "wandb", f"wandb={text}")
    if text != PREVIEW and not re.fullmatch(r"[\w.-]+/[^/\\#?%:\s]+", text):
        raise InputError(f"wandb={text}: must be ENTITY/PROJECT, such as my-team/nmt, or {PREVIEW}")
    if text != PREVIEW and not has_wandb_key():
        raise InputError(f"wandb={text}: {WITHOUT_KEY}")


def sections(comparison: Comparison) -> dict[str, list[Any]]:
    """The native panels of what the runs have logged, by the heading they stand under.

    They stand on W&B's grid of 24 columns: charts three abreast, tables and pictures below.
    """
    from wandb_workspaces.reports import v2

    runs = [run for run in comparison.runs if not run.external]
    about, sets = comparison.about, comparison.sets
    attention = any(run.results.get("scoring", "none") != "none" for run in runs)
    logged = {key for run in runs for row in length_curves(run) for key in row}
    summary = {key for run in runs for key in summary_of(run)}
    heatmaps = v2.MediaBrowser(
        title="The same sentences at every validation", media_keys=[HEATMAPS]
    )
    panels: dict[str, list[Any]] = {
        "By length": [
            v2.LinePlot(title=f"{about[score]['title']} by length, {name}", x=LENGTH, y=[key])
            for name in sets
            for score in CURVES
            if (key := f"length/{name}/{score}") in logged
        ],
        "Training": [
            v2.LinePlot(title=title, x=UPDATE, y=[key])
            for key, title in OVER_UPDATES.items()
            if attention or "nll" in key or "bleu" in key
        ],
        "Scores": [
            *(
                v2.BarPlot(title=f"{about[score]['title']}, {name}", metrics=[key])
                for name in sets
                for score in BARS
                if (key := f"test/{name}/{score}") in summary
            ),
            v2.WeavePanelSummaryTable(table_name=SCORES),
        ],
        "Alignments": [heatmaps] if attention else [],
        "Translations": [v2.WeavePanelSummaryTable(table_name=TRANSLATIONS)],
        "Pages": [
            v2.MediaBrowser(title="Figures", media_keys=[FIGURES]),
            v2.MediaBrowser(title="Pages", media_keys=[COMPARISON, PAGE]),
        ],
    }
    for row in panels.values():
        charts = [panel for panel in row if isinstance(panel, v2.LinePlot | v2.BarPlot)]
        for n, panel in enumerate(charts):
            panel.layout = v2.Layout(x=8 * (n % 3), y=10 * (n // 3), w=8, h=10)
        for n, panel in enumerate(row[len(charts) :]):
            panel.layout = v2.Layout(x=0, y=10 * -(-len(charts) // 3) + 20 * n, w=24, h=20)
    return {title: row for title, row in panels.items() if row}


def build_workspace(project: str, comparison: Comparison) -> Any:
    """A `wandb_workspaces.workspaces.Workspace` over all runs of ENTITY/PROJECT."""
    from wandb_workspaces import workspaces

    entity, _, name = project.partition("/")
    columns = ["run:displayName", "config:model.value.title", "config:seed.value"]
    columns += [f"summary:test/{each}/bleu" for each in comparison.sets]
    return workspaces.Workspace(
        entity=entity,
        project=name,
        name="nmt: translation by length",
        sections=[
            workspaces.Section(name=title, panels=panels, is_open=True)
            for title, panels in sections(comparison).items()
        ],
        runset_settings=workspaces.RunsetSettings(pinned_columns=columns),
    )


def build_report(project: str, comparison: Comparison, ids: Sequence[str]) -> Any:
    """A `wandb_workspaces.reports.v2.Report` of the runs that W&B knows by these ids; of all if none."""
    from wandb_workspaces import workspaces
    from wandb_workspaces.reports import v2

    entity, _, name = project.partition("/")
    chosen = workspaces.And(workspaces.Metric("ID").isin(list(ids))) if ids else ""
    runset = v2.Runset(entity=entity, project=name, name="Compared runs", filters=chosen)
    labels = ", ".join(run.label for run in comparison.runs)
    blocks: list[Any] = [v2.TableOfContents(), v2.P(text=f"Compared: {labels}.")]
    for title, panels in sections(comparison).items():
        blocks += [v2.H2(text=title), v2.PanelGrid(runsets=[runset], panels=panels)]
    return v2.Report(
        entity=entity,
        project=name,
        title="Translation quality by length",
        description="Made by python -m nmt.compare.",
        blocks=blocks,
        width="fluid",
    )


def save_dashboards(project: str, comparison: Comparison, page: Path) -> list[str]:
    """Saves report and workspace and logs the comparison page; returns their addresses.

    Args:
        project: ENTITY/PROJECT, or `preview`: files beside the page.

    Raises:
        RunError: if W&B does not take them.
    """
    if project == PREVIEW:
        return [str(path) for path in _write_preview(comparison, page.parent / "wandb")]
    try:
        files = [run.folder / "wandb" / "id" for run in comparison.runs if run.folder]
        ids = [file.read_text().strip() for file in files if file.is_file()]
        compared = [*ids, _log_page(project, page)] if ids else []
        report = build_report(project, comparison, compared).save()
        workspace = build_workspace(project, comparison).save()
        return [report.url, workspace.url]
    except Exception as error:  # the network, the key, the rights, the service
        raise RunError(
            f"wandb={project}: not saved ({first_line(error)}); the page is {page}"
        ) from error


def _write_preview(comparison: Comparison, folder: Path) -> list[Path]:
    """Writes the workspace as W&B would get it, and a picture; a report has the same panels."""
    folder.mkdir(parents=True, exist_ok=True)
    model = build_workspace("entity/project", comparison)._to_model()
    content = model.model_dump(mode="json", by_alias=True)
    write_text(folder / "workspace.json", json.dumps(content, indent=2))
    drawn = draw_figure(lambda: preview_figure(comparison), folder / "preview", ["png"])
    return [folder / "workspace.json", *drawn]


def preview_figure(comparison: Comparison) -> Figure:
    """The line panels and bar charts as W&B would draw them from what the runs logged."""
    from wandb_workspaces.reports import v2

    runs = [run for run in comparison.runs if not run.external]
    panels = [panel for row in sections(comparison).values() for panel in row]
    charts = [panel for panel in panels if isinstance(panel, v2.LinePlot | v2.BarPlot)]
    rows = -(-len(charts) // 3)
    figure = Figure(figsize=(10, 2.4 * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, 3, squeeze=False).flat
    for chart, panel in zip(axes, charts, strict=False):
        chart.set_title(panel.title)
        for place, run in enumerate(runs):
            look, label = run_style(place), shown(run.label, 40)
            if isinstance(panel, v2.BarPlot):
                value = summary_of(run).get(str(panel.metrics[0]), 0.0)
                chart.barh(place, value, color=look["color"])
                chart.set_yticks([])
            else:
                points = _points(run, panel.x, panel.y[0])
                chart.plot(points[panel.x], points[panel.y[0]], label=label, **look)
                chart.set_xlabel(panel.x)
    for chart in axes[len(charts) :]:
        chart.remove()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _points(run: FinishedRun, axis: str, metric: str) -> pd.DataFrame:
    """What a run logged of a metric, over its axis."""
    rows = length_curves(run)
    if axis == UPDATE:
        name = metric.replace("train/", "train_").removeprefix("valid/")
        history = run.results.get("history") or []
        rows = [{axis: each["update"], metric: each.get(name)} for each in history]
    return pd.DataFrame(rows).reindex(columns=[axis, metric]).dropna()


def _log_page(project: str, page: Path) -> str:
    """Logs the comparison page in a W&B run of its own and returns the run's id."""
    import wandb

    entity, _, name = project.partition("/")
    with wandb.init(
        entity=entity,
        project=name,
        job_type="comparison",
        name=f"comparison: {page.parent.resolve().name}",
        dir=str(page.parent),
        reinit="create_new",
        settings=wandb.Settings(console="off", silent=True),
    ) as run:
        run.log({COMPARISON: wandb.Html(page, inject=False)})
        return str(run.id)
