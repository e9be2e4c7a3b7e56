"""HTML elements from values; everything that is not markup already is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from string import Template
from typing import Any

from nmt.utils.printable import printable


class Markup(str):
    """Text that is markup: of this program's own files, or made by `element`."""

    __slots__ = ()


def text(value: Any) -> Markup:
    """A value as it stands in a page, in an element or in an attribute; markup stays as it is.

    >>> text('"><b>'), text(Markup("<b>"))
    ('&quot;&gt;&lt;b&gt;', '<b>')
    """
    return value if isinstance(value, Markup) else Markup(escape(printable(str(value))))


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """An element with its end tag.

    Args:
        tag: its name.
        children: markup, or anything else, which is escaped.
        attributes: a name's `_` stands for `-`, one at its end is dropped (`class_`).

    >>> element("td", 1.5, data_value='"><img>')
    '<td data-value="&quot;&gt;&lt;img&gt;">1.5</td>'
    """
    pairs = ((name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    written = "".join(f' {name}="{text(value)}"' for name, value in pairs)
    return Markup(f"<{tag}{written}>{together(*children)}</{tag}>")


def together(*parts: Any) -> Markup:
    """Parts one after another."""
    return Markup("".join(map(text, parts)))


def filled(template: str, values: Mapping[str, Any]) -> Markup:
    """A template of this program's own with its `$names` filled in."""
    return Markup(Template(template).substitute({name: text(v) for name, v in values.items()}))
