"""Quotes command lines and overrides for Hydra's grammar and for the shell."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z0-9_./+%@:-]+")


def override(key: str, value: str) -> str:
    """Returns an override, with its value quoted if Hydra's grammar needs it.

    >>> override("resume", "outputs/a"), override("resume", "b=1,'c'")
    ('resume=outputs/a', "resume='b=1,\\\\'c\\\\''")
    """
    return f"{key}={quoted(value)}"


def override_key(word: str) -> str:
    """Returns the key or group of an override.

    >>> [override_key(word) for word in ("+data.root=/a", "~search", "++seed=1", "size=laptop")]
    ['data.root', 'search', 'seed', 'size']
    """
    return word.lstrip("+~").partition("=")[0]


def quoted(value: str) -> str:
    """Quotes a text for Hydra's grammar, if it needs quotes."""
    if _PLAIN.fullmatch(value) and not _is_literal(value):
        return value
    from hydra.core.override_parser.types import Quote, QuotedString

    return str(QuotedString(text=value, quote=Quote.single).with_quotes())


def _is_literal(value: str) -> bool:
    """Whether Hydra reads the text as a number, a boolean or null: `1e3` is 1000.0."""
    with contextlib.suppress(ValueError):
        float(value)
        return True
    return value.lower() in ("null", "true", "false")


def command_line(name: str, overrides: Iterable[str]) -> str:
    """Returns `python -m nmt.<name>` with its overrides, quoted for a shell."""
    return shlex.join(["python", "-m", f"nmt.{name}", *overrides])
