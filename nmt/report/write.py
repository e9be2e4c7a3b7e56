"""Writes a comparison into a folder: page, tables, and figures for papers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from nmt.config.schema import PageConfig
from nmt.report.comparison import Comparison
from nmt.report.page.builder import build_page
from nmt.report.result_tables import scores_by_length, write_tables
from nmt.utils.text import counted

log = logging.getLogger(__name__)


def write_comparison(
    comparison: Comparison,
    folder: Path,
    report: PageConfig | None = None,
    *,
    title: str | None = None,
    figures: Sequence[str] = (),
) -> Path:
    """Writes comparison.html, tables/ and figures/, logs BLEU by length, and returns the page's path.

    Args:
        report, title: as in `build_page`.
        figures: formats of the figures; empty: no figures.
    """
    write_tables(comparison, folder / "tables")
    if figures:
        from nmt.report.figures import draw_figures  # imports matplotlib

        draw_figures(comparison, folder / "figures", figures, captioned=False)
    page = build_page(comparison, folder / "comparison.html", report, title=title)
    systems = sum(run.external for run in comparison.runs)
    counts = {"run": len(comparison.runs) - systems, "system": systems}
    compared = " and ".join(counted(count, kind) for kind, count in counts.items() if count)
    log.info("%s compared: %s\n%s", compared, page, scores_by_length(comparison))
    return page
