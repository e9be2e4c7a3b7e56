"""The figures of a run folder and of a comparison: BLEU by length, what lies behind it, alignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from nmt.config import ReportConfig
from nmt.report.comparison import Comparison
from nmt.report.heatmap import choose_four, four_figure, heatmap_figure, spread_over_lengths
from nmt.report.lengths import (
    caption,
    control_of,
    details_figure,
    differences_caption,
    differences_figure,
    lengths_figure,
)
from nmt.report.runs import FinishedRun
from nmt.report.style import PAPER, draw_figure
from nmt.utils.files import write_text
from nmt.utils.progress import Stage

FOLDER = "figures"
TEXT_WIDTH = 5.5  # inches: the text of an ICLR page

Drawings = dict[str, Callable[[], Figure | None]]  # by the name of the file


def draw_run(comparison: Comparison, report: ReportConfig, shown: bool = False) -> list[Path]:
    """Draws the figures of a run by itself into its folder `figures/` and returns their files.

    For every test set <set>-bleu-by-length and <set>-by-length-details, and where the model has
    attention <set>-four (the paper's Figure 3) and <set>-heatmap-<id> for `report.heatmaps` sentences
    from short to long.

    Raises:
        InputError: a file of the run that cannot be read.
    """
    (run,) = comparison.runs
    assert run.folder is not None
    drawings = _curves(comparison)
    for test_set in run.sets if report.heatmaps else []:
        rows = _attended(run, test_set)
        if rows:
            drawings[f"{test_set}-four"] = partial(four_figure, _four(run, test_set, rows))
        for row in spread_over_lengths(rows, report.heatmaps):
            title = f"Attention of {run.label}: {test_set}, sentence {row['id']}"
            drawings[f"{test_set}-heatmap-{row['id']}"] = partial(heatmap_figure, row, title)
    return _draw(drawings, run.folder / FOLDER, report.figures, shown=shown)


def draw_for_papers(comparison: Comparison, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Draws figures that fit a page of a paper into `folder` and returns their files.

    They are as wide as the text of the paper (`TEXT_WIDTH`) and in a serif face; captions.txt holds
    their captions. For each test set <set>-bleu-by-length, <set>-by-length-details and
    <set>-differences-by-length, seeds as one line, and <set>-<run>-four (the paper's Figure 3) of
    each run with attention.
    """
    drawings = _curves(comparison, TEXT_WIDTH)
    for test_set in comparison.sets:
        for run in comparison.present(test_set):
            if rows := _attended(run, test_set):
                make = partial(four_figure, _four(run, test_set, rows), TEXT_WIDTH)
                drawings[f"{test_set}-{run.label}-four"] = make
    written = _draw(drawings, folder, formats, PAPER)
    captions = {}
    for name in comparison.sets:
        control = control_of(comparison, name)
        captions[f"{name}-bleu-by-length"] = caption(comparison, name)
        captions[f"{name}-differences-by-length"] = differences_caption(comparison, name, control)
    stems = {file.stem for file in written}
    lines = [f"{stem}: {text}\n" for stem, text in captions.items() if stem in stems]
    write_text(folder / "captions.txt", "".join(lines))
    return [*written, folder / "captions.txt"]


def _curves(comparison: Comparison, width: float | None = None) -> Drawings:
    """The figures over length."""
    return {
        f"{test_set}-{name}": partial(make, comparison, test_set, width)
        for test_set in comparison.sets
        if len(comparison.by_length(test_set))
        for name, make in (
            ("bleu-by-length", lengths_figure),
            ("by-length-details", details_figure),
            ("differences-by-length", differences_figure),
        )
    }


def _draw(
    drawings: Drawings,
    folder: Path,
    formats: Sequence[str],
    changes: Mapping[str, Any] | None = None,
    shown: bool = False,
) -> list[Path]:
    written = []
    with Stage("drawing", len(drawings), "figure", shown=shown) as stage:
        for name, make in drawings.items():
            written += draw_figure(make, folder / name, formats, changes)
            stage.advance()
    return written


def _attended(run: FinishedRun, test_set: str) -> list[dict[str, Any]]:
    """The rows of alignments/<set>.jsonl that have weights: none of a model without attention."""
    return [row for row in run.alignments(test_set) if row["weights"] is not None]


def _four(run: FinishedRun, test_set: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sentences of a run's four-panel figure."""
    return choose_four(rows, run.covered(test_set) or None)
