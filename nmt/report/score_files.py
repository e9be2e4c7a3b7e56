"""Reads scores of sentences that other tools and people gave, from the files that they write.

The formats are: a table with a heading (TSV, or columns separated by blanks) or JSONL; mt-metrics-eval's
`NAME.seg.score` (system and score, no heading); and the output of comet-score (lines, or JSON).
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from nmt.evaluation.records import in_order, read_rows
from nmt.evaluation.scores import NO_UNK, REGISTERED
from nmt.evaluation.scores.base import Ratio
from nmt.report.released_files import IDS, MAX_SHOWN, reach
from nmt.report.runs import FinishedRun
from nmt.text.lines import check_file, read_lines
from nmt.utils.errors import InputError, first_line

COMET = re.compile(r"(.+)\tSegment (\d+)\tscore: (\S+)")
COMET_MEAN = re.compile(r".+\tscore: \S+")
MISSING = frozenset(["", "none", "nan", "null", "na"])  # lower case
MAX_SCORE = 1e100  # sums of the squares of larger numbers are not finite
LABELS = ("system", "set", *IDS)


class FromFile(Ratio):
    """A score that another tool computed for each sentence; the score of a test set is the mean.

    `higher_is_better` is None, since the file does not say which direction is better.
    """

    higher_is_better = None
    digits = 3

    def __init__(self, key: str) -> None:
        self.key = self.title = key  # type: ignore[misc]


def read_scores(files: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Reads a table for each score; the column with the name of the score has a number per sentence.

    Raises:
        InputError: if a file has no known format. The message shows its first lines.
    """
    tables = {}
    for name, path in files.items():
        key = f"scores.{name}"
        if name in {*REGISTERED, NO_UNK.key}:
            raise InputError(f"{key}: is a built-in score; type +scores.my_{name}={path}")
        file = check_file(str(path), key)
        try:
            tables[name] = _table(file, name)
        except ValueError as error:
            head = " | ".join(line[:80] for line in islice(read_lines(file), 3))
            raise InputError(
                f"{key}={path}: {first_line(error)}; wanted: a number per sentence in a column {name}, and "
                f"a column system (docs/compare.md lists more formats). It starts: {head}"
            ) from error
    return tables


def _table(file: Path, name: str) -> pd.DataFrame:
    table = pd.DataFrame(_rows(file, name))
    if name not in table:
        numbers = [each for each in table if each not in LABELS and _numeric(table[each])]
        if len(numbers) != 1:
            raise ValueError(f"no column {name}")
        table = table.rename(columns={numbers[0]: name})
    return table.assign(**{name: [_number(value, name) for value in table[name]]})


def _rows(file: Path, name: str) -> list[dict[str, Any]]:
    if ".jsonl" in file.suffixes:
        return [row if name in row else {**row, name: reach(row, name)} for row in read_rows(file)]
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
    return [dict(zip(heading, row, strict=True)) for row in cells]


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


def add_scores(tables: Mapping[str, pd.DataFrame], runs: Sequence[FinishedRun]) -> list[FromFile]:
    """Adds numbers from files to the records of runs and systems, and returns a `FromFile` for each table.

    Args:
        tables: result of `read_scores`. A column `system` names the system or its output file, and a column
            `set` the test set. Rows are joined by the ids that the source has, too; else by `seg_id` as line
            number; else they are in order.
    """
    for name, table in tables.items():
        scored = [_add_column(run, test_set, table, name) for run in runs for test_set in run.sets]
        if not any(scored):
            known = ", ".join(run.label for run in runs)
            raise InputError(f"scores.{name}: its file has no row for a test set of {known}")
    return [FromFile(name) for name in tables]


def _add_column(run: FinishedRun, test_set: str, table: pd.DataFrame, score: str) -> bool:
    """Adds a table's numbers for a run and a test set to the run's records; returns False if there are none."""
    if "system" in table:
        file = Path(run.results.get("output") or run.label).name
        table = table[[str(s) == run.label or Path(str(s)).name == file for s in table["system"]]]
    if "set" in table:
        table = table[table["set"] == test_set]
    values = table[score]
    records = in_order(run.translations(test_set))
    if not len(values) or not records:
        return False
    ids = [name for name in IDS if name in table and name in records[0].get("ids", {})]
    where = f"scores.{score}: {run.label} on {test_set}"
    if ids or "seg_id" in table:
        names = ids or ["seg_id"]
        keys = [tuple(map(str, row)) for row in table[names].itertuples(index=False)]
        if ids:
            known = [tuple(str(record["ids"][name]) for name in ids) for record in records]
        else:
            first = 0 if ("0",) in keys else 1
            known = [(str(r.get("line", r["id"] + 1) - 1 + first),) for r in records]
        by_id = dict(zip(keys, values, strict=True))
        if len(by_id) < len(keys) or len({*known}) < len(known):
            raise InputError(f"{where}: several rows or sentences have the same {', '.join(names)}")
        if unknown := by_id.keys() - {*known}:
            raise InputError(f"{where}: no sentence has {', '.join(names)} {min(unknown)[0]}")
        values = pd.Series([by_id.get(each, math.nan) for each in known])
    if len(values) != len(records):
        raise InputError(
            f"scores.{score}: {len(values)} rows for the {len(records)} sentences of {run.label} on "
            f"{test_set}; name systems in a column 'system' and test sets in a column 'set'"
        )
    for record, value in zip(records, values, strict=True):
        if pd.notna(value):
            record.setdefault("statistics", {})[score] = [float(value), 1.0]
    return bool(values.notna().any())
