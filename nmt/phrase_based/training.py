"""Trains a phrase-based system on the text of a run, and tunes it on the development set."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config.commands import BaselineConfig
from nmt.config.schema import Config
from nmt.data.preparation import Prepared
from nmt.evaluation.scores.bleu import bleu, sentence_statistics
from nmt.phrase_based.system import WEIGHTS, PhraseBased, train_system
from nmt.utils.progress import Stage, timed
from nmt.utils.text import counted

log = logging.getLogger(__name__)

Weights = tuple[float, ...]
TUNED = range(7)  # indices in WEIGHTS; as in Thot's tuning, the last weight stays 0
SIGNED = (0, 2)  # indices of length penalties; their weights may be negative
STEPS = (0.5, 0.25, 0.125)  # step size of each pass over the weights, relative to the weight
MIN_SIZE = 0.2  # if a weight is smaller, its steps are relative to this value


@contextmanager
def tuned_system(
    config: Config, text: Prepared, folder: Path
) -> Iterator[tuple[PhraseBased, dict[str, Any], dict[str, Any]]]:
    """Trains and tunes a system, yields it to a `with` block, and then frees its tables.

    Args:
        config: only `phrase_based` and `trainer.enable_progress_bar` are used.
        text: training, development and test text.
        folder: folder of the tables, which is removed at the end.

    Yields:
        The system, and the sections `train` and `valid` of results.json.
    """
    assert isinstance(config, BaselineConfig)
    options = config.phrase_based
    progress = config.trainer["enable_progress_bar"]
    start = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)  # may exist after an interrupted command
    pairs = ((" ".join(pair["source"]), " ".join(pair["target"])) for pair in text.train)
    with timed("training the phrase-based system"):
        train_system(pairs, folder, options)
    count = min(options.tune_sentences, len(text.valid))
    dev = [text.valid[int(n)] for n in np.linspace(0, len(text.valid) - 1, count)]
    test = [pair for pairs in text.test.values() for pair in pairs]
    needed = [pair["source"] for pair in [*dev, *test]]
    with timed("loading the phrase-based system"):
        system = PhraseBased(folder, options, needed)
    with closing(system):
        sources, references = ([pair[side] for pair in dev] for side in ("source", "target"))
        valid = {}
        if dev:
            before, after = tune(system, sources, references, progress)
            sentences = counted(count, "development sentence")
            log.info("tuned on %s: BLEU %.2f to %.2f", sentences, before, after)
            valid = {"bleu": after}
        hours = (time.monotonic() - start) / 3600
        weights = dict(zip(WEIGHTS, system.weights, strict=True))
        about = {"updates": 0, "hours": hours, "device": "CPU", "devices": 1, "weights": weights}
        yield system, about, valid
    shutil.rmtree(folder, ignore_errors=True)


def tune(
    system: PhraseBased,
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    progress: bool = False,
) -> tuple[float, float]:
    """Tunes by coordinate search, which changes one weight at a time if that improves BLEU.

    While BLEU improves, the weight changes further in the same direction. At the end, the system has
    the best weights.

    Args:
        system: a loaded system; the search starts from its weights.
        sources, references: development sentences.
        progress: whether to show a progress bar.

    Returns:
        BLEU of the development sentences before and after tuning.
    """

    def score(weights: Weights) -> float:
        system.weights = weights
        stage.advance()
        pairs = zip(system.translate(sources), references, strict=True)
        return float(bleu(np.sum([sentence_statistics(h, r) for h, r in pairs], axis=0)))

    with Stage("tuning", unit="trial", shown=progress) as stage:
        best = tuple(system.weights)
        best_score = first_score = score(best)
        for step in STEPS:
            for feature in TUNED:
                for direction in (1.0, -1.0):
                    start = best_score
                    while (candidate := moved(best, feature, direction * step)) != best:
                        if (new_score := score(candidate)) <= best_score:
                            break
                        best = candidate
                        best_score = new_score
                    if best_score > start:
                        break
    system.weights = best
    return first_score, best_score


def moved(weights: Weights, feature: int, share: float) -> Weights:
    """Changes one weight by a share of its size, unless a weight outside `SIGNED` would become 0 or negative.

    >>> moved((1.0, 2.0), 1, -0.5)
    (1.0, 1.0)
    >>> moved((0.1, 0.1), 0, -0.5), moved((0.1, 0.05), 1, -0.5)
    ((0.0, 0.1), (0.1, 0.05))
    """
    value = weights[feature] + share * max(abs(weights[feature]), MIN_SIZE)
    if feature not in SIGNED and value <= 0:
        return weights
    return (*weights[:feature], round(value, 6), *weights[feature + 1 :])
