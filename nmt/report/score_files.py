"""Reads scores of sentences that other tools and people gave, from the files that they write.

The formats are: a table with a heading (TSV, or columns separated by blanks) or JSONL; mt-metrics-eval's
`NAME.seg.score` (system and score, no heading); the output of comet-score (lines, or JSON); and MQM ratings, with
a row per error (`nmt.report.ratings`).
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.evaluation.records import in_order, read_rows
from nmt.evaluation.scores import NO_UNK, REGISTERED
from nmt.report.declared_scores import SENTENCES, WORDS, FromFile, ScoreFile, declare, options_of
from nmt.report.ratings import RATERS, is_ratings, penalties
from nmt.report.released_files import IDS, MAX_SHOWN, reach
from nmt.report.runs import FinishedRun
from nmt.report.system_files import distinct_names
from nmt.text.lines import check_file, read_lines
from nmt.utils.errors import InputError, first_line
from nmt.utils.files import matching
from nmt.utils.text import as_list

COMET = re.compile(r"(.+)\tSegment (\d+)\tscore: (\S+)")
COMET_MEAN = re.compile(r".+\tscore: \S+")
MISSING = frozenset(["", "none", "nan", "null", "na"])  # lower case
MAX_SCORE = 1e100  # sums of the squares of larger numbers are not finite
# Column with the number of a paragraph in its document, from 1, where a cell is a list of scores
PARAGRAPH = "paragraph"
JOINS = ("doc", *IDS, PARAGRAPH)  # columns whose values join scores with sentences
LABELS = ("system", "set", *JOINS)
log = logging.getLogger(__name__)


def read_scores(given: Mapping[str, Any], select: Sequence[str] = ()) -> list[ScoreFile]:
    """Reads the values of each score.

    Args:
        given: the key `scores`: a file or options (`nmt.report.declared_scores`) by name of the score. The values are
            in the column FILE:COLUMN, or in the column with the name of the score. Several files, or a glob,
            have a system each.
        select: the key `select`; rows that do not match a condition on one of their columns are left out.

    Raises:
        InputError: if a file has no known format (the message shows its first lines), or an option is wrong.
    """
    read = []
    for name, value in given.items():
        if name in {*REGISTERED, NO_UNK.key}:
            raise InputError(f"scores.{name}: is a built-in score; type +scores.my_{name}={value}")
        options = options_of(name, value)
        table, rated = _read_files(name, options)
        for condition in select:
            column, equals, pattern = condition.partition("=")
            if equals and column in table:
                table = table[[fnmatchcase(str(cell), pattern) for cell in table[column]]]
        if table.empty:
            raise InputError(f"scores.{name}={options['file']}: select={select} matches no row")
        score = declare(name, options, table[name])
        read.append(ScoreFile(score, table))
        if rated and score.per == SENTENCES:
            each = f"{name}_per_word"
            score = declare(each, {**options, "per": WORDS}, table[name])
            read.append(ScoreFile(score, table.rename(columns={name: each})))
    return read


def _read_files(name: str, options: Mapping[str, Any]) -> tuple[pd.DataFrame, bool]:
    """Returns the table of all files of a score, and whether they have ratings of errors."""
    key = f"scores.{name}"
    files: list[tuple[Path, str]] = []
    for given in map(str, as_list(options["file"])):
        pattern, colon, column = given.rpartition(":")
        found = matching(pattern) if colon else []
        column = column if found else name
        found = found or matching(given) or [check_file(given, key)]
        files += [(check_file(str(file), key), column) for file in found]
    tables = []
    rated = False
    for (file, column), system in zip(
        files, distinct_names([f.name for f, _ in files]), strict=True
    ):
        try:
            rows = _rows(file, name, column)
            if rated := is_ratings(rows, name):
                table = penalties(rows, name, options.get("weights") or {})
            else:
                table = _table(rows, name)
        except ValueError as error:
            head = " | ".join(line[:80] for line in islice(read_lines(file), 3))
            raise InputError(
                f"{key}={file}: {first_line(error)}; wanted: a number per sentence in a column {column}, and "
                f"a column system (docs/compare.md lists more formats). It starts: {head}"
            ) from error
        tables.append(
            table if "system" in table or len(files) == 1 else table.assign(system=system)
        )
    return pd.concat(tables, ignore_index=True), rated


def _table(rows: Sequence[Mapping[str, Any]], name: str) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    if name not in table:
        numbers = [each for each in table if each not in LABELS and _numeric(table[each])]
        if len(numbers) != 1:
            raise ValueError(f"no column {name}")
        table = table.rename(columns={numbers[0]: name})
    if any(isinstance(value, list) for value in table[name]):  # a score per paragraph of a document
        count = [len(value) if isinstance(value, list) else 1 for value in table[name]]
        table = table.explode(name, ignore_index=True)
        table[PARAGRAPH] = [n for each in count for n in range(1, each + 1)]
    table[name] = [_number(value, name) for value in table[name]]
    if rater := next((each for each in RATERS if each in table), None):
        labels = [each for each in LABELS if each in table]
        means = table.groupby(labels, sort=False, dropna=False)[name].mean().reset_index()
        table = means.merge(table.drop(columns=[name, rater]).drop_duplicates(labels), on=labels)
    return table


def _rows(file: Path, name: str, column: str) -> list[dict[str, Any]]:
    """Returns the rows of a file; a column other than `name` is copied to `name`."""
    if ".jsonl" in file.suffixes:
        rows = read_rows(file)
        if column not in rows[0] and all(reach(row, column) is None for row in rows):
            return rows
        return [
            {k: v for k, v in row.items() if not isinstance(v, dict)} | {name: reach(row, column)}
            for row in rows
        ]
    lines = [*read_lines(file)]
    if lines and lines[0].lstrip().startswith("{"):
        scored = json.loads("\n".join(lines))
        return [{"system": key, **row} for key, rows in scored.items() for row in rows]
    if matches := [match for line in lines if (match := COMET.fullmatch(line))]:
        if len(matches) != sum(
            not COMET_MEAN.fullmatch(line) or "\tSegment " in line for line in lines
        ):
            raise ValueError("not every line is one of comet-score")
        return [{"system": match[1], "seg_id": int(match[2]), name: match[3]} for match in matches]
    if not lines:
        raise ValueError("is empty")
    separator = "\t" if "\t" in lines[0] else None  # None: blanks and tabs
    cells = [line.split(separator) if separator else line.split() or [""] for line in lines]
    heading = cells.pop(0)
    if _is_number(heading[-1]):
        cells.insert(0, heading)
        heading = ["system", name][-len(heading) :]
    for number, row in enumerate(cells, len(lines) - len(cells) + 1):
        if len(row) != len(heading):
            raise ValueError(f"line {number} has {len(row)} cells, not {len(heading)}")
    rows = [dict(zip(heading, row, strict=True)) for row in cells]
    return [{**row, name: row[column]} for row in rows] if column in heading else rows


def _number(value: Any, name: str) -> float:
    """Converts a cell to a number; a missing value is NaN."""
    if value is None or str(value).strip().lower() in MISSING:
        return math.nan
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        if abs(number := float(value)) <= MAX_SCORE:
            return number
    raise ValueError(f"not numbers in column {name}: {str(value)[:MAX_SHOWN]!r}")


def _is_number(value: Any) -> bool:
    try:
        return not math.isnan(_number(value, "")) or str(value).strip().lower() not in ("", "na")
    except ValueError:
        return False


def _numeric(values: Sequence[Any]) -> bool:
    return all(map(_is_number, values))


def add_scores(files: Sequence[ScoreFile], runs: Sequence[FinishedRun]) -> list[FromFile]:
    """Adds the values of scores to the records of runs and systems, and returns the scores.

    A column `system` names the system or its output file, and a column `set` the test set. Names may differ in
    case and in marks. Rows are joined by the ids that the source has, too; else by `seg_id` as line number; else
    they are in order.
    """
    for score, table in files:
        scored = [_add_column(run, test_set, table, score) for run in runs for test_set in run.sets]
        known = ", ".join(run.label for run in runs)
        if not any(scored):
            raise InputError(f"scores.{score.key}: its file has no row for a test set of {known}")
        if "system" in table:
            names = {each for run in runs for each in _names_of(run, table)}
            others = [str(each) for each in table["system"].unique() if each not in names]
            lacking = [run.label for run in runs if not _names_of(run, table)]
            parts = (
                [f"its file also scores {', '.join(others)}, which are not compared"]
                if others
                else []
            )
            parts += [f"it has no rows for {', '.join(lacking)}"] if lacking else []
            score.notes += [f"{score.title}: {'; '.join(parts)}."] if parts else []
    return [score for score, _ in files]


def plain_name(system: Any) -> str:
    """Returns the name of a system without what differs between files.

    >>> plain_name("Online-W"), plain_name("eTranslation.737"), plain_name("ref-A")
    ('onlinew', 'etranslation', 'refa')
    """
    return re.sub(r"[\W_]", "", re.sub(r"\.\d{3,}$", "", str(system))).lower()


def _names_of(run: FinishedRun, table: pd.DataFrame) -> set[Any]:
    """Returns the names that a table has for a run: its label or its output file, else a similar name."""
    file = Path(run.results.get("output") or run.label).name
    names = set(table["system"].unique())
    exact = {each for each in names if str(each) == run.label or Path(str(each)).name == file}
    return exact or {each for each in names if plain_name(each) == plain_name(run.label)}


def _add_column(run: FinishedRun, test_set: str, table: pd.DataFrame, score: FromFile) -> bool:
    """Adds a table's numbers for a run and a test set to the run's records; returns False if there are none."""
    if "system" in table:
        table = table[table["system"].isin(_names_of(run, table))]
    if "set" in table:
        table = table[table["set"] == test_set]
    records = in_order(run.translations(test_set))
    if not len(table) or not records:
        return False
    where = f"scores.{score.key}: {run.label} on {test_set}"
    rows: list[int | None] = list(range(len(table)))  # row of each record
    names = [each for each in JOINS if each in table and each in records[0].get("ids", {})]
    if names or "seg_id" in table:
        columns = names or ["seg_id"]
        keys = [tuple(map(str, row)) for row in table[columns].itertuples(index=False)]
        if names:
            known = [tuple(str(record["ids"][name]) for name in names) for record in records]
        else:
            first = 0 if ("0",) in keys else 1
            known = [(str(r.get("line", r["id"] + 1) - 1 + first),) for r in records]
        places = dict(zip(keys, rows, strict=True))
        if len(places) < len(keys) or len({*known}) < len(known):
            raise InputError(
                f"{where}: several rows or sentences have the same {', '.join(columns)}"
            )
        if unknown := places.keys() - {*known}:
            raise InputError(f"{where}: no sentence has {', '.join(columns)} {min(unknown)[0]}")
        rows = [places.get(each) for each in known]
    if len(rows) != len(records):
        raise InputError(
            f"scores.{score.key}: {len(rows)} rows for the {len(records)} sentences of {run.label} on "
            f"{test_set}; name systems in a column 'system' and test sets in a column 'set'"
        )
    values = table[score.key].tolist()
    if score.per not in (SENTENCES, WORDS, *table):
        raise InputError(
            f"scores.{score.key}.per={score.per}: must be words, sentences or a column of its file"
        )
    added = False
    for record, row in zip(records, rows, strict=True):
        if row is not None and not math.isnan(values[row]):
            count = 1.0 if score.per == SENTENCES else record.get("words") or len(record["source"])
            if score.per in table:
                count = _number(table[score.per].iloc[row], score.per)
            record.setdefault("statistics", {})[score.key] = [values[row], float(count)]
            added = True
    return added
