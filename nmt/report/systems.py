"""Other systems: their output and any scores of it, read from files.

A text is plain, one sentence a line, or JSONL, one object a line. Its test set is that of the runs,
or a source file with its references.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.config.schema import CompareConfig
from nmt.data.lines import check_file, read_lines
from nmt.data.tokenise import LANGUAGES, split, tokeniser
from nmt.evaluation.records import Record, in_order, system_record
from nmt.evaluation.scores.base import Ratio
from nmt.report.runs import FinishedRun
from nmt.report.style import file_name
from nmt.utils.errors import InputError, first_line

UNSPACED = frozenset(["zh", "ja", "th", "lo", "km", "my"])  # languages without spaces between words

# Names that the columns of JSONL have in this program, COMET, MetricX and other tools.
SOURCE = ("source", "src", "text")
REFERENCE = ("reference", "ref", "target")
OUTPUT = ("translation", "hypothesis", "mt", "target", "text")


class FromFile(Ratio):
    """A number for each sentence from another tool; the score of a set is the mean.

    Neither direction counts as better, since the file does not say which is.
    """

    higher_is_better = None
    digits = 3

    def __init__(self, key: str) -> None:
        self.key = self.title = key  # type: ignore[misc]

    def statistics(self, record: Mapping[str, Any]) -> Sequence[float] | None:
        return None  # they are stored in the record


@dataclass(frozen=True)
class TestText:
    """A test set whose sentences systems translate.

    Attributes:
        records: its sentences, without a translation (`nmt.evaluation.records`).
        read: line of a system's output -> its tokens, as the references were tokenised, and its text.
        languages: of source and reference; None if unknown.
    """

    records: list[Record]
    read: Callable[[str], tuple[list[str], str]]
    languages: tuple[str, str] | None = None


def read_systems(config: CompareConfig, runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """The systems of a configuration as runs without a folder.

    Raises:
        InputError: naming the key, if a file cannot be read, has another number of lines than its
            test set, or belongs to no test set.
    """
    own = _source_text(config) if config.source else None
    sets = [own[0]] if own else list(dict.fromkeys(name for run in runs for name in run.sets))
    systems = []
    for system, given in config.systems.items():
        if system in {run.label for run in runs}:
            raise InputError(f"systems.{system}: a run has this name; give the system another")
        if isinstance(given, str) and len(sets) != 1:
            known = ", ".join(sets) or "none; source and reference are missing"
            raise InputError(f"systems.{system}: of which test set? systems.{system}.SET; {known}")
        records, languages = {}, None
        for name, path in ({sets[0]: given} if isinstance(given, str) else given).items():
            key = f"systems.{system}.{name}"
            if name not in sets:
                raise InputError(f"{key}: no such test set; there is {', '.join(sets)}")
            text = own[1] if own else _text_of(runs, name)
            records[name] = _translated(text, read_texts(path, key, OUTPUT), key)
            languages = text.languages
        about = {"name": system, "languages": languages}
        systems.append(FinishedRun(system, about, records=records))
    return systems


def _translated(text: TestText, output: Sequence[str], key: str) -> list[Record]:
    """Records of a system's output, which has a line for each sentence or for each source line.

    Pairs with an empty side are no sentences of a test set, but have lines in the source file.
    """
    sentences = len(text.records)
    places = [record.get("line", number) - 1 for number, record in enumerate(text.records, 1)]
    if len(output) > places[-1] >= sentences:
        output = [output[place] for place in places]
    if len(output) != sentences:
        raise InputError(
            f"{key}: {len(output)} lines, but the test set has {sentences} sentences"
            f" (to line {places[-1] + 1} of its source); one translation a line is expected"
        )
    return [
        system_record(sentence, *text.read(line))
        for line, sentence in zip(output, text.records, strict=True)
    ]


def _text_of(runs: Sequence[FinishedRun], test_set: str) -> TestText:
    """A test set of the runs. Its sentences are those of a run with shortlists, where one has them."""
    scored = [run for run in runs if run.translations(test_set)]
    if not scored:
        raise InputError(f"systems: no run kept its translations of {test_set}")
    run = max(scored, key=lambda run: run.translations(test_set)[0].get("no_unk") is not None)
    flat = run.flat
    normalise, characters = (
        bool(flat.get(f"tokenizer.{key}", default))
        for key, default in (("normalise", True), ("characters", False))
    )
    moses = tokeniser(run.language or "en", normalise, characters)
    tokenised = any(flat.get(f"data.test.{test_set}.{key}") for key in ("tokenised", "grammar"))

    def read(line: str) -> tuple[list[str], str]:
        tokens = split(line) if tokenised else moses.tokenise(line)
        return tokens, moses.detokenise(tokens) if tokenised else line

    return TestText(in_order(run.translations(test_set)), read, flat.get("data.languages"))


def _source_text(config: CompareConfig) -> tuple[str, TestText]:
    """The name and the sentences of the test set that `source` and `reference` make."""
    assert config.source is not None
    if not config.reference:
        raise InputError("reference: must be given with source")
    given = config.reference
    paths = [given] if isinstance(given, str) else list(given)
    source = read_texts(config.source, "source", SOURCE)
    references = [read_texts(path, "reference", REFERENCE) for path in paths]
    for path, lines in zip(paths, references, strict=True):
        if len(lines) != len(source):
            raise InputError(f"reference={path}: {len(lines)} lines, source has {len(source)}")
    first, second = config.languages or [_language(config.source), _language(paths[0])]
    moses = {each: tokeniser(each, characters=each in UNSPACED) for each in (first, second)}
    tokens = [moses[first].tokenise(line) for line in source]
    if config.lengths in ("tokens", "words"):
        words = tokens if config.lengths == "tokens" else [line.split() for line in source]
        lengths = [len(each) for each in words]
    else:
        column = read_table(config.source, "source", config.lengths)[config.lengths]
        lengths = column.astype(int).tolist()
    records = []
    for number, (length, *texts) in enumerate(zip(lengths, *references, strict=True)):
        reference, *others = [moses[second].tokenise(text) for text in texts]
        record = {"id": number, "source": tokens[number], "length": length, "reference": reference}
        record |= {"raw_reference": texts[0]}
        records.append(record | {"more_references": others, "more_raw_references": texts[1:]})
    name = file_name(Path(config.source).name.partition(".")[0])

    def read(line: str) -> tuple[list[str], str]:
        return moses[second].tokenise(line), line

    return name, TestText(records, read, (first, second))


def _language(path: str) -> str:
    """The language that a file is named after, such as `fr` of `news.fr.gz`; else `en`."""
    endings = [ending.removeprefix(".") for ending in Path(path).suffixes]
    return next((each for each in reversed(endings) if each in LANGUAGES | UNSPACED), "en")


def read_texts(path: str, key: str, names: Sequence[str]) -> list[str]:
    """The sentences of a plain file, or of the first of the columns `names` of a JSONL file."""
    file = check_file(path, key)
    if ".jsonl" not in file.suffixes:
        return [line.strip() for line in read_lines(file)]
    table = read_table(path, key, *names)
    column = next(name for name in names if name in table)
    return [" ".join(each) if isinstance(each, list) else str(each) for each in table[column]]


def read_table(path: str, key: str, *names: str) -> pd.DataFrame:
    """A JSONL file, or a TSV file with a heading.

    Raises:
        InputError: if it cannot be read, or has none of the columns `names`.
    """
    file = check_file(path, key)
    if ".jsonl" in file.suffixes:
        rows = []
        for number, line in enumerate(read_lines(file), 1):
            try:
                rows.append(dict(json.loads(line)))
            except (ValueError, TypeError) as error:
                raise InputError(f"{path}:{number}: no object: {first_line(error)}") from error
        table = pd.DataFrame(rows)
    else:
        text = io.StringIO("\n".join(read_lines(file)))
        options = {"quoting": csv.QUOTE_NONE, "keep_default_na": False, "na_values": [""]}
        try:
            table = pd.read_csv(text, sep="\t", dtype=str, skip_blank_lines=False, **options)
        except ValueError as error:
            raise InputError(f"{path}: {first_line(error)}") from error
    if not set(names) & set(table):
        raise InputError(f"{key}={path}: no column {' or '.join(names)}")
    return table


def add_scores(files: Mapping[str, Any], runs: Sequence[FinishedRun]) -> list[FromFile]:
    """Adds numbers from files to the records of runs and systems, and returns their scores.

    Args:
        files: by the name of the score, a table with a column of that name and a row for each
            sentence in the order of the test set. A column `system` names the run or system, and a
            column `set` the test set, where there are several. Or by the name of each system, its
            own table.
    """
    for name, given in files.items():
        added = 0
        for system, path in ({None: given} if isinstance(given, str) else given).items():
            key = f"scores.{name}" + (f".{system}" if system else "")
            table = read_table(path, key, name)
            if system or (len(runs) == 1 and "system" not in table):
                table["system"] = system or runs[0].label
            if "system" not in table:
                raise InputError(f"{key}={path}: no column system; or give scores.{name}.SYSTEM=F")
            try:
                table[name] = pd.to_numeric(table[name])
            except ValueError as error:
                raise InputError(f"{path}: column {name}: {first_line(error)}") from error
            for run in runs:
                own = table[table["system"] == run.label]
                added += _add_column(run, own, name, f"{key}={path}")
        if not added:
            labels = ", ".join(run.label for run in runs)
            raise InputError(f"scores.{name}: no row names one of {labels}")
    return [FromFile(name) for name in files]


def _add_column(run: FinishedRun, table: pd.DataFrame, score: str, where: str) -> int:
    """Adds the values of one run to its records; returns how many."""
    added = 0
    for name in run.sets:
        values = (table[table["set"] == name] if "set" in table else table)[score]
        records = in_order(run.translations(name))
        if not len(values) or not records:
            continue
        if len(values) != len(records):
            raise InputError(
                f"{where}: {len(values)} rows for the {len(records)} sentences of {run.label} on "
                f"{name}; name systems in a column 'system' and test sets in a column 'set'"
            )
        for record, value in zip(records, values, strict=True):
            if pd.notna(value):
                record.setdefault("statistics", {})[score] = [float(value), 1.0]
                added += 1
    return added
