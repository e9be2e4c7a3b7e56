"""The test protocol: test sets translated, scored and written to the folder of a run.

Every sentence is force-decoded, translated, and translated without `<unk>` if its pair has only
known words. Rank r takes every N-th batch, so that the results do not depend on the number of
devices.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.data.pairs import Pairs
from nmt.data.prepare import prepare_test_set
from nmt.data.sources import leave_out_absent
from nmt.data.tokenise import tokeniser
from nmt.data.vocabulary import Vocabularies, unknown_words
from nmt.evaluation import records, summary
from nmt.evaluation.alignment import attention_entropy, eos_weight, gold_links, sentence_counts
from nmt.evaluation.examples import Example
from nmt.evaluation.records import Record, system_record
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.evaluation.stress import (
    cut_records,
    joined_name,
    position_losses,
    position_name,
    position_sets,
    stress_sets,
)
from nmt.inference.force_decoding import ForcedDecoding, ScoredSentence, force_decode
from nmt.inference.model import Model
from nmt.utils.environment import gather, rank_and_world
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage, timed

log = logging.getLogger(__name__)

Row = dict[str, Any]  # of scores.csv
Sets = Mapping[str, Sequence[Example]]  # test sets by name


def held_out_splits(
    config: Config, vocabularies: Vocabularies, names: Sequence[str]
) -> Iterator[Pairs]:
    """The named test sets of `data.test` (all without names), encoded with given vocabularies.

    Raises:
        InputError: for an unknown name, or a text that cannot be read.
    """
    leave_out_absent(config.data)
    known = config.data.test
    if not known:
        raise InputError(
            "data.test: the checkpoint names no test set; add +data.test.NAME.source=FILE"
        )
    if missing := [name for name in names if name not in known]:
        raise InputError(f"sets: no test set {missing[0]}; data.test has: {', '.join(known)}")
    for name in names or known:
        yield prepare_test_set(
            known[name],
            config.data,
            f"data.test.{name}",
            vocabularies,
            config.tokenizer,
            config.trainer["enable_progress_bar"],
        )


def read_examples(config: Config, splits: Iterable[Pairs]) -> Sets:
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
                line=pair["line"] + 1,
            )
            for number, pair in enumerate(split)
        ]
        joined = stress_sets(name, examples, lengths, config.stress.pairs)
        joined |= position_sets(name, examples, config.stress.positions, config.stress.pairs)
        missing = [length for length in lengths if joined_name(name, length) not in joined]
        if missing:
            log.warning(
                "stress.lengths=%s: %s has too few sentences in a row to join", missing, name
            )
        if taken := joined.keys() & config.data.test.keys():
            raise InputError(f"data.test.{min(taken)}: stress makes a test set of this name")
        sets |= {name: examples, **joined}
    return sets


def evaluate_model(model: Model, sets: Sets, folder: Path) -> list[Row]:
    """Translates and scores each test set; every rank translates its share.

    Args:
        model: on the device of this rank.
        sets: the test sets.
        folder: of the run; rank 0 writes `translations/` and `alignments/` there.

    Returns:
        On rank 0 the rows of `scores.csv`.
    """
    config, (rank, world) = model.config, rank_and_world()
    shown, rows = config.trainer["enable_progress_bar"], []
    for name, examples in sets.items():
        stage = Stage(f"translating {name}", len(examples), "sentence", shown=shown)
        with timed(f"{name} translated"), stage:
            translated, alignments = run_test_set(
                model,
                examples,
                kept=_kept(examples, config),
                done=lambda _, stage=stage: stage.advance(world),  # type: ignore[misc]
            )
        if rank == 0:
            if not examples[0].parts:  # whose sentences are not those of the inputs
                records.write_alignments(folder, name, alignments)
            rows += _scores(config, folder, name, translated)
    return rows


def evaluate_system(
    config: Config,
    folder: Path,
    sets: Sets,
    vocabularies: Vocabularies,
    translate: Callable[[Sequence[Sequence[str]], str], list[list[str]]],
) -> list[Row]:
    """As `evaluate_model`, for a system that is not one of this program's models.

    Args:
        config: of the run.
        folder: of the run.
        sets: the test sets.
        vocabularies: whose words are known.
        translate: words of source sentences, and the title of the progress, to words.
    """
    options, rows = config.tokenizer, []
    moses = tokeniser(config.data.languages[1], options.normalise, options.characters)
    for name, examples in sets.items():
        hypotheses = translate([each.source for each in examples], f"translating {name}")
        translated = [
            system_record(
                sentence_record(example, config, vocabularies), words, moses.detokenise(words)
            )
            for example, words in zip(examples, hypotheses, strict=True)
        ]
        rows += _scores(config, folder, name, translated)
    return rows


def run_test_set(
    model: Model,
    examples: Sequence[Example],
    *,
    kept: Collection[int] = (),
    done: Callable[[Example], object] = lambda _: None,
) -> tuple[list[Record], list[Record]]:
    """Force-decodes and translates every sentence of a test set.

    Args:
        model: on the device of this rank.
        examples: the test set.
        kept: ids of the sentences whose alignment is kept step by step.
        done: gets each example that this rank has finished.

    Returns:
        On every rank the record of each sentence (`nmt.evaluation.records`) and the row of each one
        in `kept`, both in the order of the set.
    """
    lengths = [len(model.codec.source.encode(example.source)) for example in examples]

    def work(places: list[int]) -> list[tuple[Record, Record | None]]:
        return decode(model, [examples[place] for place in places], kept)

    mine = []
    for place, result in model.in_batches(lengths, work, *rank_and_world()):
        mine.append(result)
        done(examples[place])
    everyone = [result for part in gather(mine) for result in part]
    rows = [row for _, row in everyone if row is not None]
    return records.in_order(record for record, _ in everyone), records.in_order(rows)


def decode(
    model: Model, examples: Sequence[Example], kept: Collection[int]
) -> list[tuple[Record, Record | None]]:
    """The record of each sentence of a batch, with its row if it is kept."""
    codec, config = model.codec, model.config
    sources = [codec.source.encode(example.source) for example in examples]
    targets = [codec.target.encode(example.target) for example in examples]
    references = force_decode(model.network, sources, targets)
    best = [hypotheses[0] for hypotheses in model.search(sources)]
    pairs = [(example.source, each) for example, each in zip(examples, best, strict=True)]
    with_rows = {place for place, example in enumerate(examples) if example.id in kept}
    translations = model.describe(pairs, with_rows)
    made = [sentence_record(each, config, (codec.source, codec.target)) for each in examples]
    for example, record, translation, forced in zip(
        examples, made, translations, references, strict=True
    ):
        record |= _translation(example, translation) | _reference(model, example, forced)
    known = [place for place, record in enumerate(made) if record["no_unk"]]
    without = model.search([sources[place] for place in known], forbid_unknown=True)
    for place, hypotheses in zip(known, without, strict=True):
        words = codec.target.decode(hypotheses[0].tokens)
        statistics = sentence_statistics(words, examples[place].target)
        made[place]["hypothesis_no_unk"] = words
        made[place]["bleu_stats_no_unk"] = statistics.tolist()
    rows = [
        each.row and {"id": example.id, **each.row, "reference": list(example.target)}
        for example, each in zip(examples, translations, strict=True)
    ]
    return list(zip(made, rows, strict=True))


def sentence_record(example: Example, config: Config, vocabularies: Vocabularies) -> Record:
    """What a record says of the sentence pair itself, whoever translates it."""
    unknown = unknown_words(*vocabularies, example.source, example.target)
    record: Record = {
        "id": example.id,
        **({} if example.line is None else {"line": example.line}),
        "source": list(example.source),
        "reference": list(example.target),
        "raw_reference": example.text,
        "length": len(example.source),
        "no_unk": None if unknown is None else not sum(unknown),
        "unknown_words": unknown,
    }
    if example.parts:
        record["parts"] = [
            sentence_record(part, config, vocabularies) | {"position": position, "no_unk": None}
            for position, part in enumerate(example.parts, start=1)
        ]
    return record


def _translation(example: Example, translation: ScoredSentence) -> Record:
    words: list[str | None] = list(translation.tokens)
    for place in translation.unknown:  # matches no word of a reference
        words[place] = None
    unknown = list(translation.unknown)
    return {
        "hypothesis": translation.tokens,
        "detokenised": translation.text,
        **({"unknown": unknown} if unknown else {}),
        "score": translation.score,
        "bleu_stats": sentence_statistics(words, example.target).tolist(),
    }


def _reference(model: Model, example: Example, forced: ForcedDecoding) -> Record:
    """NLL of the reference; entropy, weight on `</s>` and counts of links of its attention."""
    found: Record = {"nll": -sum(forced.log_probabilities)}
    if forced.weights is not None:
        weights = model.codec.word_weights(forced.weights, example.source, forced.ids)
        found["attention_entropy"] = float(attention_entropy(weights).mean())
        found["eos_weight"] = eos_weight(weights)
        if example.gold is not None:
            found["alignment_counts"] = sentence_counts(weights, example.gold)
    return found


def _scores(config: Config, folder: Path, name: str, translated: list[Record]) -> list[Row]:
    """Writes the translations of a test set, scores them, and logs the scores."""
    shown, language = config.trainer["enable_progress_bar"], config.data.languages[1]
    sentences = len(translated[0].get("parts") or ())  # of an input
    if sentences:
        options = config.tokenizer
        moses = tokeniser(language, options.normalise, options.characters)
        translated = cut_records(translated, moses.detokenise)
    with timed(f"{name} scored"), Stage(f"scoring {name}", shown=shown):
        summary.keep_statistics(translated, config.evaluation, language)
        records.write_translations(folder, name, translated)
        rows = summary.score_set(name, translated, config.evaluation, language)
    log_scores(name, rows)
    if sentences > 1:
        by_itself = position_name(name.rpartition("-")[0], 1)
        alone = records.read_translations(folder, by_itself)
        losses = list(position_losses(name, alone, translated, config.evaluation.resamples))
        for row in losses:
            place = "all positions" if row["from"] is None else f"position {row['from']}"
            log.info("  %s: %.2f BLEU less than alone", place, row["value"])
        rows += losses
    return rows


def log_scores(name: str, rows: Sequence[Row]) -> None:
    """Logs the main scores of a test set."""
    whole = {(row["score"], row["subset"]): row for row in rows if row.get("from") is None}
    parts = []
    for key, subset, title in (
        ("bleu", "all", "BLEU"),
        ("bleu", "no_unk", "BLEU without unknown words"),
        ("nll_per_sentence", "all", "NLL/sentence"),
        ("alignment_error_rate", "all", "AER"),
    ):
        if row := whole.get((key, subset)):
            digits = REGISTERED[key].digits
            part = f"{title} {row['value']:.{digits}f}"
            if row["low"] is not None:
                part += f" [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
            parts.append(part)
    log.info("%s: %s", name, ", ".join(parts))


def _kept(examples: Sequence[Example], config: Config) -> set[int]:
    """Ids of the sentences whose alignment is kept step by step."""
    edges = list(config.evaluation.edges or ())
    rows = [{"id": e.id, "source": e.source, "length": len(e.source)} for e in examples]
    return set(records.choose_kept(rows, config.report.sentences, edges))
