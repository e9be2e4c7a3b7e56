"""Escapes control characters in text that is shown or logged."""

from __future__ import annotations

import logging
import re

# C0 without tab and newline, DEL, C1, ends of lines and paragraphs, and what turns the direction of
# text; what joins letters (U+200C, U+200D) belongs to the words of some scripts
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""The text with control characters as visible escapes; tabs and newlines stay.

    >>> print(printable("a\x1b[31m\u202eb\r"))
    a\x1b[31m\u202eb\r
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class PrintableFormatter(logging.Formatter):
    """The formatter of every log: a line quotes names and values of files that were read."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))
