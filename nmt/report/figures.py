"""The figures of a run folder and of a comparison: BLEU by length, what lies behind it, alignments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from nmt.config import ReportConfig
from nmt.report.comparison import Comparison, without_unknown
from nmt.report.heatmap import choose_four, four_figure, heatmap_figure, spread_over_lengths
from nmt.report.lengths import (
    caption,
    details_figure,
    differences_caption,
    differences_figure,
    lengths_figure,
)
from nmt.report.runs import FinishedRun
from nmt.report.style import PAPER, draw_figure, file_name
from nmt.utils.files import write_text
from nmt.utils.progress import Stage

log = logging.getLogger(__name__)

FOLDER = "figures"
TEXT_WIDTH = 5.5  # inches: the text of an ICLR page


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
    folder = run.folder / FOLDER
    drawings = _curves(comparison)
    for test_set in run.sets if report.heatmaps else []:
        if rows := attended(run, test_set):
            four = four_of(run, test_set, rows)
            drawings[f"{test_set}-four"] = partial(four_figure, four)
            for row in spread_over_lengths(rows, report.heatmaps):
                title = f"Attention of {run.label}: {test_set}, sentence {row['id']}"
                name = f"{test_set}-heatmap-{row['id']}"
                drawings[name] = partial(heatmap_figure, row, title)
    written: list[Path] = []
    with Stage("drawing", len(drawings), "figure", shown=shown) as stage:
        for name, make in drawings.items():
            written += draw_figure(make, folder / name, report.figures)
            stage.advance()
    return written


def _curves(comparison: Comparison, **options: Any) -> dict[str, Callable[[], Figure | None]]:
    """What draws the figures over length, by their names."""
    makers: dict[str, Callable[..., Figure | None]] = {
        "bleu-by-length": lengths_figure,
        "by-length-details": details_figure,
        "differences-by-length": differences_figure,
    }
    return {
        f"{test_set}-{name}": partial(make, comparison, test_set, **options)
        for test_set in comparison.sets
        if len(comparison.by_length(test_set))
        for name, make in makers.items()
    }


def draw_for_papers(comparison: Comparison, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Draws figures that fit a page of a paper into `folder` and returns their files.

    They are as wide as the text of the paper (`TEXT_WIDTH`) and in a serif face; captions.txt holds
    their captions. For each test set <set>-bleu-by-length, <set>-by-length-details and
    <set>-differences-by-length, seeds as one line, and <set>-<run>-four (the paper's Figure 3) of
    each run with attention.
    """
    drawings = _curves(comparison, width=TEXT_WIDTH, captioned=False)
    for test_set in comparison.sets:
        for number, run in enumerate(comparison.present(test_set), 1):
            if rows := attended(run, test_set):
                four = four_of(run, test_set, rows)
                name = file_name(f"{test_set}-{run.label}-four")
                name += (
                    f"-{number}" if name in drawings else ""
                )  # labels that differ in signs alone
                drawings[name] = partial(four_figure, four, TEXT_WIDTH)
    written: list[Path] = []
    for name, make in drawings.items():
        written += draw_figure(make, folder / name, formats, PAPER)
    texts = [
        f"{file.stem}: {words(comparison, test_set)}\n"
        for test_set in comparison.sets
        for words, ending in ((caption, "bleu"), (differences_caption, "differences"))
        for file in written[:: len(formats)]
        if file.stem == f"{test_set}-{ending}-by-length"
    ]
    if texts:
        written.append(folder / "captions.txt")
        write_text(written[-1], "".join(texts))
    return written


def attended(run: FinishedRun, test_set: str) -> list[dict[str, Any]]:
    """The rows of alignments/<set>.jsonl that have weights: none of a model without attention."""
    return [row for row in run.alignments(test_set) if row["weights"] is not None]


def four_of(
    run: FinishedRun, test_set: str, rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The sentences of a run's four-panel figure, of `rows`; see `choose_four`."""
    return choose_four(rows, without_unknown(run, test_set) or None)
