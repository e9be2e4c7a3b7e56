"""The test protocol: translates and scores test sets, and writes the files of a run.

Every reference is force-decoded, and every source sentence is translated. If the shortlists contain all
words of a pair, the source sentence is translated again with `<unk>` forbidden. Each of N ranks takes every
N-th batch. Batches and results do not depend on N.
"""

from __future__ import annotations

import hashlib
import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt.config.schema import Config, TextConfig
from nmt.data.pairs import Pairs
from nmt.data.preparation import held_out_pairs, tokenise_text
from nmt.data.vocabulary import WORDS, Vocabularies
from nmt.evaluation import measured, records
from nmt.evaluation.alignment import (
    attention_entropy,
    eos_weight,
    gold_links,
    sentence_counts,
)
from nmt.evaluation.records import Record
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.scores.bleu import sentence_statistics
from nmt.inference.model import Model
from nmt.inference.sentence import ScoredSentence
from nmt.text.lines import check_file, read_lines
from nmt.text.symbols import UNKNOWN
from nmt.utils.environment import rank_and_world
from nmt.utils.errors import InputError
from nmt.utils.progress import Stage, timed

log = logging.getLogger(__name__)

Row = dict[str, Any]  # a row of scores.csv
Sets = Mapping[str, list[Record]]  # records of the sentences, by name of the test set


def held_out_splits(
    config: Config, vocabularies: Vocabularies, names: Sequence[str]
) -> Iterator[Pairs]:
    """Encodes and yields the named test sets, or all test sets of `data.test` if `names` is empty.

    Raises:
        InputError: if there is no test set, if a name is unknown, or if a text cannot be read.
    """
    known = config.data.test
    if not known:
        raise InputError(
            "data.test: the checkpoint has no test set; add +data.test.NAME.source=FILE"
        )
    if missing := [name for name in names if name not in known]:
        raise InputError(f"sets: no test set {missing[0]}; data.test has: {', '.join(known)}")
    for name in names or known:
        key = f"data.test.{name}"
        text = tokenise_text(known[name], config.data, key)
        yield held_out_pairs(name, text, vocabularies)


def read_sets(config: Config, splits: Iterable[Pairs]) -> Sets:
    """Reads the sentences of test sets, without translations.

    Raises:
        InputError: if a gold alignment does not fit its pair, if a document has no name, or if a file of
            document names is missing or too short.
    """
    return {
        split.name: read_sentences(split, config.data.test[split.name], config.data.root)
        for split in splits
    }


def read_sentences(split: Pairs, text: TextConfig, root: str | None = None) -> list[Record]:
    """Returns a record of each sentence of a test set, without a translation.

    If a sentence has gold links, they are in the key `gold`, which is not written to files.
    """
    shortlists = any(vocabulary.kind == WORDS for vocabulary in split.vocabularies)
    sentences = []
    for number, pair in enumerate(split):
        unknown = UNKNOWN in pair["source_ids"] or UNKNOWN in pair["target_ids"]
        sentence: Record = {
            "id": number,
            "line": pair["line"] + 1,
            "source": pair["source"],
            "reference": pair["target"],
            "raw_reference": pair["target_text"],
            "length": len(pair["source"]),
            "no_unk": not unknown if shortlists else None,
        }
        gold = gold_links(pair, text, f"data.test.{split.name}")
        if gold is not None:
            sentence["gold"] = gold
        sentences.append(sentence)
    if text.documents:
        file = Path(root or "").expanduser() / Path(text.documents).expanduser()
        name_documents(sentences, file, f"data.test.{split.name}.documents")
    return sentences


def name_documents(sentences: Sequence[Record], file: Path, key: str) -> None:
    """Adds a document name to each sentence; line n of `file` names the document of line n of the text."""
    names = list(read_lines(check_file(file, key)))
    for sentence in sentences:
        if sentence["line"] > len(names):
            raise InputError(
                f"{key}: {file} has {len(names)} lines, but the text has a line {sentence['line']}"
            )
        sentence["document"] = names[sentence["line"] - 1]
        if not sentence["document"].strip():
            raise InputError(f"{file}:{sentence['line']}: empty; each line must name a document")


@dataclass
class Evaluated:
    """The results of an evaluation; empty on ranks above 0.

    Attributes:
        scores: rows of `scores.csv`.
        translations, alignments: records by test set, as written to `translations/` and `alignments/`.
    """

    scores: list[Row] = field(default_factory=list)
    translations: dict[str, list[Record]] = field(default_factory=dict)
    alignments: dict[str, list[Record]] = field(default_factory=dict)


def evaluate(model: Model, sets: Sets, folder: Path) -> Evaluated:
    """Translates and scores each test set.

    Every rank translates its share of the sentences.

    Args:
        folder: run folder; rank 0 writes `translations/` and `alignments/` there.
    """
    main = rank_and_world()[0] == 0
    found = Evaluated()
    for name, sentences in sets.items():
        with timed(f"{name} translated"):
            translations = translate_set(model, sentences, name)
        if main:
            found.translations[name] = translations
            rows = [row.pop("alignment") for row in translations if "alignment" in row]
            if rows:
                found.alignments[name] = records.write_alignments(folder, name, rows)
            found.scores += score_translations(model.config, folder, name, translations)
    return found


def translate_set(model: Model, sentences: Sequence[Record], name: str) -> list[Record]:
    """Force-decodes and translates every sentence of a test set.

    Returns:
        The record of each sentence (`nmt.evaluation.records`), in order, on every rank. Records of the
        sentences that the HTML page shows (`report.sentences`) also have the key `alignment`.
    """
    config = model.config
    edges = list(model.config.evaluation.edges or ())
    kept = set(choose_kept(sentences, config.report.sentences, edges))

    def work(indices: list[int]) -> list[Record]:
        return decode(model, [sentences[n] for n in indices], kept)

    lengths = [len(model.source.encode(each["source"])) for each in sentences]
    title = f"translating {name}"
    shown = config.trainer["enable_progress_bar"]
    with Stage(title, len(sentences), "sentence", shown=shown) as stage:
        return model.map_sentences(lengths, work, stage.advance, shared=True)


def choose_kept(
    sentences: Iterable[Mapping[str, Any]], count: int, edges: Sequence[int]
) -> list[int]:
    """Chooses the sentences whose alignments are stored; the choice is the same in all runs on a test set.

    In each length bucket, sentences are sorted by a hash of their source text. Sentences are then taken from
    all buckets in turn until `count` sentences are chosen.

    Args:
        sentences: records with `id`, `source` (tokens) and `length`.
        count: number of sentences to choose. If there are fewer, all are chosen.
        edges: largest length of each bucket.

    Returns:
        ids, ascending.
    """
    buckets: defaultdict[int, list[tuple[bytes, int]]] = defaultdict(list)
    for sentence in sentences:
        text = " ".join(sentence["source"]).encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(text, digest_size=8).digest()
        buckets[bisect_left(edges, sentence["length"])].append((digest, sentence["id"]))
    turns = sorted(
        (turn, place, identity)
        for place, ranked in buckets.items()
        for turn, (_, identity) in enumerate(sorted(ranked))
    )
    return sorted(identity for _, _, identity in turns[:count])


def decode(model: Model, sentences: Sequence[Record], kept: set[int]) -> list[Record]:
    """Returns the record of each sentence of a batch, with `alignment` if its id is in `kept`."""
    sources = [each["source"] for each in sentences]
    targets = [model.target.encode(each["reference"]) for each in sentences]
    forced = model.force_decode(sources, targets)
    best = [hypotheses[0] for hypotheses in model.search(sources)]
    known = [n for n, each in enumerate(sentences) if each["no_unk"]]
    without = model.search([sources[n] for n in known], forbid_unknown=True)
    no_unk = {
        n: model.target.decode(hypotheses[0].tokens)
        for n, hypotheses in zip(known, without, strict=True)
    }
    attended = {n for n, each in enumerate(sentences) if each["id"] in kept}
    translations = model.describe(sources, best, attended, runners_up=bool(attended))
    results = []
    for n, sentence in enumerate(sentences):
        record = make_record(sentence, translations[n], forced[n], no_unk.get(n))
        if n in attended:
            record["alignment"] = translations[n].row(sentence["id"], sentence["reference"])
        results.append(record)
    return results


def make_record(
    sentence: Record,
    translation: ScoredSentence,
    forced: ScoredSentence,
    no_unk: list[str] | None = None,
) -> Record:
    """Returns the record of a translated sentence.

    Args:
        sentence: the record without a translation.
        translation: the best hypothesis.
        forced: the reference, force-decoded.
        no_unk: the words of the best hypothesis without `<unk>`; None if there was no such search.
    """
    reference = sentence["reference"]
    words: list[str | None] = list(translation.tokens)
    for index in translation.unknown:  # so that `<unk>` matches no reference word
        words[index] = None
    record = {key: value for key, value in sentence.items() if key != "gold"}
    record["hypothesis"] = translation.tokens
    record["detokenised"] = translation.text
    if translation.unknown:
        record["unknown"] = list(translation.unknown)
    record["log_probability"] = translation.log_probability
    record["bleu_stats"] = sentence_statistics(words, reference).tolist()
    if no_unk is not None:
        record["hypothesis_no_unk"] = no_unk
        record["bleu_stats_no_unk"] = sentence_statistics(no_unk, reference).tolist()
    record["nll"] = -forced.log_probability
    if forced.weights is not None:
        record["attention_entropy"] = float(attention_entropy(forced.weights).mean())
        record["eos_weight"] = eos_weight(forced.weights)
        if "gold" in sentence:
            record["alignment_counts"] = sentence_counts(forced.weights, sentence["gold"])
    return record


def score_translations(config: Config, folder: Path, name: str, rows: list[Record]) -> list[Row]:
    """Writes the translations of a test set with their slow statistics, scores them, and logs the main scores."""
    shown = config.trainer["enable_progress_bar"]
    language = config.data.languages[1]
    with timed(f"{name} scored"), Stage(f"scoring {name}", shown=shown):
        measured.keep_statistics(rows, config.evaluation, language)
        records.write_translations(folder, name, rows)
        scores = measured.score_set(name, rows, config.evaluation, language)
    log_scores(name, scores)
    return scores


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
