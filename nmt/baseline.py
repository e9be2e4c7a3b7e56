"""Trains a phrase-based system on the text of a training run and tests it in the same way.

python -m nmt.baseline
python -m nmt.baseline data.grammar.train_pairs=20000 phrase_based.alignment=fast_align
python -m nmt.baseline phrase_based.tune_sentences=0
"""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from nmt.cli.command import command
from nmt.config.schema import BaselineConfig, plain
from nmt.config.validation import load
from nmt.data.prepare import Prepared, describe, prepare
from nmt.data.splits import Split
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import all_known
from nmt.evaluation import records, results, summary
from nmt.evaluation.external import system_record
from nmt.phrase_based.system import WEIGHTS, PhraseBased, check_installed, train_system
from nmt.phrase_based.tuning import tune
from nmt.run import finish
from nmt.run import start as job
from nmt.run import test as testing
from nmt.training.loggers import logging_to

log = logging.getLogger(__name__)

TITLE = "phrase-based (Thot)"
SECTIONS = ("name", "experiment", "regime", "data", "tokenizer", "evaluation", "report")


@command("baseline")
def main(composed: DictConfig) -> None:
    folder = Path(HydraConfig.get().runtime.output_dir)
    job.refuse_used_folder(folder)
    check_installed()
    config = load(composed)
    assert isinstance(config, BaselineConfig)
    job.silence_warnings()
    prepared = prepare(config.data, config.tokenizer, progress=config.trainer.progress)
    log.info("prepared text:\n%s", describe(prepared))
    with logging_to(config, folder) as logger:
        content = measure(config, prepared, folder)
        finish.publish(config, folder, content, [logger] if logger else [])


def measure(config: BaselineConfig, prepared: Prepared, folder: Path) -> dict[str, Any]:
    """Trains, tunes and tests the system; returns the content of results.json."""
    tables = folder / "phrase_based"
    start = time.monotonic()
    train = prepared.train
    pairs = (train.text(number) for number in range(len(train)))
    train_system(pairs, tables, config.phrase_based, progress=config.trainer.progress)
    system = PhraseBased(tables, config.phrase_based)
    bleu = tune_on(system, prepared.valid, config)
    hours = (time.monotonic() - start) / 3600
    test = {name: test_on(system, split, config, folder) for name, split in prepared.test.items()}
    weights = dict(zip(WEIGHTS, system.weights, strict=True))
    system.close()
    if not config.phrase_based.keep:
        shutil.rmtree(tables)
    return results.build(
        name=config.name,
        title=TITLE,
        experiment=config.experiment,
        regime=config.regime,
        model="PhraseBased",
        scoring="none",
        max_length=config.data.max_length,
        seed=config.seed,
        parameters=None,
        config={key: plain(config)[key] for key in (*SECTIONS, "seed", "phrase_based")},
        overrides=list(HydraConfig.get().overrides.task),
        command=finish.command_line(),
        train={"updates": 0, "hours": hours, "device": "CPU", "devices": 1, "weights": weights},
        valid={"bleu": bleu},
        history=[],
        test=test,
    )


def tune_on(system: PhraseBased, valid: Split, config: BaselineConfig) -> float | None:
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
    log.info("tuned on %d development sentences: BLEU %.2f to %.2f", wanted, before, bleu)
    return bleu


def test_on(
    system: PhraseBased, split: Split, config: BaselineConfig, folder: Path
) -> dict[str, Any]:
    """Translates a test set, writes the translations, and scores them."""
    moses = tokeniser(config.data.languages[1], config.tokenizer.normalise)
    pairs = list(split)
    sources = [pair["source"] for pair in pairs]
    found = system.translate_all(
        sources, progress=f"translating {split.name}" if config.trainer.progress else None
    )
    written = []
    for number, (pair, hypothesis) in enumerate(zip(pairs, found, strict=True)):
        sentence = {
            "id": number,
            "source": pair["source"],
            "reference": pair["target"],
            "raw_reference": pair["target_text"],
            "length": len(pair[config.evaluation.bucket_by]),
            "no_unk": all_known(
                split.source_vocabulary, split.target_vocabulary, pair["source"], pair["target"]
            ),
        }
        written.append(system_record(sentence, hypothesis, moses.detokenise(hypothesis)))
    records.write_translations(folder, split.name, written)
    scores = summary.summarise(written, config.evaluation)
    testing.say(split.name, scores)
    return scores


if __name__ == "__main__":
    main()
