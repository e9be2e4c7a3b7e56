"""The end of a run: figures, page, loggers and, last of all, results.json."""

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
from nmt.report.figures import draw_run
from nmt.report.loggers import log_run
from nmt.report.page import build_page
from nmt.report.runs import FinishedRun
from nmt.report.tables import length_curve
from nmt.utils.environment import rank
from nmt.utils.files import NO_ROOM
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
    """Writes all that people look at; where results.json exists the run is finished. On rank 0.

    Args:
        folder: of the run.
        config: of the run.
        about: the content of results.json, without the scores.
        scores: rows of `scores.csv`.
        loggers: what the test is logged to.
    """
    if rank():
        return
    shown = config.trainer["enable_progress_bar"]
    table = score_table(scores)
    known = set(table["score"])
    chosen = choose_scores(config.evaluation.scores, language=config.data.languages[1])
    described = {each.key: each.description() for each in chosen if each.key in known}
    content = results.as_json({**about, "scores": described})
    write_scores(folder, table)
    run = FinishedRun(config.name, content, folder)
    figures: list[Path] = []
    page: Path | None = None
    comparison = only(run)
    # results are written even if a figure or the page fails
    with left_out("curves over length"), timed("curves"):
        comparison = compare_runs([run])
    with left_out("figures"), timed("figures"):
        figures = draw_run(comparison, config.report, shown)
    with left_out(PAGE), timed("page"), Stage(f"making {PAGE}", shown=shown):
        title = f"{config.name} on {config.data.title}"
        page = build_page(comparison, folder / PAGE, config.report, title=title)
    with Stage("logging the test", shown=shown):
        log_run(loggers, comparison, figures, page)
    results.write(folder, content)
    written = ["results", *(["figures"] if figures else []), *([PAGE] if page else [])]
    if curve := length_curve(run):
        log.info("%s", curve)
    log.info("%s: %s", ", ".join(written), folder)


@contextlib.contextmanager
def left_out(what: str) -> Iterator[None]:
    """Logs an error inside, and continues without what was to be made there."""
    try:
        yield
    except ModuleNotFoundError as missing:
        log.warning("%s is left out: %s is not installed", what, missing.name)
    except Exception as error:
        full = full_disk(error)
        if full is None:
            log.exception("%s: not all could be made; the run continues without them", what)
        else:
            log.error("%s: %s; the run continues without all of them", what, full.strerror)


def full_disk(error: BaseException | None) -> OSError | None:
    """The error of a full disk in the chain of causes of an error, or None."""
    while error is not None and not (isinstance(error, OSError) and error.errno in NO_ROOM):
        error = error.__cause__ or error.__context__
    return error
