"""The HTML document of every page: style, content security policy, program, sortable tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.report.page import embed
from nmt.report.page.markup import Markup, element, filled, together
from nmt.report.table import Column, MeanAndDeviation, Table, show
from nmt.utils.files import write_text


def write_page(
    path: str | Path,
    title: str,
    subtitle: str,
    sections: Markup,
    payloads: Sequence[Markup] = (),
    navigation: str = "",
    *libraries: str,
    program: str = "main.mjs",
    alone: bool = False,
    workers: bool = False,
) -> Path:
    """Fills the template; of scripts the page's policy allows its program and `libraries` only.

    Args:
        alone: there is nothing to compare with.
        workers: the page may start its own program in threads.
    """
    source = embed.program(program)
    page = filled(
        embed.asset("template.html"),
        {
            "title": title,
            "subtitle": subtitle,
            "style": embed.stylesheet(),
            "scripts": Markup(embed.allowed(source, *libraries)),
            "workers": "blob:" if workers else Markup("'none'"),
            "kind": "alone" if alone else "several",
            "navigation": navigation,
            "sections": sections,
            "payloads": together(*payloads),
            "program": embed.script(source),
        },
    )
    write_text(Path(path), page)
    return Path(path)


def html_table(table: Table) -> Markup:
    """A table in HTML whose numbers keep their full value for sorting; its first column heads the rows."""
    notes = element("div", *(element("p", note) for note in table.notes), class_="notes")
    if table.elsewhere:
        return together(element("p", f"{table.title}: {table.elsewhere}", class_="notes"), notes)
    head = element("tr", *map(_heading, table.columns))
    first, *others = table.columns
    body = []
    for row in table.rows:
        cells = [element("th", show(row.get(first.key), first), scope="row")]
        cells += [_cell(row.get(column.key), column.of(row)) for column in others]
        body.append(element("tr", *cells, **({"data_run": row["run"]} if "run" in row else {})))
    content = element(
        "table",
        element("caption", table.title),
        element("thead", head),
        element("tbody", *body),
        class_="sortable",
        id=f"{table.name}-table",
    )
    region = element(
        "div", content, class_="scroll", tabindex=0, role="region", aria_label=table.title
    )
    return together(region, notes)


def _heading(column: Column) -> Markup:
    return element("th", column.title, scope="col", **({"class_": "text"} if column.text else {}))


def _cell(value: Any, column: Column) -> Markup:
    if column.text:
        return element("td", show(value, column), class_="text")
    beside: str | None = None
    number = value
    if isinstance(value, MeanAndDeviation):
        number, beside = value.mean, f"± {value.deviation:.{column.digits}f}"
    elif isinstance(value, tuple):
        number, low, high = value
        if low is not None and high is not None:
            beside = f"[{show(low, column)}, {show(high, column)}]"
    children: list[Any] = [show(number, column)]
    if beside is not None:
        children += [" ", element("span", beside, class_="interval")]
    return element("td", *children, data_value="" if number is None else number)
