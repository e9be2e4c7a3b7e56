"""A W&B workspace and a report that lay runs over one another in native panels.

The panels draw what `nmt.report.loggers` and the training log. Both are built without a login; saving
them needs one. `wandb=preview` writes what would be saved, and a picture of it. `wandb-workspaces` is
an extra.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
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
from nmt.utils.errors import InputError, RunError, first_line
from nmt.utils.files import write_text
from nmt.utils.optional import need
from nmt.utils.wandb_key import WITHOUT_KEY, has_key

PREVIEW = "preview"
COMPARISON = "comparison/page"
OVER_UPDATES = {
    "valid/bleu": "Development BLEU (greedy)",
    "valid/nll_per_word": "Development NLL a word (nats)",
    "train/nll_per_word": "Training NLL a word (nats)",
    "valid/attention_entropy": "Attention entropy (nats)",
    "valid/eos_weight": "Attention on </s>",
    "valid/alignment_error_rate": "Development alignment error rate",
}
BARS = ("bleu", "bleu_no_unk", "alignment_error_rate")  # of each test set


@dataclass(frozen=True)
class Part:
    """Panels under one heading, with a sentence that says how to read them.

    Attributes:
        lines, bars: titles of line panels and bar charts, by metric.
        media: keys of pictures and pages by title.
        tables: names of tables.
    """

    title: str
    text: str
    axis: str = UPDATE
    lines: dict[str, str] | None = None
    bars: dict[str, str] | None = None
    media: dict[str, list[str]] | None = None
    tables: tuple[str, ...] = ()


def check_project(text: str) -> None:
    """Refuses at the start what would be found missing at the end.

    Raises:
        InputError: for what is neither ENTITY/PROJECT nor `preview`, without the extra, and without
            a login.
    """
    for module in ("workspaces", "reports.v2"):
        need(f"wandb_workspaces.{module}", "wandb", f"wandb={text}")
    if text != PREVIEW and not re.fullmatch(r"[\w.-]+/[^/\\#?%:\s]+", text):
        raise InputError(f"wandb={text}: must be ENTITY/PROJECT, such as my-team/nmt, or {PREVIEW}")
    if text != PREVIEW and not has_key():
        raise InputError(f"wandb={text}: {WITHOUT_KEY}")


def parts(comparison: Comparison) -> list[Part]:
    """All panels of some runs, without those that none of them has anything for."""
    runs = [run for run in comparison.runs if not run.external]
    about, sets = comparison.about, comparison.sets
    attention = any(run.results.get("scoring", "none") != "none" for run in runs)
    logged = {key for run in runs for row in length_curves(run) for key in row}
    summary = {key for run in runs for key in summary_of(run)}
    curves = {
        f"length/{name}/{key}": f"{about[key]['title']} by length, {name}"
        for name in sets
        for key in CURVES
        if f"length/{name}/{key}" in logged
    }
    bars = {
        f"test/{name}/{key}": f"{about[key]['title']}, {name}"
        for name in sets
        for key in BARS
        if f"test/{name}/{key}" in summary
    }
    updates = {k: v for k, v in OVER_UPDATES.items() if attention or "nll" in k or "bleu" in k}
    heatmaps = {"The same sentences at every validation": [HEATMAPS]} if attention else {}
    return [
        Part("By length", "A point a bucket, at its longest sentences.", LENGTH, lines=curves),
        Part("Training", "Curves over updates.", lines=updates),
        Part(
            "Scores",
            "Whole test sets; the table has buckets and intervals.",
            bars=bars,
            tables=(SCORES,),
        ),
        Part("Alignments", "Source along the top, target down the side.", media=heatmaps),
        Part("Translations", "Sentences of all lengths.", tables=(TRANSLATIONS,)),
        Part(
            "Pages", "Figures and pages.", media={"Figures": [FIGURES], "Pages": [COMPARISON, PAGE]}
        ),
    ]


def panels(part: Part) -> list[Any]:
    """The native panels of a part, three abreast on W&B's grid of 24 columns."""
    from wandb_workspaces.reports import v2

    found: list[Any] = [
        v2.LinePlot(title=title, x=part.axis, y=[metric])
        for metric, title in (part.lines or {}).items()
    ]
    found += [v2.BarPlot(title=t, metrics=[metric]) for metric, t in (part.bars or {}).items()]
    narrow = len(found)
    found += [v2.MediaBrowser(title=t, media_keys=keys) for t, keys in (part.media or {}).items()]
    found += [v2.WeavePanelSummaryTable(table_name=name) for name in part.tables]
    for place, panel in enumerate(found):
        layout = panel.layout
        rows = -(-narrow // 3)
        if place < narrow:
            layout.x, layout.y, layout.w, layout.h = 8 * (place % 3), 10 * (place // 3), 8, 10
        else:
            layout.x, layout.y, layout.w, layout.h = 0, 10 * rows + 20 * (place - narrow), 24, 20
    return found


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
            workspaces.Section(name=part.title, panels=made, is_open=True)
            for part in parts(comparison)
            if (made := panels(part))
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
    for part in parts(comparison):
        if made := panels(part):
            grid = v2.PanelGrid(runsets=[runset], panels=made)
            blocks += [v2.H2(text=part.title), v2.P(text=part.text), grid]
    return v2.Report(
        entity=entity,
        project=name,
        title="Translation quality by length",
        description="Made by python -m nmt.compare.",
        blocks=blocks,
        width="fluid",
    )


def save_dashboards(project: str, comparison: Comparison, page: Path) -> list[str]:
    """Saves report and workspace and logs the comparison page; returns what was made, by address.

    Args:
        project: ENTITY/PROJECT, or `preview`: files beside the page.

    Raises:
        RunError: if W&B does not take them.
    """
    ids = [known for run in comparison.runs if (known := wandb_id(run))]
    if project == PREVIEW:
        return [str(path) for path in _write_preview(comparison, page.parent / "wandb")]
    try:
        shown_ids = [*ids, _log_page(project, page)] if ids else []
        report = build_report(project, comparison, shown_ids).save()
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
    runs = [run for run in comparison.runs if not run.external]
    drawn = [
        (part.axis, metric, title, bar)
        for part in parts(comparison)
        for bar, metrics in ((False, part.lines), (True, part.bars))
        for metric, title in (metrics or {}).items()
    ]
    rows = -(-len(drawn) // 3)
    figure = Figure(figsize=(10, 2.4 * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, 3, squeeze=False)
    for panel, (axis, metric, title, bar) in zip(axes.flat, drawn, strict=False):
        panel.set_title(title)
        for place, run in enumerate(runs):
            look, label = run_style(place), shown(run.label, 40)
            if bar:
                panel.barh(place, summary_of(run).get(metric, 0.0), color=look["color"])
                panel.set_yticks([])
                continue
            points = _points(run, axis, metric)
            panel.plot(points[axis], points[metric], label=label, **look)
            panel.set_xlabel(axis)
    for panel in axes.flat[len(drawn) :]:
        panel.remove()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _points(run: FinishedRun, axis: str, metric: str) -> pd.DataFrame:
    """What a run logged of a metric, over its axis."""
    if axis == LENGTH:
        rows = length_curves(run)
    else:
        name = metric.replace("train/", "train_").removeprefix("valid/")
        history = run.results.get("history") or []
        rows = [{axis: each["update"], metric: each.get(name)} for each in history]
    return pd.DataFrame(rows).reindex(columns=[axis, metric]).dropna()


def _log_page(project: str, page: Path) -> str:
    """Logs the comparison page in a W&B run of its own and returns the run's id."""
    import wandb

    entity, _, name = project.partition("/")
    run = wandb.init(
        entity=entity,
        project=name,
        name=f"comparison: {page.parent.resolve().name}",
        job_type="comparison",
        dir=str(page.parent),
        reinit="create_new",
        settings=wandb.Settings(console="off", silent=True),
    )
    try:
        run.log({COMPARISON: wandb.Html(page, inject=False)})
    finally:
        run.finish()
    return str(run.id)


def wandb_id(run: FinishedRun) -> str | None:
    """The id that a run logged to W&B under; None where it did not."""
    file = run.folder / "wandb" / "id" if run.folder else None
    return file.read_text().strip() if file and file.is_file() else None
