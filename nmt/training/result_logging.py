"""Logs what Lightning does not log by itself: heatmaps, scores, figures and the HTML page.

W&B gets all of these. TensorBoard gets scores and images. Other Lightning loggers get only scores. A
logger that fails (no network, a full disk) causes a warning and does not stop the training.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from pytorch_lightning.loggers import Logger, TensorBoardLogger, WandbLogger

from nmt.evaluation.records import Record
from nmt.evaluation.scores_csv import COLUMNS
from nmt.report.comparison import Comparison
from nmt.report.heatmap import heatmap_figure
from nmt.report.logged_values import (
    FIGURES,
    HEATMAPS,
    LENGTH,
    PAGE,
    SCORES,
    length_curves,
    summary_of,
)
from nmt.report.style import style

log = logging.getLogger(__name__)

Images = Mapping[str, Image.Image]


@contextmanager
def warn_on_error(doing: str) -> Iterator[None]:
    """Logs a warning instead of any exception that is raised in this context."""
    try:
        yield
    except Exception as error:
        log.warning("%s failed (%s: %s); continuing", doing, type(error).__name__, error)


def log_heatmaps(loggers: Iterable[Logger], rows: Sequence[Record], update: int) -> None:
    """Logs heatmaps of the attention on some sentences at a validation.

    Args:
        rows: records with `id`, `source` and `target` (symbols, with `</s>`), and `weights` (target, source).
        update: number of updates at the validation.
    """
    takers = [logger for logger in loggers if isinstance(logger, TensorBoardLogger | WandbLogger)]
    if not takers:
        return
    with warn_on_error("drawing heatmaps"):
        images = {str(n): _rendered(heatmap_figure(row)) for n, row in enumerate(rows, 1)}
        for logger in takers:
            with warn_on_error(f"logging heatmaps to {type(logger).__name__}"):
                log_images(logger, HEATMAPS, images, update)


@style()
def _rendered(figure: Figure) -> Image.Image:
    stream = io.BytesIO()
    box = figure.get_tightbbox().padded(0.1)  # bbox_inches="tight" would draw the figure twice
    figure.savefig(stream, format="png", dpi=120, bbox_inches=box)
    return Image.open(stream)


def log_run(
    loggers: Iterable[Logger], comparison: Comparison, figures: Iterable[Path], page: Path | None
) -> None:
    """Logs the results of a finished run: curves over length, summary, scores, figures and page.

    Args:
        comparison: a comparison that contains only this run.
        figures: files of figures; only PNG files are logged.
        page: the HTML page of the run.
    """
    (run,) = comparison.runs
    update = int((run.results.get("train") or {}).get("updates") or 0)
    pictures = {file.stem: Image.open(file) for file in figures if file.suffix == ".png"}
    for logger in loggers:
        with warn_on_error(f"logging the test to {type(logger).__name__}"):
            if isinstance(logger, WandbLogger):
                _log_to_wandb(logger, comparison, page)
            else:
                _log_numbers(logger, comparison, update)
            log_images(logger, FIGURES, pictures, update)
            logger.save()


def _log_to_wandb(logger: WandbLogger, comparison: Comparison, page: Path | None) -> None:
    """Logs everything except images, with the sentence length on the x axis of curves over length."""
    import wandb

    rows = length_curves(comparison)
    logger.experiment.define_metric(LENGTH, summary="none")
    for key in {key for row in rows for key in row} - {LENGTH}:
        # replaces WandbLogger's default x axis, and keeps the last value out of the summary
        logger.experiment.define_metric(key, step_metric=LENGTH, step_sync=False, summary="none")
    for row in rows:
        logger.experiment.log(row)
    logger.experiment.summary.update(summary_of(comparison))
    (run,) = comparison.runs
    scores = run.scores[list(COLUMNS)].astype(object)
    cells = scores.where(scores.notna(), None).to_numpy().tolist()
    logger.log_table(SCORES, list(COLUMNS), cells)
    if page is not None:
        # by default, W&B would inject a style sheet from its servers
        logger.experiment.log({PAGE: wandb.Html(page, inject=False)})


def _log_numbers(logger: Logger, comparison: Comparison, update: int) -> None:
    """Logs curves and summary; in TensorBoard, curves over length have the sentence length as step."""
    for row in length_curves(comparison):
        step = int(row.pop(LENGTH)) if isinstance(logger, TensorBoardLogger) else update
        logger.log_metrics(row, step=step)
    values = summary_of(comparison)
    numbers = {key: value for key, value in values.items() if isinstance(value, int | float)}
    logger.log_metrics(numbers, step=update)


def log_images(logger: Logger, key: str, images: Images, update: int) -> None:
    """Logs images under their names, if the logger supports images."""
    if isinstance(logger, TensorBoardLogger):
        for name, image in images.items():
            pixels = np.asarray(image.convert("RGB"))
            logger.experiment.add_image(f"{key}/{name}", pixels, update, dataformats="HWC")
    elif isinstance(logger, WandbLogger) and images:
        sizes = zip(*(image.size for image in images.values()), strict=True)
        width, height = map(max, sizes)
        canvases = [Image.new("RGB", (width, height), "white") for _ in images]
        for canvas, image in zip(canvases, images.values(), strict=True):
            canvas.paste(image)  # W&B requires that all images of a key have the same size
        logger.log_image(key, canvases, update, caption=list(images))
