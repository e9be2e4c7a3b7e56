"""Formats short texts, and lists of them, for display."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# C0 without tab and newline, DEL, C1, line and paragraph separators, and marks that change the
# direction of text. Joiners (U+200C, U+200D) belong to the words of some scripts.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

MAX_STEM = 200  # characters of a file name without its ending


def printable(text: str) -> str:
    r"""Makes control characters visible as escapes; tabs and newlines stay.

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


def as_list(values: Any) -> list[Any]:
    """Returns several values as a list, and a single value, such as a text, as a list of one.

    >>> as_list("run"), as_list(("a", "b"))
    (['run'], ['a', 'b'])
    """
    single = isinstance(values, str | Path) or not isinstance(values, Iterable)
    return [values] if single else list(values)


def file_name(text: str) -> str:
    """Turns a text into a file name: all but letters, digits, dots and dashes become `_`."""
    return re.sub(r"[^\w.-]", "_", text[:MAX_STEM]) or "_"
