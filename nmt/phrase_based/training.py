"""A phrase-based system trained on the text of a run and tuned on its development set."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config import BaselineConfig, Config
from nmt.data.prepare import Prepared
from nmt.phrase_based.system import WEIGHTS, PhraseBased, train_system
from nmt.phrase_based.tuning import tune
from nmt.utils.files import write_json
from nmt.utils.progress import counted, timed

log = logging.getLogger(__name__)

TUNE_ROUNDS = 3  # passes over the weights


@contextmanager
def tuned_system(
    config: Config, text: Prepared, folder: Path
) -> Iterator[tuple[PhraseBased, dict[str, Any], dict[str, Any]]]:
    """A system that has been trained and tuned; its tables are freed at the end.

    Args:
        config: `phrase_based` and `trainer.enable_progress_bar` are used.
        text: training, development and test text.
        folder: for the tables. They are removed at the end; after
            an interruption the same command in the same folder goes on with them.

    Yields:
        The system, and `train` and `valid` of results.json.
    """
    assert isinstance(config, BaselineConfig)
    options, progress = config.phrase_based, config.trainer["enable_progress_bar"]
    hours = _train_once(config, text, folder)
    start = time.monotonic()
    count = min(options.tune_sentences, len(text.valid))
    tuned_on = [text.valid[int(n)] for n in np.linspace(0, len(text.valid) - 1, count)]
    tested = [pair for pairs in text.test.values() for pair in pairs]
    read = [pair["source"] for pair in [*tuned_on, *tested]]
    with timed("loading the phrase-based system"):
        system = PhraseBased(folder, options, read)
    with closing(system):
        sources, references = ([pair[side] for pair in tuned_on] for side in ("source", "target"))
        before, bleu = tune(system, sources, references, rounds=TUNE_ROUNDS, progress=progress)
        sentences = counted(count, "development sentence")
        log.info("tuned on %s: BLEU %.2f to %.2f", sentences, before, bleu)
        hours += (time.monotonic() - start) / 3600
        weights = dict(zip(WEIGHTS, system.weights, strict=True))
        about = {"updates": 0, "hours": hours, "device": "CPU", "devices": 1, "weights": weights}
        yield system, about, {"bleu": bleu}
    shutil.rmtree(folder, ignore_errors=True)


def _train_once(config: BaselineConfig, text: Prepared, folder: Path) -> float:
    """Makes the tables in a folder unless it has them; returns the hours that this took."""
    about = {"text": text.fingerprint}
    complete = folder / "trained.json"  # written last
    if complete.is_file():
        stored = json.loads(complete.read_text())
        if stored.items() >= about.items():
            log.info("continuing with the tables in %s", folder)
            return float(stored["hours"])
    start = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    pairs = (text.train.text(number) for number in range(len(text.train)))
    with timed("training the phrase-based system"):
        train_system(pairs, folder, config.phrase_based)
    hours = (time.monotonic() - start) / 3600
    write_json(complete, about | {"hours": hours})
    return hours
