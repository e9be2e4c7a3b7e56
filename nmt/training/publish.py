"""Finishes a run: writes the scores, builds the HTML page, draws figures, logs the results, suggests next steps."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from nmt.evaluation.scores_csv import score_table, write_scores
from nmt.inference.held_out import Evaluated
from nmt.report.comparison import compare_finished
from nmt.report.figures import draw_figures
from nmt.report.page.builder import build_page
from nmt.report.result_tables import scores_by_length
from nmt.report.runs import FinishedRun
from nmt.training.outcome import rerun_command
from nmt.training.result_logging import log_run
from nmt.training.run import Run
from nmt.utils.environment import rank, sweep_folder
from nmt.utils.errors import lack_of_space
from nmt.utils.progress import Stage, timed
from nmt.utils.quoting import as_typed, command_line, override_key, quoted

log = logging.getLogger(__name__)

PAGE = "report.html"
COUNTERPARTS = {  # the experiment to compare with each experiment
    "rnnsearch30": "rnnencdec30",
    "rnnsearch50": "rnnencdec50",
    "rnnsearch50_long": "rnnencdec50",
    "rnnencdec30": "rnnsearch30",
    "rnnencdec50": "rnnsearch50",
}


def publish(run: Run, about: dict[str, Any], evaluated: Evaluated) -> None:
    """Writes the scores, the page and the figures, and logs them, on rank 0 only.

    Args:
        run: the run.
        about: the content of results.json (`describe_run`).
        evaluated: the result of `nmt.inference.held_out.evaluate`.
    """
    if rank():
        return
    config, folder = run.config, run.folder.path
    shown = config.trainer["enable_progress_bar"]
    table = score_table(evaluated.scores)
    write_scores(folder, table)
    finished = FinishedRun(
        config.name,
        about,
        folder,
        records=evaluated.translations,
        kept=evaluated.alignments,
        scores=table,
    )
    try:
        with timed("curves"):
            comparison = compare_finished([finished], shown=shown)
        with timed("page"), Stage(f"making {PAGE}", shown=shown):
            title = f"{config.name} on {config.data.title}"
            page = build_page(comparison, folder / PAGE, config.report, title=title)
        with timed("figures"), Stage("drawing figures", shown=shown):
            figures = draw_figures(comparison, folder / "figures", config.report.figures)
        with timed("logging"), Stage("logging the test", shown=shown):
            log_run(run.loggers, comparison, figures, page)
        if lengths := scores_by_length(comparison):
            log.info("%s", lengths)
    except Exception as error:  # write results.json even if the figures or the page fail
        lack = lack_of_space(error)
        failed = "figures, page and logging: failed%s; continuing without them"
        log.error(failed, f" ({lack})" if lack else "", exc_info=None if lack else error)


def next_steps(run: Run) -> str:
    """Returns a list of commands for a finished training run; empty for a job of a sweep."""
    if sweep_folder():
        return ""
    folder = _short(run.folder.path)
    steps = {
        "translate your own sentences": _command("translate", [f"checkpoint={quoted(folder)}"])
    }
    other = COUNTERPARTS.get(run.config.experiment)
    if other and run.initial is None:
        words = [word for word in run.overrides if override_key(word) != "experiment"]
        beside = f"{folder}-{other}"
        train = rerun_command([f"+experiment={other}", *words, f"hydra.run.dir={quoted(beside)}"])
        runs = f"runs=[{quoted(folder)},{quoted(beside)}]"
        steps[f"compare with {other}"] = f"{as_typed(train)} && {_command('compare', [runs])}"
    if (page := run.folder.path / PAGE).is_file():
        steps["open the page in a browser"] = page.resolve().as_uri()
    return "\n".join(
        ["what to do next:", *(f"  {what}:\n    {how}" for what, how in steps.items())]
    )


def _command(name: str, overrides: list[str]) -> str:
    return as_typed(command_line(name, overrides))


def _short(folder: Path) -> str:
    """Returns the folder relative to the current one, if it is inside."""
    return str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)
