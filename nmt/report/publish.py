"""Finishes a run: draws figures, builds the page, logs, and writes results.json last."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import Logger

from nmt.config import Config
from nmt.evaluation import results
from nmt.evaluation.scores import choose_scores
from nmt.evaluation.table import score_table, write_scores
from nmt.report.comparison import compare_runs, only
from nmt.report.figures import draw_figures
from nmt.report.loggers import log_run
from nmt.report.page.builder import build_page
from nmt.report.runs import FinishedRun
from nmt.report.tables import bleu_by_length
from nmt.utils.environment import rank
from nmt.utils.progress import Stage, timed

log = logging.getLogger(__name__)

PAGE = "report.html"


def publish(
    folder: Path,
    config: Config,
    about: Mapping[str, Any],
    scores: Sequence[Mapping[str, Any]],
    loggers: Sequence[Logger] = (),
) -> None:
    """Writes the output for people on rank 0; results.json marks the run as finished.

    Args:
        folder: run folder.
        config: configuration of the run.
        about: the content of results.json, without the scores.
        scores: rows of `scores.csv`.
        loggers: loggers that get the results.
    """
    if rank():
        return
    shown = config.trainer["enable_progress_bar"]
    table = score_table(scores)
    chosen = choose_scores(config.evaluation.scores, language=config.data.languages[1])
    described = {s.key: s.description() for s in chosen if s.key in set(table["score"])}
    content = results.as_json({**about, "scores": described})
    write_scores(folder, table)
    run = FinishedRun(config.name, content, folder)
    comparison = only(run)
    figures: list[Path] = []
    page: Path | None = None
    with left_out("curves over length"), timed("curves"):
        comparison = compare_runs([run])
    with left_out("figures"), timed("figures"):
        formats, heatmaps = config.report.figures, config.report.heatmaps
        figures = draw_figures(comparison, folder / "figures", formats, heatmaps, progress=shown)
    with left_out(PAGE), timed("page"), Stage(f"making {PAGE}", shown=shown):
        title = f"{config.name} on {config.data.title}"
        page = build_page(comparison, folder / PAGE, config.report, title=title)
    with Stage("logging the test", shown=shown):
        log_run(loggers, comparison, figures, page)
    results.write(folder, content)
    if table := bleu_by_length(comparison):
        log.info("%s", table)
    log.info("results: %s", folder)


@contextlib.contextmanager
def left_out(what: str) -> Iterator[None]:
    """Logs an error and continues, so that results are written even if figures or the page fail."""
    try:
        yield
    except Exception:
        log.exception("%s: failed; continuing without", what)
