"""A phrase-based system from the text of a training run: trained, and tuned on its development set."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config import BaselineConfig, Config
from nmt.data.prepare import Prepared
from nmt.data.splits import Split
from nmt.phrase_based.system import WEIGHTS, PhraseBased, train_system
from nmt.phrase_based.tuning import tune
from nmt.utils.progress import counted

log = logging.getLogger(__name__)


@contextmanager
def tuned_system(
    config: Config, text: Prepared, folder: Path
) -> Iterator[tuple[PhraseBased, dict[str, Any], dict[str, Any]]]:
    """A system that has been trained and tuned, freed at the end.

    Args:
        config: `phrase_based` and `trainer.progress` are used.
        text: what it is trained and tuned on.
        folder: for its tables, which are removed at the end unless `phrase_based.keep`.

    Yields:
        The system, `train` and `valid` of results.json.
    """
    assert isinstance(config, BaselineConfig)
    start = time.monotonic()
    train = text.train
    pairs = (train.text(number) for number in range(len(train)))
    with ExitStack() as at_the_end:
        if not config.phrase_based.keep:
            at_the_end.callback(shutil.rmtree, folder, ignore_errors=True)
        train_system(pairs, folder, config.phrase_based, progress=config.trainer.progress)
        system = PhraseBased(folder, config.phrase_based)
        at_the_end.callback(system.close)
        bleu = _tune(system, text.valid, config)
        hours = (time.monotonic() - start) / 3600
        weights = dict(zip(WEIGHTS, system.weights, strict=True))
        yield (
            system,
            {"updates": 0, "hours": hours, "device": "CPU", "devices": 1, "weights": weights},
            {"bleu": bleu},
        )


def _tune(system: PhraseBased, valid: Split, config: BaselineConfig) -> float | None:
    """Tunes on evenly spaced development pairs; returns their BLEU, or None if it was not asked."""
    wanted = min(config.phrase_based.tune_sentences, len(valid))
    if not wanted:
        return None
    pairs = [valid[int(n)] for n in np.linspace(0, len(valid) - 1, wanted)]
    before, bleu = tune(
        system,
        [pair["source"] for pair in pairs],
        [pair["target"] for pair in pairs],
        rounds=config.phrase_based.tune_rounds,
        progress=config.trainer.progress,
    )
    log.info(
        "tuned on %s: BLEU %.2f to %.2f", counted(wanted, "development sentence"), before, bleu
    )
    return bleu
