"""The steps of nmt.probe: runs the probes, and writes probe.json, probe.md and figures."""

from __future__ import annotations

import dataclasses
import logging
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig

from nmt.data.prepare import Prepared
from nmt.data.vocabulary import WORDS
from nmt.evaluation.positions import means
from nmt.evaluation.results import as_json, versions
from nmt.inference.probing.protocol import ProbeSettings, probe_vectors
from nmt.inference.trained import TrainedModel
from nmt.report.probing import gains_figure, gains_table, readings_figure, readings_table
from nmt.report.style import draw_figure
from nmt.run.gain import measure_gains
from nmt.run.run import Run
from nmt.run.test import Sets
from nmt.utils.files import write_json, write_text
from nmt.utils.progress import Stage

log = logging.getLogger(__name__)

SCHEMA = 2


def settings_of(composed: DictConfig, run: Run) -> ProbeSettings:
    """The settings typed to `nmt.probe`, with the seed of the trained model."""
    return ProbeSettings(
        composed.sentences, composed.positions, composed.classes, composed.epochs, run.config.seed
    )


def probe(
    run: Run,
    trained: TrainedModel,
    text: Prepared,
    sets: Sets,
    settings: ProbeSettings,
    other: TrainedModel | None = None,
) -> None:
    """Probes a model's vectors; writes probe.md, figures and, last of all, probe.json.

    Positions count what has an annotation, the symbols that the encoder reads: words, or with
    `tokenizer=bpe` subwords. Lengths count words of the side `evaluation.bucket_by`, as everywhere.

    Args:
        run: of the command.
        trained: its model.
        text: of which training sentences are taken, evenly spaced.
        sets: test sets that the probes read.
        settings: of the probes.
        other: a model that this one is held against.

    Raises:
        InputError: for an ensemble, or another model that writes other words.
    """
    config, folder = run.config, run.folder.path
    evaluation, encode = config.evaluation, trained.codec.source.encode
    numbers = np.linspace(0, len(text.train) - 1, min(settings.sentences, len(text.train)))
    training = [encode(text.train.text(int(n))[0].split(" "))[:-1] for n in numbers]
    tests = {name: [encode(e.source)[:-1] for e in examples] for name, examples in sets.items()}
    total = len(training) + sum(map(len, tests.values()))
    lengths = {
        name: [example.length(evaluation.bucket_by) for example in examples]
        for name, examples in sets.items()
    }
    read_as = "words" if trained.codec.source.kind == WORDS else "subwords"
    readings: list[dict[str, Any]] = []
    run.folder.remove_partial()
    gains = [] if other is None else measure_gains(run, trained, other, sets, settings.positions)
    with Stage("encoding and probing", total, "sentence", shown=config.trainer.progress) as stage:
        for found in probe_vectors(trained, training, tests, settings, stage.advance):
            for name, tables in found.read.items():
                measured = means(
                    tables,
                    lengths[name],
                    evaluation.edges,
                    resamples=evaluation.resamples,
                    confidence=evaluation.confidence,
                )
                readings.append(
                    {
                        "set": name,
                        "vectors": found.vectors,
                        "order": found.order,
                        "positions": read_as,
                        **measured,
                    }
                )
                read, chance = measured["probe"]["score"], measured["chance"]["score"]
                log.info(
                    "%s: %s, %s: %.1f %% of the %s read, chance %.1f %%",
                    name, found.vectors, found.order.replace("_", " "), 100 * read, read_as, 100 * chance
                )  # fmt: skip
    assert run.checkpoint is not None
    content = as_json(
        {
            "schema": SCHEMA,
            "name": config.name,
            "model": config.model._target_.rpartition(".")[2],
            "checkpoint": str(run.checkpoint.path.resolve()),
            "sha256": run.checkpoint.sha256,
            "settings": {**dataclasses.asdict(settings), "sentences": len(training)},
            "bucket_by": evaluation.bucket_by,
            "confidence": evaluation.confidence,
            "readings": readings,
            "against": None if other is None else other.config.name,
            "gains": gains,
            "versions": versions(),
            "code": run.code,
            "text": run.text,
        }
    )
    figures = _draw(content, folder, list(config.report.figures))
    shown = [readings_table(content), *([gains_table(content)] if gains else [])]
    write_text(folder / "probe.md", "\n".join(table.markdown() for table in shown))
    write_json(run.folder.probe, content)
    log.info("probe.json, probe.md and %d figures: %s", len(figures), folder)


def _draw(content: dict[str, Any], folder: Path, formats: list[str]) -> list[Path]:
    figures = folder / "figures"
    return [
        file
        for kind, rows, make in (
            ("probe", content["readings"], readings_figure),
            ("gain", content["gains"], gains_figure),
        )
        for name in dict.fromkeys(row["set"] for row in rows)
        for file in draw_figure(partial(make, content, name), figures / f"{name}-{kind}", formats)
    ]
