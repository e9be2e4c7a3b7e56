"""Reads scores of sentences that other tools and people gave, from the files that they write.

The formats are: a table with a heading (TSV, or columns separated by blanks) or JSONL; mt-metrics-eval's
`NAME.seg.score` (system and score, no heading); the output of comet-score (lines, or JSON); and MQM ratings, with
a row per error (`nmt.report.ratings`).
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.config.loading import section
from nmt.evaluation.records import in_order, read_rows
from nmt.evaluation.scores import NO_UNK, REGISTERED
from nmt.report import ratings
from nmt.report.declared_scores import SENTENCES, WORDS, FromFile, ScoreOptions, declare
from nmt.report.released_files import IDS, MAX_SHOWN
from nmt.report.runs import FinishedRun
from nmt.report.system_files import distinct_names
from nmt.text.lines import check_file, read_lines
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import matching
from nmt.utils.text import as_list

COMET, COMET_MEAN = re.compile(r"\tSegment (\d+)\tscore: "), re.compile(r"[^\t]+\tscore: \S+")
MISSING = ("", "none", "nan", "null", "na")  # lower case
MAX_SCORE = 1e100  # sums of the squares of larger numbers are not finite
RATERS = ("rater", "annotator", "user")
# Column with the number of a paragraph in its document, from 1, where a cell is a list of scores
PARAGRAPH = "paragraph"
JOINS = ("doc", *IDS, PARAGRAPH)  # columns whose values join scores with sentences
LABELS = ("system", "set", *JOINS)


def read_scores(given: Mapping[str, Any], select: Sequence[str] = ()) -> list[FromFile]:
    """Reads the values of each score.

    Args:
        given: the key `scores`: a file or `ScoreOptions` by name of the score. The values are in the column
            FILE:COLUMN, or in the column with the name of the score. Several files, or a glob, have a system each.
        select: the key `select`; rows that do not match a condition on one of their columns are left out.

    Raises:
        InputError: if a file has no known format (the message shows its first lines), or an option is wrong.
    """
    scores = []
    for name, value in given.items():
        if name in {*REGISTERED, NO_UNK.key}:
            raise InputError(f"scores.{name}: is a built-in score; type +scores.my_{name}={value}")
        entries = value if isinstance(value, Mapping) else {"file": value}
        options = section(ScoreOptions, entries, f"scores.{name}.")
        table, rated = _read_files(name, options)
        for condition in select:
            column, equals, pattern = condition.partition("=")
            if equals and column in table:
                table = table[[fnmatchcase(str(cell), pattern) for cell in table[column]]]
        if table.empty:
            raise InputError(f"scores.{name}={options.file}: select={select} matches no row")
        scores.append(declare(name, options, table))
        if rated and options.per == SENTENCES:
            each = f"{name}_per_word"
            options = dataclasses.replace(options, per=WORDS)
            scores.append(declare(each, options, table.rename(columns={name: each})))
    return scores


def _read_files(name: str, options: ScoreOptions) -> tuple[pd.DataFrame, bool]:
    """Returns the table of all files of a score, and whether they have ratings of errors."""
    key = f"scores.{name}"
    files: list[tuple[Path, str | None]] = []  # None: no column is named
    for given in map(str, as_list(options.file)):
        pattern, _, last = given.rpartition(":")
        found = matching(pattern) if pattern else []
        files += [(file, last) for file in found]
        files += [(file, None) for file in matching(given) or [Path(given)] if not found]
    tables = []
    systems = distinct_names([file.name for file, _ in files])
    for (path, column), system in zip(files, systems, strict=True):
        file = check_file(str(path), key)
        try:
            table = _parse(file, name)
            rated = not column and name not in table and {*table} >= ratings.COLUMNS
            if rated:
                table = ratings.penalties(table, name, options.weights)
            table = _with_numbers(table, name, column, options.per)
        except ValueError as error:
            head = " | ".join(line[:80] for line in islice(read_lines(file), 3))
            raise InputError(
                f"{key}={file}: {first_line(error)}; wanted: a number per sentence in a column {column or name}, and "
                f"a column system (docs/compare.md lists more formats). It starts: {head}"
            ) from error
        alone = "system" in table or len(files) == 1
        tables.append(table if alone else table.assign(system=system))
    return pd.concat(tables, ignore_index=True), rated


def _parse(file: Path, name: str) -> pd.DataFrame:
    """Returns the rows of a file; a column inside an object has a dotted name."""
    if ".jsonl" in file.suffixes:
        return pd.json_normalize(read_rows(file))
    lines = [*read_lines(file)]
    first = lines[0] if lines else ""
    if first.lstrip().startswith("{"):
        scored = json.loads("\n".join(lines))
        return pd.DataFrame(
            [{"system": key, **row} for key, rows in scored.items() for row in rows]
        )
    separator = "\t" if "\t" in first else None  # None: blanks and tabs
    cells = [
        (number, COMET.sub(r"\t\1\t", line).split(separator) or [""])
        for number, line in enumerate(lines, 1)
        if not COMET_MEAN.fullmatch(line)
    ]
    heading = cells[0][1] if cells else [""]
    if len(heading) <= 3 and _is_numeric(pd.Series(heading[-1:])):
        heading = [*("system", "seg_id")[: len(heading) - 1], name]
    else:
        del cells[:1]
    for number, row in cells:
        if len(row) != len(heading):
            raise ValueError(f"line {number} has {len(row)} cells, not {len(heading)}")
    return pd.DataFrame([row for _, row in cells], columns=heading)


def _with_numbers(table: pd.DataFrame, name: str, column: str | None, per: str) -> pd.DataFrame:
    """Returns a table with a row per sentence and system, and the scores in the column `name`.

    A list of scores becomes a row per paragraph. Scores of several raters are averaged.

    Args:
        column: column of the scores. None: the column `name`, else the only column of numbers.

    Raises:
        ValueError: if there is no column of numbers for the score.
    """
    if column is None and name not in table:
        numeric = [each for each in table if each not in LABELS and _is_numeric(table[each])]
        column = numeric[0] if len(numeric) == 1 else None
    column = column or name
    if column not in table:
        raise ValueError(f"no column {column}")
    table = table.assign(**{name: table[column]})
    if any(isinstance(value, list) for value in table[name]):
        table = table.explode(name)
        table[PARAGRAPH] = table.groupby(level=0).cumcount() + 1
    for each in dict.fromkeys([name, per]) if per not in (SENTENCES, WORDS) else [name]:
        if each not in table:
            raise ValueError(f"{per=}: must be words, sentences or a column")
        table[each] = _numbers(table[each])
    if any(rater in table for rater in RATERS):
        labels = [each for each in LABELS if each in table]
        means = {each: "first" for each in table if each not in labels} | {name: "mean"}
        table = table.groupby(labels, sort=False, dropna=False, as_index=False).agg(means)
    return table


def _numbers(cells: pd.Series) -> pd.Series:
    """Converts cells to numbers; missing values are NaN. Raises ValueError with the first other cell."""
    texts = cells.map(str).str.strip()
    numbers = pd.to_numeric(texts, errors="coerce")
    for text in texts[~(numbers.abs() <= MAX_SCORE) & ~texts.str.lower().isin(MISSING)][:1]:
        raise ValueError(f"not numbers in column {cells.name}: {text[:MAX_SHOWN]!r}")
    return numbers


def _is_numeric(cells: pd.Series) -> bool:
    try:
        return len(_numbers(cells)) > 0 and not cells.map(str).isin(["", "NA"]).all()
    except ValueError:
        return False


def add_scores(scores: Sequence[FromFile], runs: Sequence[FinishedRun]) -> None:
    """Adds the values of scores to the records of runs and systems.

    A column `system` names the system or its output file, and a column `set` the test set. Names may differ in
    case and in marks. Rows are joined by the ids that the source has, too; else by `seg_id` as line number; else
    they are in order.
    """
    for score in scores:
        own = {run.label: _rows_of(run, score.values, runs) for run in runs}
        added = [_join(score, run, name, own[run.label]) for run in runs for name in run.sets]
        if not any(added):
            known = ", ".join(own)
            raise InputError(f"scores.{score.key}: its file has no row for a test set of {known}")
        if "system" in score.values:
            systems = score.values["system"]
            others = systems[~systems.isin(pd.concat(own.values())["system"])].unique()
            lacking = [label for label, rows in own.items() if rows.empty]
            if len(others):
                names = ", ".join(map(str, others))
                score.notes.append(f"{score.title}: its file also scores {names}, not compared.")
            if lacking:
                score.notes.append(f"{score.title}: no rows for {', '.join(lacking)}.")


def plain_name(system: Any) -> str:
    """Returns the name of a system without what differs between files.

    >>> plain_name("Online-W"), plain_name("eTranslation.737"), plain_name("ref-A")
    ('onlinew', 'etranslation', 'refa')
    """
    return re.sub(r"[\W_]", "", re.sub(r"\.\d{3,}$", "", str(system))).lower()


def _rows_of(run: FinishedRun, table: pd.DataFrame, runs: Sequence[FinishedRun]) -> pd.DataFrame:
    """Returns the rows of a run, by its label or its output file, else by a similar name that only one system has."""
    if "system" not in table:
        return table
    systems = table["system"].map(str)
    names = systems.unique()
    found = [name for name in names if _names(name, run)]
    if not found:
        plain = plain_name(run.label)
        found = [name for name in names if plain_name(name) == plain]
        similar = [other for other in runs if plain_name(other.label) == plain]
        taken = any(_names(name, other) for name in found for other in runs)
        if taken or len(found) > 1 or len(similar) > 1:
            found = []
    return table[systems.isin(found)]


def _names(system: str, run: FinishedRun) -> bool:
    """Tells whether the name of a system in a table is the label or the output file of a run."""
    file = Path(run.results.get("output") or run.label).name
    return system == run.label or Path(system).name == file


def _join(score: FromFile, run: FinishedRun, test_set: str, table: pd.DataFrame) -> bool:
    """Adds the numbers of a run for a test set to the run's records; returns False if there are none."""
    whole = score.values
    if "set" in table:
        table, whole = (each[each["set"] == test_set] for each in (table, whole))
    records = in_order(run.translations(test_set))
    if not len(table) or not records:
        return False
    where = f"scores.{score.key}: {run.label} on {test_set}"
    columns = [each for each in JOINS if each in table and each in records[0].get("ids", {})]
    wanted = [tuple(str(record["ids"][each]) for each in columns) for record in records if columns]
    if not columns and "seg_id" in table:
        columns = ["seg_id"]
        # Ids start at 0 if any system has a row 0. A row of one system may be missing.
        present = set(map(str, whole["seg_id"].unique()))
        before = int("0" in present)
        wanted = [(str(record.get("line", record["id"] + 1) - before),) for record in records]
        last = records[-1].get("line", records[-1]["id"] + 1)
        if not {"0", str(last)} & present:
            note = f"{score.title}: no row has seg_id 0 or {last}; ids are taken to start at 1."
            score.notes += [note] if note not in score.notes else []
    if columns:
        ids = pd.Index(wanted, tupleize_cols=False)
        known = table[columns].map(str).itertuples(index=False, name=None)
        table = table.set_index(pd.Index([*known], tupleize_cols=False))
        if not (table.index.is_unique and ids.is_unique):
            raise InputError(f"{where}: rows or sentences share {', '.join(columns)}")
        if unknown := {*table.index} - {*ids}:
            raise InputError(f"{where}: no sentence has {', '.join(columns)} {min(unknown)[0]}")
        table = table.reindex(ids)
    if len(table) != len(records):
        raise InputError(
            f"scores.{score.key}: {len(table)} rows for the {len(records)} sentences of {run.label} on "
            f"{test_set}; name systems in a column 'system' and test sets in a column 'set'"
        )
    counts = [1.0] * len(records)
    if score.per == WORDS:
        counts = [float(record.get("words") or len(record["source"])) for record in records]
    elif score.per != SENTENCES:
        counts = table[score.per].tolist()
    values = table[score.key]
    for record, value, count in zip(records, values.tolist(), counts, strict=True):
        if pd.notna(value):
            record.setdefault("statistics", {})[score.key] = [value, count]
    return bool(values.notna().any())
