"""Reads and writes the translations and alignments of a test set.

A record is a dict with the translation of one sentence. `translations/<set>.jsonl` has one record per line.
The keys of a record are:

    id             index of the sentence in its test set, from 0
    line           number of its line in the source file, from 1; absent in texts that `nmt.compare` reads
    source, reference, hypothesis   tokens, without `</s>`
    raw_reference  line of the reference file, for scores of detokenised text
    detokenised    the hypothesis as text
    length         sentence length, which determines the bucket
    words          number of words of the raw source; absent in runs
    document, domain   names of its document and its domain; absent if unknown
    no_unk         whether all words of source and reference are in the shortlists; None without shortlists
    nll            NLL of the reference with its `</s>`, in nats; absent in output of other systems
    log_probability  log-probability of the hypothesis, in nats; absent in output of other systems
    bleu_stats     BLEU statistics of the hypothesis: the 10 integers of `sentence_statistics`
    unknown        positions of `<unk>` symbols in the hypothesis; absent if there are none
    hypothesis_no_unk, bleu_stats_no_unk   `hypothesis` and `bleu_stats` of a search without `<unk>`; only if `no_unk`
    attention_entropy   entropy of the attention weights in nats, averaged over target steps; only with attention
    eos_weight     attention weight on the source `</s>`, averaged over target words; only with attention
    alignment_counts   the 6 integers of `alignment.sentence_counts`; only with gold links
    statistics     statistics by key of the score; only if it is slow, depends on the language, or is read from a file
"""

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nmt.text.lines import read_lines
from nmt.utils.files import check_set_name, refuse_unreadable, write_atomically

Record = dict[str, Any]


def in_order(records: Iterable[Record]) -> list[Record]:
    """Sorts records by `id`, so that results do not depend on the order of the records.

    Raises:
        ValueError: if two records have the same id.
    """
    ordered = sorted(records, key=lambda record: record["id"])
    for before, after in itertools.pairwise(ordered):
        if before["id"] == after["id"]:
            raise ValueError(f"sentence {after['id']} occurs twice")
    return ordered


def write_translations(folder: str | Path, name: str, records: Iterable[Record]) -> None:
    """Writes `translations/<name>.jsonl`, `.txt` (tokens) and `.detok.txt` (text) in a run folder.

    Sentences are in the order of the source file. In the text files, line breaks inside a sentence become spaces.
    """
    ordered = in_order(records)
    stem = Path(folder) / "translations" / check_set_name(name)
    _write_lines(f"{stem}.jsonl", (_json(record) for record in ordered))
    _write_lines(f"{stem}.txt", (_one_line(" ".join(row["hypothesis"])) for row in ordered))
    _write_lines(f"{stem}.detok.txt", (_one_line(row["detokenised"]) for row in ordered))


def write_alignments(folder: str | Path, name: str, rows: Iterable[Record]) -> list[Record]:
    """Writes `alignments/<name>.jsonl` in a run folder, and returns its rows.

    Floats between -1 and 1 are rounded to 5 significant digits, all other floats to 5 decimals.

    Each row holds `id`, `length`, `source` (S tokens with `</s>`), `target` (T tokens of the
    hypothesis with `</s>`), `reference`, `log_probability`, `word_log_probabilities` (T,) and
    `runners_up` (T, 5, [token, log-probability]). It also holds `weights` (T, S), `log_normaliser` (T,)
    and `attention_entropy` (T,), which are null without attention.
    """
    path = Path(folder) / "alignments" / f"{check_set_name(name)}.jsonl"
    rounded = [_rounded(row) for row in in_order(rows)]
    _write_lines(path, map(_json, rounded))
    return rounded


def read_rows(path: Path) -> list[Record]:
    """Reads a plain or compressed file with one JSON object per line.

    Raises:
        InputError: if a line is not a JSON object; the message names the file and the line.
    """
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        with refuse_unreadable(f"{path}:{number}", "an object of JSON"):
            rows.append(dict(json.loads(line)))
    return rows


# Keys of a record that describe the sentence, not its translation.
_TEXTS = ("source", "reference", "raw_reference", "more_references", "more_raw_references")
_OF_SENTENCE = ("id", "line", *_TEXTS, "length", "words", "ids", "document", "domain", "no_unk")


def system_record(
    sentence: Record, hypothesis: list[str], detokenised: str, statistics: list[int]
) -> Record:
    """Builds the record of a translation by a system without a shortlist.

    The record has no `nll`, `log_probability` or attention, which only a model provides. The system writes
    no `<unk>`, so `hypothesis_no_unk` equals the hypothesis.

    Args:
        sentence: a record of the same sentence. The keys that describe the sentence are copied from it.
        statistics: the 10 BLEU statistics of the hypothesis.
    """
    record = {key: sentence[key] for key in _OF_SENTENCE if key in sentence}
    record |= {"hypothesis": hypothesis, "detokenised": detokenised, "bleu_stats": statistics}
    if sentence.get("no_unk"):
        record |= {"hypothesis_no_unk": hypothesis, "bleu_stats_no_unk": statistics}
    return record


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _rounded(row: Mapping[str, Any]) -> Any:
    return json.loads(_json(row), parse_float=_round)


def _round(text: str) -> float:
    # Small weights keep 5 significant digits, because attention scores are computed from their logarithms.
    value = float(text)
    return float(f"{value:.5g}") if abs(value) < 1 else round(value, 5)


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n]+", " ", text)


def _write_lines(path: str | Path, lines: Iterable[str]) -> None:
    # Tokens of a damaged line may contain lone surrogates, which UTF-8 cannot encode. Replace them by "?".
    encoded = (f"{line}\n".encode("utf-8", "replace") for line in lines)
    write_atomically(Path(path), lambda stream: stream.writelines(encoded))
