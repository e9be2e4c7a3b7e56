"""Quotes overrides for Hydra's grammar and command lines for the shell."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z0-9_./+%@:-]+")


def override_key(word: str) -> str:
    """Returns the key or group of an override.

    >>> [override_key(word) for word in ("+data.root=/a", "~search", "++seed=1", "size=laptop")]
    ['data.root', 'search', 'seed', 'size']
    """
    return word.lstrip("+~").partition("=")[0]


def quoted(value: str) -> str:
    """Quotes a string for Hydra's grammar if necessary; Hydra parses an unquoted `1e3` as the number 1000.0.

    >>> quoted("outputs/a"), quoted("1e3"), quoted("b=1,'c'")
    ('outputs/a', "'1e3'", "'b=1,\\\\'c\\\\''")
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import Quote, QuotedString

    if _PLAIN.fullmatch(value) and OverridesParser.create().parse_rule(value, "element") == value:
        return value
    return str(QuotedString(text=value, quote=Quote.single).with_quotes())


def command_line(name: str, overrides: Iterable[str]) -> str:
    """Returns `python -m nmt.<name>` with its overrides, quoted for a shell."""
    return shlex.join(["python", "-m", f"nmt.{name}", *overrides])


def as_typed(command: str) -> str:
    """Adds `uv run ` to a command for the user if uv started this process: Python is then not on the user's path."""
    return f"uv run {command}" if "UV" in os.environ else command
