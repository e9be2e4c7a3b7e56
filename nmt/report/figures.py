"""The figures of a run folder: BLEU by length, what lies behind it, and alignments.

Everything is read from the files that a run leaves behind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nmt.config import ReportConfig
from nmt.report.heatmap import choose_four, draw_four, draw_heatmap, spread_over_lengths
from nmt.report.lengths import draw_length_details, draw_lengths
from nmt.report.runs import Run, read_run

__all__ = ["draw_four", "draw_heatmap", "draw_length_details", "draw_lengths", "draw_run"]

FOLDER = "figures"


def draw_run(
    folder: Path, report: ReportConfig, results: dict[str, Any] | None = None
) -> list[Path]:
    """Draws the figures of every test set into `folder`/figures and returns their files.

    <set>-bleu-by-length, <set>-by-length-details, and where the model has attention <set>-four (the
    paper's Figure 3) and <set>-heatmap-<id> for `report.heatmaps` sentences from short to long.

    Args:
        results: content of results.json where that file, a run's last, is not yet written.

    Raises:
        Refusal: an unknown format, or a folder that cannot be read.
    """
    folder = Path(folder)
    if results is None:
        run = read_run(folder)
    else:
        run = Run(str(results.get("name") or folder.name), results, folder)
    written: list[Path] = []
    for test_set in run.sets:
        start = folder / FOLDER / test_set
        formats = list(report.figures)
        if run.results["test"][test_set].get("by_length"):
            by_length = start.with_name(f"{test_set}-bleu-by-length")
            written += draw_lengths([run], by_length, test_set, formats)
            details = start.with_name(f"{test_set}-by-length-details")
            written += draw_length_details([run], details, test_set, formats)
        rows = [row for row in run.alignments(test_set) if row["weights"] is not None]
        if not rows or not report.heatmaps:
            continue
        known = {row["id"] for row in run.translations(test_set) if row.get("no_unk")}
        four = choose_four(rows, report.sentence, known or None)
        written += draw_four(four, start.with_name(f"{test_set}-four"), formats)
        for row in spread_over_lengths(rows, report.heatmaps):
            file = start.with_name(f"{test_set}-heatmap-{row['id']}")
            written += draw_heatmap(row, file, formats)
    return written
