"""Translations of an outside system (Moses, a commercial one, a person), read from a plain file."""

from collections.abc import Callable, Sequence
from pathlib import Path

from nmt.data.lines import check_file, read_lines
from nmt.data.tokenise import split
from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.records import Record, in_order
from nmt.utils.errors import InputError

# What of a run's record describes the sentence and not the run's translation of it.
_SHARED = ("id", "source", "reference", "raw_reference", "length", "no_unk", "unknown_words")


def read_external(
    path: str | Path,
    sentences: Sequence[Record],
    *,
    tokenised: bool,
    tokenise: Callable[[str], list[str]],
    detokenise: Callable[[list[str]], str],
    key: str = "external",
) -> list[Record]:
    """Reads an outside system's translations of a test set.

    Args:
        path: UTF-8 (plain, .gz, .xz or .zst), line n the translation of sentence n of the test set.
        sentences: records of any run on that set, for references, lengths and `no_unk`.
        tokenised: whether the test set's own files hold tokens, and this one therefore does, too.
        tokenise: text -> tokens, as the references were tokenised.
        detokenise: tokens -> text.
        key: the key of the configuration that named the file, for the message.

    Returns:
        Records without what only a model gives (`nll`, `score`, attention). No system but a
        shortlist's writes `<unk>`, so a sentence's `hypothesis_no_unk` is its hypothesis.

    Raises:
        InputError: if the file cannot be read, or has another number of lines than the set.
    """
    lines = [line.strip() for line in read_lines(check_file(path, key))]
    ordered = in_order(sentences)
    if len(lines) != len(ordered):
        raise InputError(
            f"{key}={path}: {len(lines)} lines, but the test set has {len(ordered)} sentences;"
            " one hypothesis a line is expected, none for pairs that the runs left out as empty"
        )
    records = []
    for line, sentence in zip(lines, ordered, strict=True):
        hypothesis = split(line) if tokenised else tokenise(line)
        text = detokenise(hypothesis) if tokenised else line
        records.append(system_record(sentence, hypothesis, text))
    return records


def system_record(sentence: Record, hypothesis: list[str], detokenised: str) -> Record:
    """The record of a sentence that a system without a shortlist translated.

    Args:
        sentence: a record, or what of it describes the sentence: `id`, `source`, `reference`,
            `raw_reference`, `length`, `no_unk`.
        hypothesis: tokens of the translation.
        detokenised: its text.
    """
    statistics = sentence_statistics(hypothesis, sentence["reference"]).tolist()
    record = {key: sentence[key] for key in _SHARED if key in sentence} | {
        "hypothesis": hypothesis,
        "detokenised": detokenised,
        "bleu_stats": statistics,
    }
    if sentence.get("no_unk"):
        record |= {"hypothesis_no_unk": hypothesis, "bleu_stats_no_unk": statistics}
    return record
