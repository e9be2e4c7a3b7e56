"""Finishes a run: draws figures, builds the HTML page, logs the results, and writes results.json last."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers import Logger

from nmt.config.schema import Config
from nmt.evaluation import results
from nmt.evaluation.scores import choose_scores
from nmt.evaluation.scores_csv import score_table, write_scores
from nmt.inference.held_out import Evaluated
from nmt.report.comparison import compare_finished
from nmt.report.figures import draw_figures
from nmt.report.page.builder import build_page
from nmt.report.result_tables import bleu_by_length
from nmt.report.runs import FinishedRun
from nmt.training.result_logging import log_run
from nmt.utils.environment import rank
from nmt.utils.errors import full_disk
from nmt.utils.progress import Stage, timed

log = logging.getLogger(__name__)

PAGE = "report.html"


def publish(
    folder: Path,
    config: Config,
    about: Mapping[str, Any],
    evaluated: Evaluated,
    loggers: Sequence[Logger] = (),
) -> None:
    """Writes the scores, figures, page and results.json, on rank 0 only.

    results.json is written last, since this file marks the run as finished.

    Args:
        folder: run folder.
        config: configuration of the run.
        about: the content of results.json, without the scores.
        evaluated: the result of `nmt.inference.held_out.evaluate`.
        loggers: loggers that get the results.
    """
    if rank():
        return
    shown = config.trainer["enable_progress_bar"]
    table = score_table(evaluated.scores)
    chosen = choose_scores(config.evaluation.scores, language=config.data.languages[1])
    described = {s.key: s.description() for s in chosen if s.key in set(table["score"])}
    content = results.as_json({**about, "scores": described})
    write_scores(folder, table)
    run = FinishedRun(
        config.name,
        content,
        folder,
        records=evaluated.translations,
        kept=evaluated.alignments,
        scores=table,
    )
    try:
        _show(run, config, loggers, shown)
    except Exception as error:  # write results.json even if the figures or the page fail
        full = full_disk(error)
        failed = "figures, page and logging: failed%s; continuing without them"
        log.error(failed, f" ({full})" if full else "", exc_info=None if full else error)
    results.write(folder, content)
    log.info("results: %s", folder)


def _show(run: FinishedRun, config: Config, loggers: Sequence[Logger], shown: bool) -> None:
    """Draws the figures and builds the page, then logs both."""
    assert run.folder is not None
    with timed("curves"):
        comparison = compare_finished([run])
    with timed("page"), Stage(f"making {PAGE}", shown=shown):
        title = f"{config.name} on {config.data.title}"
        page = build_page(comparison, run.folder / PAGE, config.report, title=title)
    with timed("figures"), Stage("drawing figures", shown=shown):
        figures = draw_figures(comparison, run.folder / "figures", config.report.figures)
    with Stage("logging the test", shown=shown):
        log_run(loggers, comparison, figures, page)
    if table := bleu_by_length(comparison):
        log.info("%s", table)
