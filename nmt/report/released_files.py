"""Reads the files of a test set as they are released, and finds which rows belong together.

A file is plain text with one text per line, JSONL with one object per line, or TSV with a heading. Its rows are
dictionaries; the column of plain text is `text`. A dotted name such as `refs.refA.ref` reaches into objects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nmt.evaluation.records import read_rows
from nmt.text.lines import check_file, read_lines
from nmt.utils.errors import InputError
from nmt.utils.text import counted

# The first name that a file has is its column of texts. docs/compare.md lists these names.
SOURCE = ("source", "src", "src_text", "text")
REFERENCE = ("reference", "ref", "refs.refA.ref", "target", "tgt_text", "text")
OUTPUT = ("translation", "hypothesis", "mt", "translation.text", "target", "text")
IDS = ("doc_id", "docid", "document_id", "id", "seg_id")  # columns whose values join rows
LINE = "line"  # value of the key `id`: rows are joined by their line number
MAX_SHOWN = 60  # maximum number of characters of a value in a message


@dataclass(frozen=True, eq=False)
class ReleasedFile:
    """The rows of a file, all or selected."""

    path: str
    rows: Sequence[Mapping[str, Any]]
    lines: Sequence[int]  # line number of each row
    total: int  # number of rows in the file
    column: str = ""  # column to read, from FILE:COLUMN

    @property
    def is_plain(self) -> bool:
        """Whether the file is plain text, which has no columns."""
        return not self.rows or self.rows[0].keys() == {"text"}

    def has(self, name: str) -> bool:
        return not self.is_plain and any(reach(row, name) is not None for row in self.rows)

    def values(self, name: str, key: str) -> list[Any]:
        """Returns a column; raises InputError if no row has it."""
        if not self.has(name):
            raise InputError(f"{key}: {self.path} has no column {name}{self._columns()}")
        return [reach(row, name) for row in self.rows]

    def texts(self, names: Sequence[str], key: str) -> list[str]:
        """Returns the texts in the first column of `names` that the file has.

        Raises:
            InputError: if the file has none of the columns, or if a value is not text. The message names the
                file and the line.
        """
        names = [self.column] if self.column else names
        first = self.rows[0] if self.rows else {names[0]: ""}
        present = [name for name in names if name in first or reach(first, name) is not None]
        if not present:
            raise InputError(
                f"{key}={self.path}: no column {', '.join(names)}{self._columns()}; type FILE:COLUMN"
            )
        name = next((each for each in present if _text(reach(first, each)) is not None), present[0])
        texts = []
        for line, row in zip(self.lines, self.rows, strict=True):
            if (text := _text(value := reach(row, name))) is None:
                shown = json.dumps(value, default=str)[:MAX_SHOWN] if name in row else "missing"
                raise InputError(f"{self.path}:{line}: {name} is {shown}; it must be a text")
            texts.append(text.strip())
        return texts

    def select(self, kept: Sequence[int]) -> ReleasedFile:
        """Returns the file with some of its rows."""
        rows = [self.rows[n] for n in kept]
        return replace(self, rows=rows, lines=[self.lines[n] for n in kept])

    def _columns(self) -> str:
        names = list(self.rows[0]) if self.rows else []
        return f"; it has {', '.join(names)}"[:200] if names else ""


def reach(row: Any, name: str) -> Any:
    """Returns the value of a column, or None.

    >>> reach({"refs": {"refA": {"ref": "a dog"}}}, "refs.refA.ref")
    'a dog'
    """
    if not isinstance(row, Mapping):
        return None
    if name in row:
        return row[name]
    first, dot, rest = name.partition(".")
    return reach(row.get(first), rest) if dot else None


def _text(value: Any) -> str | None:
    """Returns a text, or a list of tokens as text; otherwise None. Lone surrogates become U+FFFD."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = " ".join(value)
    if not isinstance(value, str):
        return None
    return (
        value
        if value.isascii()
        else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )


def read_file(path: str, key: str) -> ReleasedFile:
    """Reads a text, JSONL or TSV file; FILE:COLUMN names the column of its texts.

    Raises:
        InputError: if the file cannot be read; the message names `key`, or the file and the line.
    """
    name, colon, column = path.rpartition(":")
    named = bool(colon) and Path(name).expanduser().is_file()
    file = check_file(name if named else path, key)
    rows, first = _parse(file)
    lines = range(first, first + len(rows))
    return ReleasedFile(str(file), rows, lines, len(rows), column if named else "")


def _parse(file: Path) -> tuple[list[dict[str, Any]], int]:
    """Returns the rows, and the line number of the first one."""
    if ".jsonl" in file.suffixes:
        return [_with_parts(row) for row in read_rows(file)], 1
    if ".tsv" not in file.suffixes:
        return [{"text": line} for line in read_lines(file)], 1
    cells = (line.split("\t") for line in read_lines(file))
    heading = next(cells, [])
    rows = []
    for number, row in enumerate(cells, 2):
        if len(row) != len(heading):
            raise InputError(
                f"{file}:{number}: {counted(len(row), 'cell')}; its heading has {len(heading)}"
            )
        rows.append(dict(zip(heading, row, strict=True)))
    return rows, 2


def _with_parts(row: dict[str, Any]) -> dict[str, Any]:
    """Adds the parts of WMT's ids as columns, if the row lacks them.

    >>> _with_parts({"doc_id": "en-ru_RU_#_speech_#_vid_27k"})["document_id"]
    '27k'
    """
    parts = str(row.get("doc_id")).split("_#_")
    if len(parts) != 3:
        return row
    pair, domain, document = parts
    names = {"language_pair": pair, "domain": domain, "document_id": document.removeprefix("vid_")}
    return names | row


def selected_rows(conditions: Sequence[str], files: Sequence[ReleasedFile]) -> list[int]:
    """Returns the indices of the rows that match every condition, such as `doc_id=en-ru_RU*`.

    Args:
        files: files with corresponding rows; the first one that has the column is used.
    """
    kept = list(range(len(files[0].rows)))
    for condition in conditions:
        name, equals, pattern = condition.partition("=")
        file = next((each for each in files if each.has(name)), files[0])
        values = file.values(name, f"select={condition}")
        kept = [n for n in kept if equals and fnmatchcase(str(values[n]), pattern)]
        if not kept:
            shown = ", ".join(sorted({str(each)[:MAX_SHOWN] for each in values})[:5])
            raise InputError(f"select={condition}: matches no row; {name} is {shown}, …")
    return kept


def shared_ids(file: ReleasedFile, other: ReleasedFile, name: str | None) -> list[str]:
    """Returns the columns that join the rows of two files; [] if rows are joined by their line.

    Args:
        name: the key `id`.
    """
    if name == LINE:
        return []
    if name:
        wanted = [each for each in (file, other) if set(each.rows[0]) != {"text"}]
        return (
            [name] if len(wanted) == 2 and all(each.values(name, "id") for each in wanted) else []
        )
    return [each for each in IDS if file.has(each) and other.has(each)]


Groups = list[tuple[list[int], list[int]]]


def rows_within(file: ReleasedFile, other: ReleasedFile, names: Sequence[str]) -> ReleasedFile:
    """Returns the rows of `other` whose id is in `file`."""
    known = {_id(row, names) for row in file.rows}
    return other.select([n for n, row in enumerate(other.rows) if _id(row, names) in known])


def join_rows(file: ReleasedFile, other: ReleasedFile, names: Sequence[str]) -> Groups:
    """Groups the rows of two files that have the same id.

    Args:
        names: result of `shared_ids`, not empty.

    Returns:
        The indices of the rows of each group in `file` and in `other`.

    Raises:
        InputError: if a row has no partner; the message names its file, line and id.
    """
    groups: dict[tuple[str, ...], tuple[list[int], list[int]]] = {}
    for n, row in enumerate(file.rows):
        groups.setdefault(_id(row, names), ([], []))[0].append(n)
    for n, row in enumerate(other.rows):
        if (group := groups.get(_id(row, names))) is None:
            raise InputError(_unmatched(other, n, names, file))
        group[1].append(n)
    for rows, others in groups.values():
        if not others:
            raise InputError(_unmatched(file, rows[0], names, other))
    return list(groups.values())


def _id(row: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(reach(row, name)) for name in names)


def _unmatched(file: ReleasedFile, n: int, names: Sequence[str], other: ReleasedFile) -> str:
    identity = ", ".join(f"{name}={reach(file.rows[n], name)}" for name in names)
    return (
        f"{file.path}:{file.lines[n]}: {other.path} has no row with {identity}; "
        "type id=COLUMN to join by another column, or id=line to join by line"
    )


def paired_rows(file: ReleasedFile, other: ReleasedFile, key: str, name: str | None) -> list[int]:
    """Returns for each row of `file` the index of its row in `other`, by id or else by line.

    Raises:
        InputError: if a row of either file has no partner.
    """
    names = shared_ids(file, other, name)
    if not names:
        if len(other.rows) != len(file.rows):
            raise InputError(
                f"{key}={other.path}: {len(other.rows)} lines, source has {len(file.rows)}"
            )
        return list(range(len(file.rows)))
    partner: dict[int, int] = {}
    for rows, others in join_rows(file, other, names):
        if len(rows) != len(others):
            raise InputError(
                f"{key}={other.path}: {counted(len(others), 'row')} with "
                f"{names[0]}={reach(file.rows[rows[0]], names[0])}; source has {len(rows)}"
            )
        partner |= dict(zip(rows, others, strict=True))
    return [partner[n] for n in range(len(file.rows))]
