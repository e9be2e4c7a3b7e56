"""Formats short texts for display."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

# Control characters (except tab and newline), line and paragraph separators, and marks that change the
# direction of text. The joiners U+200C and U+200D are not included, because words of some scripts contain them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

MAX_STEM_BYTES = 200  # maximum length of a file name without its extension, in UTF-8


def printable(text: str) -> str:
    r"""Replaces control characters except tabs and newlines by escape sequences.

    >>> print(printable("a\x1b[31m\u202eb\r"))
    a\x1b[31m\u202eb\r
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def counted(count: int, noun: str) -> str:
    """Formats a number with its noun.

    >>> counted(1, "sentence"), counted(2000, "sentence")
    ('1 sentence', '2,000 sentences')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def without_home(value: Any) -> Any:
    """Replaces the home folder by `~` in the text of nested dictionaries and lists, for what others read.

    >>> without_home({"command": [f"data.root={Path.home() / 'corpus'}", 3]})
    {'command': ['data.root=~/corpus', 3]}
    """
    if isinstance(value, dict):
        return {key: without_home(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_home(item) for item in value]
    home = str(Path.home())
    if isinstance(value, str) and home != "/":
        return re.sub(rf"(?<![\w/.]){re.escape(home)}(?=/|$)", "~", value)
    return value


def span(lengths: Sequence[int], unit: str) -> str:
    """Formats the smallest and the largest length.

    >>> span([12, 3, 50], "words"), span([12], "words")
    ('3 to 50 words', '12 words')
    """
    low, high = min(lengths), max(lengths)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def as_list(values: Any) -> list[Any]:
    """Converts an iterable to a list, and a string or other single value to a list with one item.

    >>> as_list("run"), as_list(("a", "b"))
    (['run'], ['a', 'b'])
    """
    single = isinstance(values, str | Path) or not isinstance(values, Iterable)
    return [values] if single else list(values)


def as_utf_8(path: str) -> str:
    r"""Replaces each byte of a path that is not UTF-8 by U+FFFD, so that the path can be written to files.

    >>> as_utf_8("système.fr"), as_utf_8("syst\udce8me.fr")
    ('système.fr', 'syst\ufffdme.fr')
    """
    return os.fsencode(path).decode("utf-8", "replace")


def file_name(text: str) -> str:
    """Converts a text to a file name; all characters except letters, digits, dots and dashes become `_`."""
    name = re.sub(r"[^\w.-]", "_", text)
    return name.encode()[:MAX_STEM_BYTES].decode("utf-8", "ignore") or "_"
