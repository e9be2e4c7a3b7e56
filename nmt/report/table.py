"""A table that is written as Markdown or LaTeX, or shown in the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from nmt.utils.text import printable

NONE = "–"
LATEX = {"\N{MINUS SIGN}": "$-$", "±": r"$\pm$", "–": "--", "\u202f": r"\,", "\xa0": "~"}


class Cell(NamedTuple):
    """A formatted number."""

    text: str = NONE  # the formatted number; a dash if it is missing
    beside: str = ""  # interval or deviation
    value: float | None = None  # the page sorts by this value; None if missing

    def __str__(self) -> str:
        return f"{self.text} {self.beside}".strip()


@dataclass(frozen=True)
class Table:
    """A table with a title and notes."""

    name: str
    title: str
    frame: pd.DataFrame  # elements are text or `Cell`; columns of `Cell` are right-aligned
    notes: list[str] = field(default_factory=list)  # explanations below the table

    def is_text(self, column: str) -> bool:
        return not any(isinstance(cell, Cell) for cell in self.frame[column])

    def rows(self) -> str:
        """Returns the rows in Markdown, aligned for a terminal."""
        columns = []
        for name in self.frame:
            cells = [_markdown(str(cell)) for cell in (name, *self.frame[name])]
            width = max(3, *map(len, cells))
            left = self.is_text(name)
            cells = [cell.ljust(width) if left else cell.rjust(width) for cell in cells]
            columns.append([cells[0], "-" * width if left else f"{'-' * (width - 1)}:", *cells[1:]])
        return "\n".join(f"| {' | '.join(row)} |" for row in zip(*columns, strict=True))

    def markdown(self) -> str:
        """Returns the table with its title and notes in Markdown."""
        notes = [f"\n{_markdown(note)}" for note in self.notes]
        return "\n".join([f"### {_markdown(self.title)}\n", self.rows(), *notes]) + "\n"

    def latex(self) -> str:
        """Returns the table as a LaTeX `tabular` with booktabs rules; notes are comments."""
        columns = "".join("l" if self.is_text(column) else "r" for column in self.frame)
        texts = self.frame.map(lambda cell: printable(str(cell)))
        body = texts.to_latex(index=False, escape=True, column_format=columns)
        comments = "".join(f"% {' '.join(line.split())}\n" for line in (self.title, *self.notes))
        for sign, written in LATEX.items():
            body = body.replace(sign, written)
        return printable(comments + body)


def _markdown(text: str) -> str:
    text = printable(text).replace("\\", "\\\\").replace("|", "\\|")
    return text.replace("<", "&lt;").replace("\n", " ")


def number(value: Any, digits: int = 2, low: Any = None, high: Any = None) -> Cell:
    """Formats a number, and its interval if given, with a true minus sign and thin spaces.

    >>> str(number(-1234.5, 1)), str(number(None)), str(number(2, 1, 1.5, 2.5))
    ('−1\u202f234.5', '–', '2.0 [1.5, 2.5]')
    """
    if value is None or pd.isna(value):
        return Cell()
    text = f"{value:z,.{digits}f}".replace(",", "\u202f").replace("-", "\N{MINUS SIGN}")
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return Cell(text, value=float(value))
    ends = f"[{number(low, digits).text}, {number(high, digits).text}]"
    return Cell(text, ends, float(value))


def pivot(frame: pd.DataFrame, rows: Mapping[str, str], columns: str) -> pd.DataFrame:
    """Pivots the column `cell` of a frame, keeping the order of rows and columns.

    Args:
        rows: the columns whose values name the rows, mapped to their titles in the result.
        columns: the column whose values become columns.
    """
    order = frame[list(rows)].drop_duplicates().set_index(list(rows)).index
    table = frame.pivot(index=list(rows), columns=columns, values="cell")
    table = table.reindex(index=order, columns=list(dict.fromkeys(frame[columns])))
    table = table.map(lambda cell: cell if isinstance(cell, Cell) else Cell())
    return table.reset_index().rename(columns=dict(rows)).rename_axis(columns=None)
