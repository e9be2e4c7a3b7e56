"""Reads the output of other systems, and scores of it, from files.

A text is plain, one sentence per line, or JSONL, one object per line. Its test set is a test set of the
runs, or a source file with its references.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.config.commands import CompareConfig
from nmt.evaluation.position import POSITION_OF, cut_outputs, position_losses
from nmt.evaluation.records import Record, in_order, read_rows, system_record
from nmt.evaluation.scores.base import Ratio
from nmt.evaluation.scores_csv import score_table
from nmt.report.runs import FinishedRun
from nmt.text.lines import check_file, read_lines
from nmt.text.tokenise import LANGUAGES, Tokeniser, split, tokeniser
from nmt.utils.errors import InputError
from nmt.utils.files import refuse_unreadable
from nmt.utils.text import as_list, file_name

UNSPACED = frozenset(["zh", "ja", "th", "lo", "km", "my"])  # languages without spaces between words

# Names of JSONL columns in this program, COMET, MetricX and other tools.
SOURCE = ("source", "src", "text")
REFERENCE = ("reference", "ref", "target")
OUTPUT = ("translation", "hypothesis", "mt", "target", "text")


class FromFile(Ratio):
    """A number per sentence from another tool, kept in the records; the score of a set is the mean.

    `higher_is_better` is None, since the file does not say it.
    """

    higher_is_better = None
    digits = 3

    def __init__(self, key: str) -> None:
        self.key = self.title = key  # type: ignore[misc]


@dataclass(frozen=True)
class TestText:
    """A test set whose sentences systems translate."""

    records: list[Record]  # its sentences, without a translation (`nmt.evaluation.records`)
    reference_tokeniser: Tokeniser
    tokenised: bool = False  # whether systems write tokens
    languages: Sequence[str] | None = None  # source and target language

    def translated(self, lines: Sequence[str], key: str) -> list[Record]:
        """Makes records of a system's output: one line per sentence, or one per source line.

        Pairs with an empty side are not in the test set, but have lines in the source file.
        """
        sentences = len(self.records)
        indices = [record.get("line", number) - 1 for number, record in enumerate(self.records, 1)]
        if len(lines) > indices[-1] >= sentences:
            lines = [lines[index] for index in indices]
        if len(lines) != sentences:
            raise InputError(
                f"{key}: {len(lines)} lines, but the test set has {sentences} sentences"
                f" (to line {indices[-1] + 1} of its source); give one translation per line"
            )
        records = []
        for sentence, line in zip(self.records, lines, strict=True):
            tokens = self.tokens(line)
            text = self.reference_tokeniser.detokenise(tokens) if self.tokenised else line
            records.append(system_record(sentence, tokens, text))
        return records

    def cut(self, lines: Sequence[str], size: int, count: int, key: str) -> list[Record]:
        """Makes records of the first `count` sentences from output for inputs of `size` sentences."""
        inputs = -(-count // size)
        if len(lines) != inputs:
            raise InputError(
                f"{key}: {len(lines)} lines, but {count} sentences make {inputs} inputs of {size}"
            )
        outputs = map(self.tokens, lines)
        return cut_outputs(self.records[:count], outputs, size, self.reference_tokeniser.detokenise)

    def tokens(self, line: str) -> list[str]:
        """Splits a line of output into words, like the references."""
        return split(line) if self.tokenised else self.reference_tokeniser.tokenise(line)


def read_systems(config: CompareConfig, runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """Reads the systems of a configuration as runs without a folder.

    Raises:
        InputError: naming the key, if a file cannot be read, its number of lines differs from the
            test set, or its test set is unknown.
    """
    described = (config.reference, config.languages, config.metadata, config.document)
    if not config.source and (any(described) or config.lengths != "tokens"):
        raise InputError("reference, languages, lengths, metadata and document: need source=FILE")
    own = dict([_source_text(config)]) if config.source else {}
    sets = list(own or dict.fromkeys(name for run in runs for name in run.sets))
    systems = []
    for system, given in config.systems.items():
        if system in {run.label for run in runs}:
            raise InputError(f"systems.{system}: a run has this name; use another")
        if isinstance(given, str) and len(sets) != 1:
            known = ", ".join(sets) or "none; give source and reference"
            raise InputError(f"systems.{system}: use systems.{system}.SET=F; test sets: {known}")
        run = FinishedRun(system, {"name": system})
        losses: list[dict[str, Any]] = []
        files = {sets[0]: given} if isinstance(given, str) else given
        for name, path in sorted(files.items()):  # a test set before its joined inputs
            key = f"systems.{system}.{name}"
            alone, _, size = name.partition(POSITION_OF)
            if alone not in sets or not ((size or "2").isdecimal() and int(size or 2) > 1):
                raise InputError(f"{key}: no such test set; test sets: {', '.join(sets)}")
            text = own[alone] if own else _text_of(runs, alone)
            lines = read_texts(path, key, OUTPUT)
            if size:
                used = _text_of(runs, name) if name in sets else text
                records = text.cut(lines, int(size), len(used.records), key)
                if given_alone := run.records.get(alone):
                    losses += position_losses(name, given_alone, records, config.resamples)
            else:
                records = text.translated(lines, key)
            run.records[name] = records
            run.results["languages"] = text.languages
        run.scores = score_table(losses)
        systems.append(run)
    return systems


def _text_of(runs: Sequence[FinishedRun], test_set: str) -> TestText:
    """Returns a test set of the runs; its sentences come from a run with shortlists, if any."""
    scored = [run for run in runs if run.translations(test_set)]
    if not scored:
        raise InputError(f"systems: no run kept its translations of {test_set}")
    run = max(scored, key=lambda run: run.translations(test_set)[0].get("no_unk") is not None)
    flat = run.flat
    reference_tokeniser = tokeniser(
        run.language or "en",
        bool(flat.get("tokenizer.normalise", True)),
        bool(flat.get("tokenizer.characters", False)),
    )
    tokenised = any(flat.get(f"data.test.{test_set}.{key}") for key in ("tokenised", "grammar"))
    records = in_order(run.translations(test_set))
    return TestText(records, reference_tokeniser, tokenised, flat.get("data.languages"))


def _source_text(config: CompareConfig) -> tuple[str, TestText]:
    """Reads the test set of `source` and `reference`: its name and sentences."""
    assert config.source is not None
    if not config.reference:
        raise InputError("reference: must be given with source")
    paths = as_list(config.reference)
    source = read_texts(config.source, "source", SOURCE)
    references = [read_texts(path, "reference", REFERENCE) for path in paths]
    for path, lines in zip(paths, references, strict=True):
        if len(lines) != len(source):
            raise InputError(f"reference={path}: {len(lines)} lines, source has {len(source)}")
    languages = config.languages or [_language(config.source), _language(paths[0])]
    tokenisers = [tokeniser(each, characters=each in UNSPACED) for each in languages]
    tokens = [tokenisers[0].tokenise(line) for line in source]
    if config.lengths in ("tokens", "words"):
        words = tokens if config.lengths == "tokens" else [line.split() for line in source]
        lengths = [len(each) for each in words]
    else:
        column = _column(config, config.lengths, len(source))
        with refuse_unreadable(f"lengths={config.lengths}", f"numbers in column {config.lengths}"):
            lengths = column.astype(int).tolist()
    documents = None
    if config.document is not None:
        documents = _column(config, config.document, len(source)).astype(str).tolist()
    records = []
    for number, texts in enumerate(zip(*references, strict=True)):
        reference, *others = map(tokenisers[1].tokenise, texts)
        record = {"id": number, "source": tokens[number], "length": lengths[number]}
        record |= {"reference": reference, "raw_reference": texts[0]}
        if documents is not None:
            record["document"] = documents[number]
        records.append(record | {"more_references": others, "more_raw_references": texts[1:]})
    name = file_name(Path(config.source).name.partition(".")[0])
    return name, TestText(records, tokenisers[1], languages=languages)


def _column(config: CompareConfig, name: str, sentences: int) -> pd.Series[Any]:
    """Reads a column that describes the lines of the source: of `metadata`, else of `source`."""
    key = "source" if config.metadata is None else "metadata"
    path = str(getattr(config, key))
    column = read_table(path, key, name)[name]
    if len(column) != sentences:
        raise InputError(f"{key}={path}: {len(column)} rows, source has {sentences} lines")
    return column


def _language(path: str) -> str:
    """Reads the language from a file name, such as `fr` from `news.fr.gz`; else `en`."""
    endings = [ending.removeprefix(".") for ending in Path(path).suffixes]
    return next((each for each in reversed(endings) if each in LANGUAGES | UNSPACED), "en")


def read_texts(path: str, key: str, names: Sequence[str]) -> list[str]:
    """Reads the sentences of a plain file, or of the first column in `names` that a JSONL file has."""
    if ".jsonl" not in Path(path).suffixes:
        return [line.strip() for line in read_lines(check_file(path, key))]
    table = read_table(path, key, *names)
    column = next(name for name in names if name in table)
    texts = table[column].fillna("")  # a system may fail on a sentence
    return [" ".join(each) if isinstance(each, list) else str(each) for each in texts]


def read_table(path: str, key: str, *names: str) -> pd.DataFrame:
    """Reads a JSONL file, or a TSV file with a heading.

    Raises:
        InputError: if it cannot be read or has none of the columns `names`.
    """
    file = check_file(path, key)
    if ".jsonl" in file.suffixes:
        table = pd.DataFrame(read_rows(file))
    else:
        with refuse_unreadable(f"{key}={path}", "a table with a heading"):
            # names stay text, as "50" or "NA"; in a table of one column an empty line is a missing number
            table = pd.read_csv(
                file, sep="\t", quoting=csv.QUOTE_NONE, skip_blank_lines=False, dtype=str,
                keep_default_na=False, na_values=[""],
            )  # fmt: skip
    if not set(names) & set(table):
        raise InputError(f"{key}={path}: no column {' or '.join(names)}")
    return table


def add_scores(files: Mapping[str, Any], runs: Sequence[FinishedRun]) -> list[FromFile]:
    """Adds numbers from files to the records of runs and systems, and returns their scores.

    Args:
        files: by the name of the score, a table with a column of that name and one row per sentence
            in the order of the test set. If there are several, a column `system` names the run or
            system, and a column `set` the test set.
    """
    for name, path in files.items():
        where = f"scores.{name}={path}"
        table = read_table(str(path), f"scores.{name}", name)
        if "system" not in table:
            if len(runs) > 1:
                raise InputError(f"{where}: no column 'system', which names the system of a row")
            table["system"] = runs[0].label
        with refuse_unreadable(where, f"numbers in column {name}"):
            table[name] = pd.to_numeric(table[name])
        scored = [
            _add_column(run, test_set, table[table["system"] == run.label], name, where)
            for run in runs
            for test_set in run.sets
        ]
        if not any(scored):
            raise InputError(f"{where}: no row names one of {', '.join(r.label for r in runs)}")
    return [FromFile(name) for name in files]


def _add_column(
    run: FinishedRun, test_set: str, table: pd.DataFrame, score: str, where: str
) -> bool:
    """Adds the numbers of one run to its records of a test set, if the table has any."""
    values = (table[table["set"] == test_set] if "set" in table else table)[score]
    records = in_order(run.translations(test_set))
    if len(values) not in (0, len(records)):
        raise InputError(
            f"{where}: {len(values)} rows for the {len(records)} sentences of {run.label} on "
            f"{test_set}; name systems in a column 'system' and test sets in a column 'set'"
        )
    for record, value in zip(records, values, strict=False):
        if pd.notna(value):
            record.setdefault("statistics", {})[score] = [float(value), 1.0]
    return bool(values.notna().any())
