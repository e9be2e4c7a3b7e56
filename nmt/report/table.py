"""`Table`: rows of figures, written as Markdown, CSV, LaTeX or text."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from nmt.utils.printable import printable

_FORMULA = re.compile(r"[=+\-@\t].", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

MOST_ROWS = 1000  # of a table that people read; one of every pair of many runs is left to its CSV


@dataclass(frozen=True)
class Column:
    """One column: the key of its cells, its heading, and how many decimals a number gets.

    Attributes:
        digits: decimals; None: as the row's own `digits` says.
        titles: what people read in place of a key in a cell; CSV keeps the key.
    """

    key: str
    title: str
    digits: int | None = 2
    text: bool = False
    titles: Mapping[str, str] = field(default_factory=dict)

    def of(self, row: Mapping[str, Any]) -> Column:
        """The column as it is shown in a row."""
        return self if self.digits is not None else replace(self, digits=row["digits"])


class MeanAndDeviation(NamedTuple):
    """A figure of several runs: its mean and its (sample) standard deviation."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class Table:
    """Rows by column key.

    A cell is None, text, a number, (score, low, high) or MeanAndDeviation.

    Attributes:
        notes: what a reader must know to read the numbers, a sentence each.
    """

    name: str
    title: str
    columns: list[Column]
    rows: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)

    @property
    def elsewhere(self) -> str | None:
        """What is said in place of more than `MOST_ROWS` rows; None of a table that is shown."""
        count = len(self.rows)
        return f"{count:,} rows: see {self.name}.csv." if count > MOST_ROWS else None

    def markdown(self) -> str:
        """The table with its title and notes in Markdown."""
        lines = [f"### {_one_line(self.title)}", ""]
        if self.elsewhere:
            lines.append(self.elsewhere)
        else:
            lines.append("| " + " | ".join(_markdown(c.title) for c in self.columns) + " |")
            lines.append("|" + "|".join("---" if c.text else "---:" for c in self.columns) + "|")
            for row in self.rows:
                cells = (_markdown(show(row.get(c.key), c.of(row))) for c in self.columns)
                lines.append("| " + " | ".join(cells) + " |")
        lines += [f"\n{_markdown(note)}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def text(self) -> str:
        """The rows for a terminal, below the columns' titles; text to the left, numbers to the right."""
        lines = [[_one_line(column.title) for column in self.columns]]
        lines += [[show(row.get(c.key), c.of(row)) for c in self.columns] for row in self.rows]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        forms = [
            f"{{:{'<' if column.text else '>'}{width}}}"
            for column, width in zip(self.columns, widths, strict=True)
        ]
        return "\n".join("  ".join(forms).format(*cells).rstrip() for cells in lines)

    def latex(self) -> str:
        """The table as a LaTeX `tabular`; its rules need the package booktabs, its notes are comments."""
        spec = "".join("l" if column.text else "r" for column in self.columns)
        lines = [f"% {_one_line(line)}" for line in (self.title, *self.notes)]
        lines += [f"\\begin{{tabular}}{{{spec}}}", "\\toprule"]
        lines.append(" & ".join(_latex(column.title) for column in self.columns) + r" \\")
        lines.append("\\midrule")
        for row in self.rows:
            cells = (_latex(show(row.get(c.key), c.of(row))) for c in self.columns)
            lines.append(" & ".join(cells) + r" \\")
        lines += ["\\bottomrule", "\\end{tabular}"]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """The table as CSV: full precision, with columns of their own for the ends of an interval and a
        deviation."""
        beside = {c.key: _beside(row.get(c.key) for row in self.rows) for c in self.columns}
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        heading: list[str] = []
        for column in self.columns:
            heading += [column.key, *(f"{column.key}_{end}" for end in beside[column.key])]
        writer.writerow(map(_csv, heading))
        for row in self.rows:
            cells: list[Any] = []
            for column in self.columns:
                value = row.get(column.key)
                parts = list(value) if isinstance(value, tuple) else [value]
                cells += parts + [None] * (1 + len(beside[column.key]) - len(parts))
            writer.writerow(map(_csv, cells))
        return out.getvalue()


def show(value: Any, column: Column) -> str:
    """A cell as people read it; a dash where there is nothing."""
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return printable(column.titles.get(str(value), str(value)))
    # a true minus sign, which a hyphen is not, and none before what is rounded to 0
    return _number(value, column).replace("-", "\N{MINUS SIGN}")


def _number(value: Any, column: Column) -> str:
    if isinstance(value, MeanAndDeviation):
        return f"{value.mean:z.{column.digits}f} ± {value.deviation:.{column.digits}f}"
    if isinstance(value, tuple):
        score, low, high = value
        if low is None or high is None:
            return _number(score, column)
        return f"{score:z.{column.digits}f} [{low:z.{column.digits}f}, {high:z.{column.digits}f}]"
    if isinstance(value, int) or column.digits == 0:
        return f"{value:z,.0f}".replace(",", "\u202f")
    return f"{value:z,.{column.digits}f}".replace(",", "\u202f")


def measured(
    score: Mapping[str, Any] | None,
) -> tuple[float, float | None, float | None] | None:
    """The cell of a score with its interval; None where it is undefined."""
    if score is None or score.get("score") is None:
        return None
    return score["score"], score.get("low"), score.get("high")


def score_column(known: Mapping[str, Mapping[str, Any]]) -> Column:
    """The column of a table with a row for each score; `known`: how to show each, by key."""
    titles = {key: about["title"] for key, about in known.items()}
    return Column("score", "Score", text=True, titles=titles)


def heading(about: Mapping[str, Any]) -> str:
    """The title of a score with its unit, from its entry of results.json.

    >>> heading({"title": "NLL a word", "unit": "nats"}), heading({"title": "TER", "unit": "points"})
    ('NLL a word (nats)', 'TER')
    """
    unit = about["unit"]
    return about["title"] if unit in ("", "points", "ratio") else f"{about['title']} ({unit})"


def levels(shares: Iterable[float]) -> str:
    """Confidence levels as people write them.

    >>> levels([0.95, 0.9, 0.95])
    '90 %/95 %'
    """
    return "/".join(f"{100 * share:g} %" for share in sorted(set(shares)))


def _beside(cells: Iterable[Any]) -> tuple[str, ...]:
    """Endings of the further CSV columns that a column needs."""
    found = list(cells)
    if any(isinstance(cell, MeanAndDeviation) for cell in found):
        return ("sd",)
    return ("low", "high") if any(isinstance(cell, tuple) for cell in found) else ()


_LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "\n": " ",
    "\N{MINUS SIGN}": "$-$",
    "±": r"$\pm$",
    "–": "--",
    "\u202f": r"\,",
}


def _latex(text: str) -> str:
    r"""Text as LaTeX shows it; a cell that begins with [ is none of the options of a line's end.

    >>> _latex("a_b & 5 % [−1, 2]")
    'a\\_b \\& 5 \\% [$-$1, 2]'
    """
    escaped = "".join(_LATEX.get(character, character) for character in printable(text))
    return f"{{}}{escaped}" if escaped.startswith("[") else escaped


def _csv(cell: Any) -> Any:
    """A cell of CSV; a text that a spreadsheet would compute is marked as text, as one marks it by hand.

    >>> _csv("=1+1"), _csv("-1e-3"), _csv("–"), _csv(-1.0)
    ("'=1+1", '-1e-3', '–', -1.0)
    """
    if not isinstance(cell, str):
        return cell
    cell = printable(cell)
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def _markdown(text: str) -> str:
    text = printable(text)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
