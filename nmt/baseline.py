"""Trains a phrase-based system on the text of a training run and tests it on the same test sets.

python -m nmt.baseline
python -m nmt.baseline data.train.pairs=20000 phrase_based.reordering=6
python -m nmt.baseline phrase_based.tune_sentences=0
"""

from __future__ import annotations

from typing import Any

from nmt.cli.application import command
from nmt.config.commands import BaselineConfig

# Sections and keys of the configuration that apply to a phrase-based system
SECTIONS = (
    "name",
    "experiment",
    "regime",
    "seed",
    "data",
    "tokenizer",
    "evaluation",
    "report",
    "phrase_based",
)


@command("baseline")
def main(composed: BaselineConfig) -> None:
    """Trains, tunes and tests the baseline, then writes results.json."""
    from nmt.config.schema import to_containers
    from nmt.evaluation.records import system_record
    from nmt.inference.held_out import evaluate, read_sets
    from nmt.phrase_based.system import check_installed
    from nmt.phrase_based.training import tuned_system
    from nmt.text.tokenise import tokenisers
    from nmt.training.outcome import describe_run
    from nmt.training.publish import publish
    from nmt.training.run import make_baseline_run

    run = make_baseline_run(composed)
    check_installed()
    text = run.prepare_text()
    tables = run.folder.path / "phrase_based"
    with run.logging_run(), tuned_system(run.config, text, tables) as (system, train, valid):
        sets = read_sets(run.config, text.test.values())
        target_tokeniser = tokenisers(run.config.data, run.config.tokenizer)[1]

        def translate_set(sentences: Any, name: str) -> Any:
            sources = [sentence["source"] for sentence in sentences]
            hypotheses = system.translate(sources, f"translating {name}")
            return [
                system_record(sentence, words, target_tokeniser.detokenise(words))
                for sentence, words in zip(sentences, hypotheses, strict=True)
            ]

        evaluated = evaluate(run.config, sets, run.folder.path, translate_set)
        config = to_containers(run.config)
        about = describe_run(
            run,
            train=train,
            valid=valid,
            history=[],
            title="phrase-based (Thot)",
            model="PhraseBased",
            scoring="none",
            parameters=None,
            config={section: config[section] for section in SECTIONS},
        )
        publish(run.folder.path, run.config, about, evaluated, run.loggers)


if __name__ == "__main__":
    main()
