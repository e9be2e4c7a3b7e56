"""Reads the output of other systems, and the scores of this output, from files.

A file is plain text with one sentence per line, JSONL with one object per line, or TSV with a heading. The
output translates a test set of the runs, or a source file that has references.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from nmt.config.commands import CompareConfig
from nmt.evaluation.length_curve import LengthScale, fitting_scale
from nmt.evaluation.records import Record, bleu_statistics, in_order, system_record
from nmt.evaluation.scores.base import Ratio
from nmt.report.retention import ADJUSTED
from nmt.report.runs import FinishedRun
from nmt.report.system_files import (
    OUTPUT,
    REFERENCE,
    SOURCE,
    find_languages,
    name_systems,
    read_table,
    read_texts,
)
from nmt.text.tokenise import UNSPACED_LANGUAGES, Tokeniser, count_words, split, tokeniser
from nmt.utils.errors import InputError
from nmt.utils.files import refuse_unreadable
from nmt.utils.processes import map_in_processes
from nmt.utils.progress import Stage
from nmt.utils.text import as_list, file_name

DESCRIBED = ("document", "domain")  # keys that select a column with a property of each source line
NO_TABLES: Mapping[str, pd.DataFrame] = MappingProxyType({})
WINDOW = 10  # `first_misfit` compares this many lines before and after a line


class FromFile(Ratio):
    """A score that another tool computed for each sentence; the score of a test set is the mean.

    `higher_is_better` is None, since the file does not say which direction is better.
    """

    higher_is_better = None
    digits = 3

    def __init__(self, key: str) -> None:
        self.key = self.title = key  # type: ignore[misc]


@dataclass(frozen=True)
class TestText:
    """A test set that other systems have translated."""

    records: list[Record]  # the sentences, without translations (`nmt.evaluation.records`)
    reference_tokeniser: Tokeniser
    tokenised: bool = False  # whether the outputs are tokenised
    languages: Sequence[str] | None = None  # source and target language

    def aligned(self, lines: Sequence[str], key: str) -> Sequence[str]:
        """Returns one output line per sentence of the test set.

        `lines` has one line per sentence, or one per line of the source file. Pairs with an empty source
        or reference have a line in the source file, but are not in the test set.
        """
        sentences = len(self.records)
        indices = [record.get("line", number) - 1 for number, record in enumerate(self.records, 1)]
        if len(lines) > indices[-1] >= sentences:
            lines = [lines[index] for index in indices]
        if len(lines) != sentences:
            misfit = first_misfit(
                [self.tokens(line) for line in lines], [each["reference"] for each in self.records]
            )
            raise InputError(
                f"{key}: {len(lines)} lines, but the test set has {sentences} sentences (to line "
                f"{indices[-1] + 1} of its source); from line {misfit} on, lines fit the references "
                "of neighbouring lines better: look there for an added or a missing line"
            )
        return lines

    def tokens(self, line: str) -> list[str]:
        """Splits a line of output into words, like the references."""
        return split(line) if self.tokenised else self.reference_tokeniser.tokenise(line)


class SystemOutput(NamedTuple):
    """The lines that a system wrote for the sentences of a test set."""

    run: FinishedRun
    test_set: str
    text: TestText
    lines: Sequence[str]

    def parts(self) -> list[tuple[list[str], str, list[int]]]:
        """Returns the tokens, the text and the ten BLEU statistics of each line."""
        parts = []
        for sentence, line in zip(self.text.records, self.lines, strict=True):
            tokens = self.text.tokens(line)
            text = self.text.reference_tokeniser.detokenise(tokens) if self.text.tokenised else line
            parts.append((tokens, text, bleu_statistics(sentence, tokens)))
        return parts


def first_misfit(outputs: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> int:
    """Returns the number of the first line (from 1) at which outputs no longer match their references.

    Outputs before this line share words with their own reference. Later outputs share words with the previous
    reference (if a line was added) or with the next reference (if a line is missing).

    >>> first_misfit([["a"], ["b"], ["b2"], ["c"], ["d"]], [["a"], ["b"], ["c"], ["d"]])
    3
    """
    shift = 1 if len(outputs) > len(references) else -1

    def similarity(output: int, reference: int) -> float:
        if not (0 <= output < len(outputs) and 0 <= reference < len(references)):
            return 0.0
        shared = Counter(outputs[output]) & Counter(references[reference])
        return 2 * shared.total() / max(1, len(outputs[output]) + len(references[reference]))

    own = np.array([similarity(i, i) for i in range(len(references))])
    shifted = np.array([similarity(i + shift, i) for i in range(len(references))])
    before = np.convolve(own, np.ones(WINDOW))[: len(own)]  # sums over WINDOW lines
    after = np.convolve(shifted[::-1], np.ones(WINDOW))[: len(own)][::-1]
    scores = np.concatenate([[0.0], before]) + np.concatenate([after, [0.0]])
    return int(np.argmax(scores)) + 1


def read_systems(
    config: CompareConfig,
    runs: Sequence[FinishedRun],
    tables: Mapping[str, pd.DataFrame] = NO_TABLES,
) -> list[FinishedRun]:
    """Reads the systems of a configuration as runs without a folder.

    Args:
        tables: result of `read_scores`. They are checked before the texts are read.

    Raises:
        InputError: if a file cannot be read or has the wrong number of lines, if a test set is unknown, or if
            a table lacks a required column `system`. The message names the key.
    """
    of_source = ("reference", "languages", "lengths", "edges", "short", "long", "metadata")
    given = [key for key in (*of_source, *DESCRIBED) if getattr(config, key)]
    if given and not config.source:
        raise InputError(f"{given[0]}: describes a text of source=FILE; add source=FILE")
    own, scale = _source_text(config) if config.source else ({}, None)
    sets = list(own or dict.fromkeys(name for run in runs for name in run.sets))
    systems = []
    outputs: list[SystemOutput] = []
    both = [name for name in own if any(name in run.sets for run in runs)]
    if both and (described := [key for key in DESCRIBED if getattr(config, key)]):
        raise InputError(f"{described[0]}: does not apply to runs on {both[0]}; omit it or runs=")
    named = name_systems(config.systems or {}, sets)
    for score, table in tables.items() if len(runs) + len(named) > 1 else ():
        if "system" not in table:
            raise InputError(f"scores.{score}: no column 'system', which names the system of a row")
    for system, files in named.items():
        if system in {run.label for run in runs}:
            raise InputError(f"systems.{system}: a run has this name; use another")
        run = FinishedRun(system, {"name": system}, records={key: [] for key in sorted(files)})
        for name, output in files.items():
            key = f"systems.{system}.{name}"
            text = own[name] if own else _text_of(runs, name)
            if output.column:
                lines = read_texts(output.file, "systems", [output.column])
            else:
                lines = read_texts(output.file, key, OUTPUT)
            outputs.append(SystemOutput(run, name, text, text.aligned(lines, key)))
            run.results["languages"] = text.languages
            if scale is not None:
                run.scales[name] = scale
        systems.append(run)
    with Stage("reading systems", len(outputs), "file", shown=bool(outputs)) as stage:
        parts = map_in_processes(
            SystemOutput.parts, outputs, sum(len(each.lines) for each in outputs)
        )
        for (run, name, text, _), of_lines in zip(outputs, parts, strict=True):
            run.records[name] = [
                system_record(sentence, *of_line)
                for sentence, of_line in zip(text.records, of_lines, strict=True)
            ]
            stage.advance()
    return systems


def _text_of(runs: Sequence[FinishedRun], test_set: str) -> TestText:
    """Returns a test set of the runs; its sentences come from a run with shortlists, if there is one."""
    scored = [run for run in runs if run.translations(test_set)]
    if not scored:
        raise InputError(f"systems: no run has stored translations of {test_set}")
    run = max(scored, key=lambda run: run.translations(test_set)[0].get("no_unk") is not None)
    flat = run.flat
    reference_tokeniser = tokeniser(run.language or "en")
    tokenised = any(flat.get(f"data.test.{test_set}.{key}") for key in ("tokenised", "grammar"))
    records = in_order(run.translations(test_set))
    return TestText(records, reference_tokeniser, tokenised, flat.get("data.languages"))


def _source_text(config: CompareConfig) -> tuple[dict[str, TestText], LengthScale]:
    """Reads `source` and `reference`; returns the test set, by name, and its scale of lengths."""
    assert config.source is not None
    if not config.reference:
        raise InputError("reference: must be given with source")
    paths = as_list(config.reference)
    source = read_texts(config.source, "source", SOURCE)
    if not source:
        raise InputError(f"source={config.source}: has no lines")
    references = [read_texts(path, "reference", REFERENCE) for path in paths]
    for path, lines in zip(paths, references, strict=True):
        if len(lines) != len(source):
            raise InputError(f"reference={path}: {len(lines)} lines, source has {len(source)}")
    languages = config.languages or find_languages(config.source, paths[0])
    source_tokeniser, reference_tokeniser = map(tokeniser, languages)
    tokens = [source_tokeniser.tokenise(line) for line in source]
    unit, lengths = _measure_lengths(config, source, tokens, languages[0])
    scale = fitting_scale(lengths, unit)
    scale = replace(
        scale,
        short=config.short or scale.short,
        long=config.long or scale.long,
        edges=config.edges or scale.edges,
    )
    if scale.long <= scale.short:
        raise InputError(f"short={scale.short}: must be below long={scale.long}")
    described = {
        key: _names(config, key, len(source))
        for key in DESCRIBED
        if getattr(config, key) is not None
    }
    records = []
    for number, texts in enumerate(zip(*references, strict=True)):
        reference, *others = map(reference_tokeniser.tokenise, texts)
        record = {"id": number, "source": tokens[number], "length": lengths[number]}
        record |= {"reference": reference, "raw_reference": texts[0]}
        record |= {key: names[number] for key, names in described.items()}
        records.append(record | {"more_references": others, "more_raw_references": texts[1:]})
    name = file_name(Path(config.source).name.partition(".")[0])
    return {name: TestText(records, reference_tokeniser, languages=languages)}, scale


def _measure_lengths(
    config: CompareConfig, source: Sequence[str], tokens: Sequence[Sequence[str]], language: str
) -> tuple[str, list[int]]:
    """Returns the unit of length, and the length of each source line in this unit."""
    unit = config.lengths or ("characters" if language in UNSPACED_LANGUAGES else "words")
    if unit == "tokens":
        return unit, [len(each) for each in tokens]
    if unit in ("words", "characters"):
        return unit, [count_words(line, unit == "characters") for line in source]
    column = _column(config, unit, len(source))
    with refuse_unreadable(f"lengths={unit}", f"numbers in column {unit}"):
        return unit, column.astype(int).tolist()


def _names(config: CompareConfig, key: str, sentences: int) -> list[str]:
    """Reads the column that `document` or `domain` selects; every source line needs a name in it."""
    name = getattr(config, key)
    column = _column(config, name, sentences)
    if (empty := column.isna() | (column == "")).any():
        raise InputError(f"{key}={name}: row {int(empty.argmax()) + 1} names no {key}")
    names = column.astype(str).tolist()
    if key == "domain" and (taken := {"all", ADJUSTED} & {*names}):
        raise InputError(f"domain={name}: the name {min(taken)} is reserved; rename this domain")
    return names


def _column(config: CompareConfig, name: str, sentences: int) -> pd.Series[Any]:
    """Reads a column that describes the source lines, from `metadata` if given, else from `source`."""
    key = "source" if config.metadata is None else "metadata"
    path = str(getattr(config, key))
    column = read_table(path, key, name)[name]
    if len(column) != sentences:
        raise InputError(f"{key}={path}: {len(column)} rows, source has {sentences} lines")
    return column


def read_scores(files: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Reads a table for each score; the column with the name of the score has a number per sentence.

    If there are several runs or systems, a column `system` must name the system of each row.
    """
    tables = {}
    for name, path in files.items():
        table = read_table(str(path), f"scores.{name}", name)
        with refuse_unreadable(f"scores.{name}={path}", f"numbers in column {name}"):
            tables[name] = table.assign(**{name: pd.to_numeric(table[name])})
    return tables


def add_scores(tables: Mapping[str, pd.DataFrame], runs: Sequence[FinishedRun]) -> list[FromFile]:
    """Adds numbers from files to the records of runs and systems, and returns a `FromFile` for each table.

    Args:
        tables: result of `read_scores`. The rows of a system are in the order of its test set. If there
            are several test sets, a column `set` names the test set of each row.
    """
    for name, table in tables.items():
        scored = [_add_column(run, test_set, table, name) for run in runs for test_set in run.sets]
        if not any(scored):
            known = ", ".join(run.label for run in runs)
            raise InputError(f"scores.{name}: its file has no row for a test set of {known}")
    return [FromFile(name) for name in tables]


def _add_column(run: FinishedRun, test_set: str, table: pd.DataFrame, score: str) -> bool:
    """Adds a table's numbers for a run and a test set to the run's records; returns False if there are none."""
    for column, name in (("system", run.label), ("set", test_set)):
        table = table[table[column] == name] if column in table else table
    values = table[score]
    records = in_order(run.translations(test_set))
    if len(values) not in (0, len(records)):
        raise InputError(
            f"scores.{score}: {len(values)} rows for the {len(records)} sentences of {run.label} on "
            f"{test_set}; name systems in a column 'system' and test sets in a column 'set'"
        )
    for record, value in zip(records, values, strict=False):
        if pd.notna(value):
            record.setdefault("statistics", {})[score] = [float(value), 1.0]
    return bool(values.notna().any())
