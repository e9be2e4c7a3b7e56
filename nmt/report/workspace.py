"""Builds a W&B workspace whose panels overlay the curves of runs.

The panels show training metrics, and the results that `nmt.training.result_logging` logs after training.
The package `wandb-workspaces` is an optional dependency (extra `wandb`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nmt.report import logged_values
from nmt.report.comparison import Comparison
from nmt.utils.environment import WITHOUT_KEY, has_wandb_key, need
from nmt.utils.errors import InputError, RunError, first_line

OVER_UPDATES = {
    "valid/bleu": "Development BLEU (greedy)",
    "valid/nll_per_word": "Development NLL per word (nats)",
    "train/nll_per_word": "Training NLL per word (nats)",
    "valid/attention_entropy": "Attention entropy (nats)",
    "valid/eos_weight": "Attention on </s>",
    "valid/alignment_error_rate": "Development alignment error rate",
}


def check_project(text: str) -> None:
    """Checks the value of `wandb=` before a comparison starts.

    Raises:
        InputError: if `text` is not ENTITY/PROJECT, or if the extra `wandb` or a login is missing.
    """
    need("wandb_workspaces.workspaces", "wandb", f"wandb={text}")
    if text.count("/") != 1:
        raise InputError(f"wandb={text}: must be ENTITY/PROJECT, such as my-team/nmt")
    if not has_wandb_key():
        raise InputError(f"wandb={text}: {WITHOUT_KEY}")


def save_workspace(project: str, comparison: Comparison, output: Path) -> str:
    """Saves the workspace for all runs of ENTITY/PROJECT, and returns its URL.

    Raises:
        RunError: if W&B does not save the workspace; the message names `output`, the folder of the page.
    """
    try:
        return str(build_workspace(project, comparison).save().url)
    except Exception as error:  # any connection error or W&B error
        problem = f"not saved ({first_line(error)}); the page is in {output}"
        raise RunError(f"wandb={project}: {problem}") from error


def build_workspace(project: str, comparison: Comparison) -> Any:
    """Builds a `wandb_workspaces.workspaces.Workspace` for all runs of ENTITY/PROJECT."""
    from wandb_workspaces import workspaces
    from wandb_workspaces.reports import v2

    entity, _, name = project.partition("/")
    by_length, scores = [], []
    for test_set in comparison.sets:
        present = set(comparison.by_length(test_set)["key"])
        for key in (key for key in logged_values.CURVES if key in present):
            title = f"{comparison.about[key]['title']} on {test_set}"
            curve = f"length/{test_set}/{key}"
            by_length.append(
                v2.LinePlot(title=f"{title}, by length", x=logged_values.LENGTH, y=[curve])
            )
            scores.append(v2.BarPlot(title=title, metrics=[f"test/{test_set}/{key}"]))
    panels = {
        "By length": by_length,
        "Training": [
            v2.LinePlot(title=title, x=logged_values.UPDATE, y=[key])
            for key, title in OVER_UPDATES.items()
        ],
        "Scores": [*scores, v2.WeavePanelSummaryTable(table_name=logged_values.SCORES)],
        "Alignments": [v2.MediaBrowser(media_keys=[logged_values.HEATMAPS])],
        "Pages": [
            v2.MediaBrowser(title="Figures", media_keys=[logged_values.FIGURES]),
            v2.MediaBrowser(title="Pages", media_keys=[logged_values.PAGE]),
        ],
    }
    columns = ["run:displayName", "config:model.value.title", "config:seed.value"]
    columns += [f"summary:test/{test_set}/bleu" for test_set in comparison.sets]
    return workspaces.Workspace(
        entity=entity,
        project=name,
        name="nmt: translation by length",
        sections=[
            workspaces.Section(name=title, panels=row, is_open=True)
            for title, row in panels.items()
        ],
        runset_settings=workspaces.RunsetSettings(pinned_columns=columns),
    )
