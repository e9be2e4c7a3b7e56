"""Tests a trained model on every test set: translations, scores, alignments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nmt.config import Config, TextConfig
from nmt.data.batch import Batch
from nmt.data.batches import Rows, evaluation_batches
from nmt.data.prepare import Prepared, prepare_held_out
from nmt.data.splits import HeldOut, Split
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import unknown_words
from nmt.evaluation import records, summary
from nmt.evaluation.alignment import gold_links
from nmt.evaluation.buckets import Bucket
from nmt.evaluation.examples import Example
from nmt.evaluation.external import system_record
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.stress import joined_name, stress_sets
from nmt.inference.test_loop import run_test_set
from nmt.inference.trained import TrainedModel
from nmt.run.run import Run
from nmt.training.on_every_rank import on_every_rank
from nmt.utils.environment import rank, rank_and_world
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage, counted, timed

log = logging.getLogger(__name__)

Row = dict[str, Any]  # of scores.csv
Sets = Mapping[str, Sequence[Example]]  # test sets by name


def all_sets(run: Run, text: Prepared) -> Sets:
    """Every test set of a training run, sentence by sentence, and those that `stress` makes.

    Raises:
        InputError: for a gold alignment that does not fit, naming file and line, and where a set
            that is made has the name of another.
    """
    sets: dict[str, list[Example]] = {}
    for split in text.test.values():
        sets |= _with_stress(split, run.config)
    return sets


def chosen_sets(run: Run, names: Sequence[str]) -> Sets:
    """The test sets named (or all), read with the vocabularies of the run's checkpoint.

    Raises:
        InputError: for a name that is not there, a text that cannot be had, and as `all_sets`.
    """
    config, checkpoint = run.config, run.checkpoint
    assert checkpoint is not None
    unknown = [name for name in names if name not in config.data.test]
    if unknown:
        known = ", ".join(config.data.test) or "none"
        raise InputError(f"sets: no test set {unknown[0]}; data.test has: {known}")
    if not config.data.test:
        raise InputError(
            "data.test: the checkpoint knows no test set; add +data.test.NAME.source=FILE"
        )
    sets: dict[str, list[Example]] = {}
    for name in names or config.data.test:
        split, _ = prepare_held_out(
            config.data.test[name],
            config.data,
            f"data.test.{name}",
            checkpoint.source_vocabulary,
            checkpoint.target_vocabulary,
            tokenizer=config.tokenizer,
            progress=config.trainer["enable_progress_bar"],
        )
        sets |= _with_stress(split, config)
    return sets


def evaluate_test_sets(run: Run, trained: TrainedModel, sets: Sets) -> list[Row]:
    """Translates and scores each test set; returns the rows of `scores.csv` (on rank 0).

    Translations and alignments are written to the run folder.
    """
    expect_tests(run, sets)

    def work() -> list[Row]:
        scored = [_evaluate(run, trained, name, examples) for name, examples in sets.items()]
        return [row for rows in scored for row in rows]

    assert run.trainer is not None
    return on_every_rank(run.trainer, trained.model, work)


def expect_tests(run: Run, sets: Sets) -> None:
    """Adds the test of these sets and the steps after it to the remaining work of a run."""
    words = sum(len(e.source) + 1 for examples in sets.values() for e in examples)
    run.left.expect({"tests": words, "figures": len(sets), "page": 1})


def _evaluate(run: Run, trained: TrainedModel, name: str, examples: Sequence[Example]) -> list[Row]:
    config = run.config
    log.info("translating %s: %s", name, counted(len(examples), "sentence"))
    assert run.trainer is not None
    world = run.trainer.world_size
    stage = Stage(
        f"translating {name}",
        len(examples),
        "sentence",
        shown=config.trainer["enable_progress_bar"],
        left=run.left,
        kind="tests",
    )
    with timed(f"{name} translated"), stage:

        def done(made: list[records.Record]) -> None:
            stage.advance(len(made) * world, world * sum(len(row["source"]) + 1 for row in made))

        made, alignments = run_test_set(trained, examples, kept=_kept(examples, config), done=done)
    if rank():
        return []
    records.write_alignments(run.folder.path, name, alignments)
    with timed(f"{name} scored"):
        return _scores(run, name, made)


def evaluate_system(
    run: Run,
    translate: Callable[[Sequence[Sequence[str]], str | None], list[list[str]]],
    text: Prepared,
) -> list[Row]:
    """As `evaluate_test_sets`, for a system that is not one of this program's models.

    Args:
        run: what it is a run of.
        translate: words of source sentences, and the title of a progress bar, to words.
        text: whose test sets are translated.
    """
    config = run.config
    moses = tokeniser(config.data.languages[1], config.tokenizer.normalise)
    rows: list[Row] = []
    for name, split in text.test.items():
        pairs = list(split)
        title = f"translating {name}" if config.trainer["enable_progress_bar"] else None
        found = translate([pair["source"] for pair in pairs], title)
        made = []
        for number, (pair, hypothesis) in enumerate(zip(pairs, found, strict=True)):
            unknown = unknown_words(
                split.source_vocabulary, split.target_vocabulary, pair["source"], pair["target"]
            )
            sentence = {
                "id": number,
                "source": pair["source"],
                "reference": pair["target"],
                "raw_reference": pair["target_text"],
                "length": len(pair[config.evaluation.bucket_by]),
                "no_unk": None if unknown is None else not sum(unknown),
                "unknown_words": unknown,
            }
            made.append(system_record(sentence, hypothesis, moses.detokenise(hypothesis)))
        rows += _scores(run, name, made)
    return rows


def _scores(run: Run, name: str, made: list[records.Record]) -> list[Row]:
    """Writes the translations of a test set, scores them, and logs the scores."""
    with Stage(f"scoring {name}", shown=run.config.trainer["enable_progress_bar"]):
        settings, language = run.config.evaluation, run.config.data.languages[1]
        summary.keep_statistics(made, settings, language)
        records.write_translations(run.folder.path, name, made)
        rows = summary.score_set(name, made, settings, language)
    log_scores(name, rows)
    return rows


def log_scores(name: str, rows: Sequence[Row]) -> None:
    """Logs the scores of a test set: one line, and one per length bucket."""
    by_place = {(row["score"], row["subset"], row.get("from")): row for row in rows}
    parts = []
    for key, subset, title in (
        ("bleu", "all", "BLEU"),
        ("bleu", "no_unk", "BLEU without unknown words"),
        ("nll_per_sentence", "all", "NLL/sentence"),
        ("alignment_error_rate", "all", "AER"),
    ):
        if row := by_place.get((key, subset, None)):
            digits = REGISTERED[key].digits
            part = f"{title} {row['value']:.{digits}f}"
            if row["low"] is not None:
                part += f" [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
            parts.append(part)
    log.info("%s: %s", name, ", ".join(parts))
    for (key, subset, first), row in by_place.items():
        if (key, subset) == ("bleu", "all") and first is not None:
            penalty = by_place.get(("brevity_penalty", "all", first))
            log.info(
                "  %6s words: BLEU %6.2f%s  (%s)",
                Bucket(first, row["to"]).name,
                row["value"],
                "" if penalty is None else f"  brevity penalty {penalty['value']:.3f}",
                counted(row["sentences"], "sentence"),
            )


def training_sample(train: Split, pairs: int) -> Rows:
    """Numbers of the same training pairs for every run on a text, evenly spaced over the corpus."""
    return np.linspace(0, len(train) - 1, min(pairs, len(train))).astype(np.int64)


def training_batches(config: Config, train: Split, rows: Rows) -> list[Batch]:
    """This rank's share of training pairs, sorted by length."""
    longer = train.sizes[rows].max(axis=1)
    batches = evaluation_batches(longer, config.search.batch_size, *rank_and_world())
    return [train.batch(rows[places]) for places in batches]


def _examples(split: HeldOut, text: TextConfig) -> list[Example]:
    """A prepared test set, sentence by sentence."""
    found, key = [], f"data.test.{split.name}"
    for number, pair in enumerate(split):
        gold = gold_links(pair, text, key)
        words = pair["source"], pair["target"]
        found.append(Example(number, *words, pair["target_text"], gold))
    return found


def _with_stress(split: HeldOut, config: Config) -> dict[str, list[Example]]:
    """A prepared test set by its name, and those of concatenated sentences that `stress` makes of it."""
    name, lengths = split.name, config.stress.lengths
    examples = _examples(split, config.data.test[name])
    made = stress_sets(name, examples, lengths, config.stress.pairs)
    missing = [length for length in lengths if joined_name(name, length) not in made]
    if missing:
        log.warning("stress.lengths=%s: %s has too few sentences in a row to join", missing, name)
    taken = made.keys() & config.data.test.keys()
    if taken:
        raise InputError(
            f"data.test.{min(taken)}: stress makes a test set of this name; take another"
        )
    return {name: examples, **made}


def _kept(examples: Sequence[Example], config: Config) -> set[int]:
    """Ids of the sentences whose alignment is kept step by step."""
    edges = list(config.evaluation.edges)
    rows = [{"id": e.id, "source": e.source, "length": len(e.source)} for e in examples]
    kept = set(records.choose_kept(rows, config.report.sentences, edges))
    if kept and config.report.sentence:  # the named one among them, tokenised or not
        named = "".join(config.report.sentence.split())
        kept |= {e.id for e in examples if "".join(e.source) == named}
    return kept
