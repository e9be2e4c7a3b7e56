"""The test protocol: test sets translated, scored and written to the folder of a run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.data.prepare import prepare_held_out
from nmt.data.splits import HeldOut
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import Vocabulary, unknown_words
from nmt.evaluation import records, summary
from nmt.evaluation.alignment import gold_links
from nmt.evaluation.buckets import Bucket
from nmt.evaluation.examples import Example
from nmt.evaluation.external import system_record
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.stress import joined_name, stress_sets
from nmt.inference.test_set import run_test_set
from nmt.inference.trained import TrainedModel
from nmt.utils.environment import rank_and_world
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage, counted, timed

log = logging.getLogger(__name__)

Row = dict[str, Any]  # of scores.csv
Sets = Mapping[str, Sequence[Example]]  # test sets by name


def held_out_splits(
    config: Config, vocabularies: tuple[Vocabulary, Vocabulary], names: Sequence[str]
) -> Iterator[HeldOut]:
    """The named test sets of `data.test` (all without names), encoded with given vocabularies.

    Raises:
        InputError: for an unknown name, or a text that cannot be read.
    """
    known = config.data.test
    for name in names:
        if name not in known:
            raise InputError(
                f"sets: no test set {name}; data.test has: {', '.join(known) or 'none'}"
            )
    if not known:
        raise InputError(
            "data.test: the checkpoint names no test set; add +data.test.NAME.source=FILE"
        )
    for name in names or known:
        split, _ = prepare_held_out(
            known[name],
            config.data,
            f"data.test.{name}",
            *vocabularies,
            tokenizer=config.tokenizer,
            progress=config.trainer["enable_progress_bar"],
        )
        yield split


def read_examples(config: Config, splits: Iterable[HeldOut]) -> Sets:
    """The sentences of test sets, and of those that `stress` makes of them by concatenation.

    Raises:
        InputError: for a gold alignment that does not fit, naming file and line, and if a set that
            is made has the name of another.
    """
    sets: dict[str, Sequence[Example]] = {}
    for split in splits:
        name, lengths, text = split.name, config.stress.lengths, config.data.test[split.name]
        examples = [
            Example(
                number,
                pair["source"],
                pair["target"],
                pair["target_text"],
                gold_links(pair, text, f"data.test.{name}"),
            )
            for number, pair in enumerate(split)
        ]
        made = stress_sets(name, examples, lengths, config.stress.pairs)
        missing = [length for length in lengths if joined_name(name, length) not in made]
        if missing:
            log.warning(
                "stress.lengths=%s: %s has too few sentences in a row to join", missing, name
            )
        if taken := made.keys() & config.data.test.keys():
            raise InputError(f"data.test.{min(taken)}: stress makes a test set of this name")
        sets |= {name: examples, **made}
    return sets


def evaluate_model(trained: TrainedModel, sets: Sets, folder: Path) -> list[Row]:
    """Translates and scores each test set; every rank translates its share.

    Args:
        trained: the model, on the device of this rank.
        sets: the test sets.
        folder: of the run; rank 0 writes `translations/` and `alignments/` there.

    Returns:
        On rank 0 the rows of `scores.csv`.
    """
    config, (rank, world) = trained.config, rank_and_world()
    shown, rows = config.trainer["enable_progress_bar"], []
    for name, examples in sets.items():
        log.info("translating %s: %s", name, counted(len(examples), "sentence"))
        stage = Stage(f"translating {name}", len(examples), "sentence", shown=shown)
        with timed(f"{name} translated"), stage:
            made, alignments = run_test_set(
                trained,
                examples,
                kept=_kept(examples, config),
                done=lambda _, stage=stage: stage.advance(world),  # type: ignore[misc]
            )
        if rank == 0:
            records.write_alignments(folder, name, alignments)
            rows += _scores(config, folder, name, made)
    return rows


def evaluate_system(
    config: Config,
    folder: Path,
    splits: Iterable[HeldOut],
    translate: Callable[[Sequence[Sequence[str]], str], list[list[str]]],
) -> list[Row]:
    """As `evaluate_model`, for a system that is not one of this program's models.

    Args:
        config: of the run.
        folder: of the run.
        splits: the test sets.
        translate: words of source sentences, and the title of the progress, to words.
    """
    options = config.tokenizer
    moses = tokeniser(config.data.languages[1], options.normalise, options.characters)
    rows: list[Row] = []
    for split in splits:
        pairs = list(split)
        found = translate([pair["source"] for pair in pairs], f"translating {split.name}")
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
        rows += _scores(config, folder, split.name, made)
    return rows


def _scores(config: Config, folder: Path, name: str, made: list[records.Record]) -> list[Row]:
    """Writes the translations of a test set, scores them, and logs the scores."""
    shown, language = config.trainer["enable_progress_bar"], config.data.languages[1]
    with timed(f"{name} scored"), Stage(f"scoring {name}", shown=shown):
        summary.keep_statistics(made, config.evaluation, language)
        records.write_translations(folder, name, made)
        rows = summary.score_set(name, made, config.evaluation, language)
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


def _kept(examples: Sequence[Example], config: Config) -> set[int]:
    """Ids of the sentences whose alignment is kept step by step."""
    edges = list(config.evaluation.edges)
    rows = [{"id": e.id, "source": e.source, "length": len(e.source)} for e in examples]
    kept = set(records.choose_kept(rows, config.report.sentences, edges))
    if kept and config.report.sentence:  # the named one among them, tokenised or not
        named = "".join(config.report.sentence.split())
        kept |= {e.id for e in examples if "".join(e.source) == named}
    return kept
