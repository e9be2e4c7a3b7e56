"""Reading and checking of data from files that strangers may have written."""

from __future__ import annotations

import itertools
import math
import re
import reprlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from nmt.utils.errors import InputError
from nmt.utils.printable import printable

DEEPEST = 100  # levels of nesting; the files of this program have fewer than ten
INTEGERS = 2**63
MOST = 100_000_000  # values
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\2\2\0\0")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_LARGE = (b"0" * 19, b"e000", b"e+000")  # what may not fit into a machine's number, 0 any digit
_DIGITS = bytes.maketrans(b"123456789E", b"000000000e")

LARGEST = 1e300  # sums and differences of such numbers are finite
Number = Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=2**53)]


def read_json(content: bytes, where: str) -> Any:
    """Parses JSON, with all numbers finite and within 64 bits, and all text encodable.

    Args:
        content: the text, in UTF-8.
        where: the file (and line), for the message.

    Raises:
        InputError: for what is no JSON, is nested too deep, or holds a number that no machine has.
    """
    try:
        value = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(f"{where}: damaged, not JSON ({error})") from error
    # the parser has refused lone surrogates and what is not finite; the rest is seldom to be walked
    if len(content) > MOST or _deepest(content) > DEEPEST or _may_be_large(content):
        bounded(value, where)
    return value


def _may_be_large(content: bytes) -> bool:
    """Whether a JSON text has digits of a number that no machine has."""
    digits = content.translate(_DIGITS)
    return any(large in digits for large in _LARGE)


def _deepest(content: bytes) -> int:
    """Levels of nesting of a JSON text; 0 of one that cannot have more than `DEEPEST`."""
    if content.count(b"[") + content.count(b"{") <= DEEPEST:  # most lines are small and flat
        return 0
    brackets = _STRING.sub(b"", content).translate(_STEPS, _NO_BRACKETS)
    return max(itertools.accumulate(brackets, lambda depth, step: depth + step - 1), default=1) - 1


def bounded(value: Any, where: str, most: int = MOST) -> None:
    """Refuses plain containers that are nested too deeply, too large, or hold numbers out of range.

    Args:
        value: dictionaries, lists and what they hold.
        where: the file, for the message.
        most: values in it; a value that is held twice counts twice.

    Raises:
        InputError: naming file and key.
    """
    pending: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    seen = 0
    while pending:
        inner, path = pending.pop()
        if isinstance(inner, dict | list | tuple):
            seen += len(inner)
            if len(path) >= DEEPEST:
                raise InputError(f"{where}: {dotted(path[:3])}…: nested more than {DEEPEST} deep")
            if seen > most:
                raise InputError(f"{where}: {dotted(path[:3])}: more than {most} values")
            children = inner.items() if isinstance(inner, dict) else enumerate(inner)
            pending += [
                (child, (*path, name))
                for name, child in children
                if isinstance(child, dict | list | tuple | int | float | str)
            ]
        elif isinstance(inner, float) and not math.isfinite(inner):
            raise InputError(f"{where}: {dotted(path)}={inner}: must be a finite number")
        elif isinstance(inner, int) and abs(inner) >= INTEGERS:
            raise InputError(f"{where}: {dotted(path)}: a whole number of more than 64 bits")
        elif isinstance(inner, str) and not inner.isascii() and _lone_surrogate(inner):
            raise InputError(f"{where}: {dotted(path)}: a lone surrogate, which is no character")


def check_against(value: Any, adapter: TypeAdapter[Any], where: str, key: str = "") -> None:
    """Validates data against a schema.

    Args:
        value: what a file holds.
        adapter: the schema.
        where: the file (and line), for the message.
        key: of the value in the file.

    Raises:
        InputError: naming file and field, and what would be right.
    """
    try:
        adapter.validate_python(value, strict=True)  # types as they are
    except ValidationError as refused:
        first = refused.errors(include_url=False, include_context=False)[0]
        path = (
            dotted([*filter(None, [key]), *_place(value, first["loc"], first["type"])]) or "content"
        )
        if first["type"] == "missing":
            raise InputError(f"{where}: key '{path}' is missing") from refused
        said = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
        given = reprlib.repr(first["input"]).encode("ascii", "backslashreplace").decode()
        raise InputError(f"{where}: {path}={given:.40}: {said}") from refused


def _place(value: Any, loc: Sequence[int | str], kind: str) -> Iterator[int | str]:
    """The keys of an error's place, without the names of the types that were tried there.

    >>> list(_place({"a": [{"b": "x"}]}, ("a", 0, "Row", "b", "int"), "int_type"))
    ['a', 0, 'b']
    """
    for number, part in enumerate(loc, 1):
        inside = value.keys() if isinstance(value, dict) else ()
        if part in inside or (isinstance(value, list) and isinstance(part, int)):
            value = value[part]
            yield part
        elif number == len(loc) and (kind == "missing" or part == "[key]"):
            yield part


def dotted(path: Any) -> str:
    """A path of keys as people write it, cut where it is long."""
    text = ".".join(map(str, path)).encode("ascii", "backslashreplace").decode()
    return printable(" ".join(text.split()))[:120]


def _lone_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
