"""Logs test scores to loggers other than W&B: scores, curves over length, figures."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from pytorch_lightning.loggers import Logger, TensorBoardLogger

from nmt.report.wandb.panels import (
    FIGURES,
    LENGTH,
    length_curves,
    length_metric,
    score_titles,
    summary_of,
)

log = logging.getLogger(__name__)


def log_test_scores(
    logger: Logger, results: Mapping[str, Any], figures: Iterable[Path] = ()
) -> None:
    """Logs the test scores of a run under the names that they have in W&B.

    Scores of whole sets stand at the last update. A curve over length stands in TensorBoard with the
    last length of each bucket as its step (of the open one: as if it were as wide as the one before),
    elsewhere in rows with a column `length/words`. TensorBoard also gets hyperparameters with the
    scores, and figures. A failure is a warning: what was measured is in results.json.

    Args:
        logger: CSV's, TensorBoard's, or one of those that log nothing.
        results: content of results.json.
        figures: files of `draw_run`; the PNG among them are shown.
    """
    try:
        _log(logger, results, figures)
    except Exception as error:
        log.warning(
            "the test could not be logged (%s: %s); continuing", type(error).__name__, error
        )


def _log(logger: Logger, results: Mapping[str, Any], figures: Iterable[Path]) -> None:
    update, titles = results["train"]["updates"], score_titles(results)
    by_length = score_titles(results, True)
    whole: dict[str, float] = {}
    for name, result in results.get("test", {}).items():
        whole |= summary_of(name, result, titles)
        for words, bucket, found in length_curves(result, by_length):
            found = {"sentences": bucket["sentences"], **found}
            curves = {length_metric(name, column): value for column, value in found.items()}
            if isinstance(logger, TensorBoardLogger):
                logger.log_metrics(curves, step=words)
            else:
                logger.log_metrics({LENGTH: words, **curves}, step=update)
    if not isinstance(logger, TensorBoardLogger):
        logger.log_metrics(whole, step=update)
        return
    logger.log_hyperparams(results.get("config") or {}, whole, step=update)
    for file in map(Path, figures):
        if file.suffix == ".png":
            pixels = np.asarray(Image.open(file).convert("RGB"))
            name = f"{FIGURES}/{file.stem}"
            logger.experiment.add_image(name, pixels, update, dataformats="HWC")
    logger.save()
