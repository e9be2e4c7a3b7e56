"""The figures of a run folder and of a comparison: BLEU by length, what lies behind it, alignments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from nmt.config import ReportConfig
from nmt.report.comparison import Comparison, only, without_unknown
from nmt.report.heatmap import choose_four, four_figure, heatmap_figure, spread_over_lengths
from nmt.report.lengths import caption, details_figure, lengths_figure
from nmt.report.runs import FinishedRun
from nmt.report.style import PAPER, draw_figure, file_name, save_figure, style
from nmt.utils.files import write_text
from nmt.utils.progress import Stage

log = logging.getLogger(__name__)

FOLDER = "figures"
TEXT_WIDTH = 5.5  # inches: the text of an ICLR page


def draw_run(run: FinishedRun, report: ReportConfig, shown: bool = False) -> list[Path]:
    """Draws the figures of every test set into the run's figures/ and returns their files.

    <set>-bleu-by-length, <set>-by-length-details, and where the model has attention <set>-four (the
    paper's Figure 3) and <set>-heatmap-<id> for `report.heatmaps` sentences from short to long.

    Args:
        shown: show progress.

    Raises:
        InputError: a file of the run that cannot be read.
    """
    assert run.folder is not None
    drawings = list(_drawings(run, report, run.folder / FOLDER))
    written: list[Path] = []
    with Stage("drawing", len(drawings), "figure", shown=shown) as stage:
        for drawing in drawings:
            written += drawing()
            stage.advance()
    return written


def _drawings(
    run: FinishedRun, report: ReportConfig, folder: Path
) -> Iterator[Callable[[], list[Path]]]:
    """What draws each figure of a run and returns its files."""
    formats, alone = list(report.figures), only(run)

    def drawing(
        name: str, make: Callable[..., Figure | None], *arguments: Any
    ) -> Callable[[], list[Path]]:
        return partial(draw_figure, partial(make, *arguments), folder / name, formats)

    for test_set in run.sets:
        if len(alone.by_length(test_set)):
            yield drawing(f"{test_set}-bleu-by-length", lengths_figure, alone, test_set)
            yield drawing(f"{test_set}-by-length-details", details_figure, alone, test_set)
        rows = attended(run, test_set) if report.heatmaps else []
        if not rows:
            continue
        yield drawing(
            f"{test_set}-four", four_figure, four_of(run, test_set, rows, report.sentence)
        )
        for row in spread_over_lengths(rows, report.heatmaps):
            title = f"Attention of {run.label}: {test_set}, sentence {row['id']}"
            yield drawing(f"{test_set}-heatmap-{row['id']}", heatmap_figure, row, title)


def draw_for_papers(
    comparison: Comparison, folder: Path, formats: Sequence[str], sentence: str | None = None
) -> list[Path]:
    """Draws figures that fit a page of a paper into `folder` and returns their files.

    They are as wide as the text of the paper (`TEXT_WIDTH`) and in a serif face; captions.txt holds
    what a caption has to say. For each test set <set>-bleu-by-length and <set>-by-length-details,
    seeds as one line, and <set>-<run>-four (the paper's Figure 3) of each run with attention.

    Args:
        sentence: source text of the first sentence of the four; None: the set's first.
    """
    written: list[Path] = []
    captions = []
    with style(PAPER):
        for test_set in comparison.sets:
            if len(comparison.by_length(test_set)):
                figure = lengths_figure(comparison, test_set, width=TEXT_WIDTH, captioned=False)
                written += save_figure(figure, folder / f"{test_set}-bleu-by-length", formats)
                details = details_figure(comparison, test_set, width=TEXT_WIDTH)
                if details is not None:
                    path = folder / f"{test_set}-by-length-details"
                    written += save_figure(details, path, formats)
                captions.append(caption(comparison, test_set))
            for number, run in enumerate(comparison.present(test_set), 1):
                rows = attended(run, test_set)
                if rows:
                    figure = four_figure(four_of(run, test_set, rows, sentence), TEXT_WIDTH)
                    stem = file_name(f"{test_set}-{run.label}-four")
                    if stem in {file.stem for file in written}:
                        stem += f"-{number}"  # labels that differ in signs alone
                    written += save_figure(figure, folder / stem, formats)
    if captions:
        written.append(folder / "captions.txt")
        write_text(written[-1], "".join(f"{line}\n" for line in captions))
    return written


def attended(run: FinishedRun, test_set: str) -> list[dict[str, Any]]:
    """The rows of alignments/<set>.jsonl that have weights: none of a model without attention."""
    return [row for row in run.alignments(test_set) if row["weights"] is not None]


def four_of(
    run: FinishedRun, test_set: str, rows: Sequence[dict[str, Any]], sentence: str | None
) -> list[dict[str, Any]]:
    """The sentences of a run's four-panel figure, of `rows`; see `choose_four`."""
    return choose_four(rows, sentence, without_unknown(run, test_set) or None)
