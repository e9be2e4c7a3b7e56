"""Escapes control characters in text that is shown."""

import re

# C0 without tab and newline, DEL, C1, line and paragraph separators, and marks that change the
# direction of text. Joiners (U+200C, U+200D) belong to the words of some scripts.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""The text with control characters as visible escapes; tabs and newlines stay.

    >>> print(printable("a\x1b[31m\u202eb\r"))
    a\x1b[31m\u202eb\r
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
