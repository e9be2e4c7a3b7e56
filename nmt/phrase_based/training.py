"""A phrase-based system from the text of a training run: trained, and tuned on its development set."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config import BaselineConfig, Config
from nmt.data.pairs import Pairs
from nmt.data.prepare import Prepared
from nmt.phrase_based.system import WEIGHTS, PhraseBased, train_system
from nmt.phrase_based.tuning import tune
from nmt.utils.files import write_json
from nmt.utils.progress import counted, timed

log = logging.getLogger(__name__)


@contextmanager
def tuned_system(
    config: Config, text: Prepared, folder: Path
) -> Iterator[tuple[PhraseBased, dict[str, Any], dict[str, Any]]]:
    """A system that has been trained and tuned, freed at the end.

    Args:
        config: `phrase_based` and `trainer.enable_progress_bar` are used.
        text: what it is trained and tuned on.
        folder: for its tables, which are removed at the end unless `phrase_based.keep`. Where this
            has not been reached, they are taken by the same command in the same folder.

    Yields:
        The system, `train` and `valid` of results.json.
    """
    assert isinstance(config, BaselineConfig)
    trained = _trained(config, text, folder)
    start = time.monotonic()
    with ExitStack() as at_the_end:
        tuned_on = _spaced(text.valid, config.phrase_based.tune_sentences)
        read = [pair["source"] for pair in tuned_on]
        read += [pair["source"] for split in text.test.values() for pair in split]
        with timed("loading the phrase-based system"):
            system = PhraseBased(folder, config.phrase_based, read)
        at_the_end.callback(system.close)
        bleu = _tune(system, tuned_on, config)
        hours = trained + (time.monotonic() - start) / 3600
        weights = dict(zip(WEIGHTS, system.weights, strict=True))
        yield (
            system,
            {"updates": 0, "hours": hours, "device": "CPU", "devices": 1, "weights": weights},
            {"bleu": bleu},
        )
    if not config.phrase_based.keep:
        shutil.rmtree(folder, ignore_errors=True)


def _trained(config: BaselineConfig, text: Prepared, folder: Path) -> float:
    """Sees to the tables of a system in a folder; returns the hours that their training has taken."""
    about = {"text": text.fingerprint, "alignment": config.phrase_based.alignment}
    written = folder / "trained.json"  # when the tables are whole
    if written.is_file():
        stored = json.loads(written.read_text())
        if isinstance(stored, dict) and stored.items() >= about.items():
            log.info("continuing with the tables in %s", folder)
            return float(stored["hours"])
    start = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    train = text.train
    pairs = (train.text(number) for number in range(len(train)))
    train_system(pairs, folder, config.phrase_based, progress=config.trainer["enable_progress_bar"])
    hours = (time.monotonic() - start) / 3600
    write_json(written, about | {"hours": hours})
    return hours


def _spaced(split: Pairs, wanted: int) -> list[Any]:
    """So many pairs, evenly spaced, or all where there are fewer."""
    wanted = min(wanted, len(split))
    return [split[int(n)] for n in np.linspace(0, len(split) - 1, wanted)]


def _tune(system: PhraseBased, pairs: Sequence[Any], config: BaselineConfig) -> float | None:
    """Tunes on development pairs; returns their BLEU, or None where there are none."""
    if not pairs:
        return None
    before, bleu = tune(
        system,
        [pair["source"] for pair in pairs],
        [pair["target"] for pair in pairs],
        rounds=config.phrase_based.tune_rounds,
        progress=config.trainer["enable_progress_bar"],
    )
    log.info(
        "tuned on %s: BLEU %.2f to %.2f", counted(len(pairs), "development sentence"), before, bleu
    )
    return bleu
