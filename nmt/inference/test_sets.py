"""The test protocol: test sets translated, scored and written to the folder of a run.

Every sentence is force-decoded, translated, and translated without `<unk>` if its pair has only
known words. Rank r takes every N-th batch, so that the results do not depend on the number of
devices.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.data.pairs import Pairs
from nmt.data.prepare import prepare_test_set
from nmt.data.tokenise import tokenisers
from nmt.data.vocabulary import WORDS, Vocabularies
from nmt.evaluation import records, summary
from nmt.evaluation.alignment import attention_entropy, eos_weight, gold_links, sentence_counts
from nmt.evaluation.records import Record
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.evaluation.stress import (
    Example,
    cut_records,
    joined_name,
    position_losses,
    position_name,
    position_sets,
    stress_sets,
)
from nmt.inference.model import Model
from nmt.inference.sentence import ScoredSentence
from nmt.utils.environment import gather, rank_and_world
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage, timed

log = logging.getLogger(__name__)

Row = dict[str, Any]  # of scores.csv
Sets = Mapping[str, Sequence[Example]]  # test sets by name
# A test set, and the title of the progress, to records and alignments of its sentences.
System = Callable[[Sequence[Example], str], tuple[list[Record], list[Record]]]


def held_out_splits(
    config: Config, vocabularies: Vocabularies, names: Sequence[str]
) -> Iterator[Pairs]:
    """The named test sets of `data.test` (all without names), encoded with given vocabularies.

    Raises:
        InputError: for an unknown name, or a text that cannot be read.
    """
    known = config.data.test
    if not known:
        raise InputError(
            "data.test: the checkpoint names no test set; add +data.test.NAME.source=FILE"
        )
    if missing := [name for name in names if name not in known]:
        raise InputError(f"sets: no test set {missing[0]}; data.test has: {', '.join(known)}")
    for name in names or known:
        yield prepare_test_set(known[name], config.data, name, vocabularies, config.tokenizer)


def read_examples(config: Config, splits: Iterable[Pairs]) -> Sets:
    """The sentences of test sets, and of those that `stress` makes of them by concatenation.

    Raises:
        InputError: for a gold alignment that does not fit, naming file and line.
    """
    sets: dict[str, Sequence[Example]] = {}
    for split in splits:
        name, stress, text = split.name, config.stress, config.data.test[split.name]
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
        joined = stress_sets(name, examples, stress.lengths, stress.pairs)
        missing = [length for length in stress.lengths if joined_name(name, length) not in joined]
        if missing:
            log.warning(
                "stress.lengths=%s: %s has too few sentences in a row to join", missing, name
            )
        positions = position_sets(name, examples, stress.positions, stress.pairs)
        sets |= {name: examples, **joined, **positions}
    return sets


def evaluate(config: Config, sets: Sets, folder: Path, translate: System) -> list[Row]:
    """Translates and scores each test set; every rank translates its share.

    Args:
        config: of the run.
        sets: the test sets.
        folder: of the run; rank 0 writes `translations/` and `alignments/` there.
        translate: `translate_set` of a model, or another system.

    Returns:
        On rank 0 the rows of `scores.csv`.
    """
    rows: list[Row] = []
    for name, examples in sets.items():
        with timed(f"{name} translated"):
            translated, alignments = translate(examples, f"translating {name}")
        if rank_and_world()[0]:
            continue
        if alignments and not examples[0].parts:  # whose sentences are not those of the inputs
            records.write_alignments(folder, name, alignments)
        rows += _scores(config, folder, name, translated)
    return rows


def translate_set(
    model: Model, examples: Sequence[Example], title: str = "translating"
) -> tuple[list[Record], list[Record]]:
    """Force-decodes and translates every sentence of a test set.

    Args:
        model: on the device of this rank.
        examples: the test set.
        title: of the progress.

    Returns:
        On every rank the record of each sentence (`nmt.evaluation.records`), and the alignment of the
        `report.sentences` that are kept step by step, both in the order of the set.
    """
    config, (rank, world) = model.config, rank_and_world()
    pairs = [pair_record(example, (model.source, model.target)) for example in examples]
    edges = list(config.evaluation.edges or ())
    kept = set(records.choose_kept(pairs, config.report.sentences, edges))

    def work(places: list[int]) -> list[tuple[Record, Record | None]]:
        return decode(model, [examples[n] for n in places], [pairs[n] for n in places], kept)

    mine, lengths = [], [len(model.source.encode(example.source)) for example in examples]
    shown = config.trainer["enable_progress_bar"]
    with Stage(title, len(examples), "sentence", shown=shown) as stage:
        for _, result in model.in_batches(lengths, work, rank, world):
            mine.append(result)
            stage.advance(world)
    everyone = [result for part in gather(mine) for result in part]
    alignments = [alignment for _, alignment in everyone if alignment is not None]
    return records.in_order(record for record, _ in everyone), records.in_order(alignments)


def decode(
    model: Model, examples: Sequence[Example], pairs: Sequence[Record], kept: set[int]
) -> list[tuple[Record, Record | None]]:
    """The record of each sentence of a batch, with its alignment if its id is in `kept`."""
    sources = [example.source for example in examples]
    targets = [model.target.encode(example.target) for example in examples]
    references = model.force_decode(sources, targets)
    best = [hypotheses[0] for hypotheses in model.search(sources)]
    attended = {n for n, example in enumerate(examples) if example.id in kept}
    translations = model.describe(
        list(zip(sources, best, strict=True)), attended, runners_up=bool(attended)
    )
    results: list[tuple[Record, Record | None]] = []
    for n, example in enumerate(examples):
        record = (
            pairs[n] | _translation(example, translations[n]) | _reference(example, references[n])
        )
        reference = list(example.target)
        row = translations[n].row(example.id, reference) if n in attended else None
        results.append((record, row))
    known = [n for n, pair in enumerate(pairs) if pair["no_unk"]]
    without = model.search([sources[n] for n in known], forbid_unknown=True)
    for n, hypotheses in zip(known, without, strict=True):
        words = model.target.decode(hypotheses[0].tokens)
        statistics = sentence_statistics(words, examples[n].target)
        results[n][0]["hypothesis_no_unk"] = words
        results[n][0]["bleu_stats_no_unk"] = statistics.tolist()
    return results


def pair_record(example: Example, vocabularies: Vocabularies) -> Record:
    """What a record says of the sentence pair itself, whoever translates it."""
    sides = zip(vocabularies, (example.source, example.target), strict=True)
    unknown = [each.unknown(words) for each, words in sides if each.kind == WORDS] or None
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
            pair_record(part, vocabularies) | {"position": position, "no_unk": None}
            for position, part in enumerate(example.parts, start=1)
        ]
    return record


def _translation(example: Example, translation: ScoredSentence) -> Record:
    words: list[str | None] = list(translation.tokens)
    for place in translation.unknown:  # matches no word of a reference
        words[place] = None
    return {
        "hypothesis": translation.tokens,
        "detokenised": translation.text,
        **({"unknown": list(translation.unknown)} if translation.unknown else {}),
        "score": translation.score,
        "bleu_stats": sentence_statistics(words, example.target).tolist(),
    }


def _reference(example: Example, forced: ScoredSentence) -> Record:
    """NLL of the reference; entropy, weight on `</s>` and counts of links of its attention."""
    record: Record = {"nll": -forced.score}
    if forced.weights is not None:
        record["attention_entropy"] = float(attention_entropy(forced.weights).mean())
        record["eos_weight"] = eos_weight(forced.weights)
        if example.gold is not None:
            record["alignment_counts"] = sentence_counts(forced.weights, example.gold)
    return record


def _scores(config: Config, folder: Path, name: str, translated: list[Record]) -> list[Row]:
    """Writes the translations of a test set, scores them, and logs the scores."""
    shown, language = config.trainer["enable_progress_bar"], config.data.languages[1]
    sentences = len(translated[0].get("parts") or ())  # of an input
    if sentences:
        moses = tokenisers(config.data, config.tokenizer)[1]
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
    overall = {(row["score"], row["subset"]): row for row in rows if row.get("from") is None}
    parts = []
    for key, subset, title in (
        ("bleu", "all", "BLEU"),
        ("bleu", "no_unk", "BLEU without unknown words"),
        ("nll_per_sentence", "all", "NLL/sentence"),
        ("alignment_error_rate", "all", "AER"),
    ):
        if row := overall.get((key, subset)):
            digits = REGISTERED[key].digits
            part = f"{title} {row['value']:.{digits}f}"
            if row["low"] is not None:
                part += f" [{row['low']:.{digits}f}, {row['high']:.{digits}f}]"
            parts.append(part)
    log.info("%s: %s", name, ", ".join(parts))
