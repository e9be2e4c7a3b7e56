"""Hostile files: every field of a good one, one after another, made wrong in every way."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from nmt.utils.errors import InputError

GONE = object()


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


WRONG: dict[str, Any] = {
    "missing": GONE,
    "null": None,
    "text": '"><img src=x onerror=alert(1)>',
    "negative": -1,
    "huge": 2**70,
    "absurd": 10**9,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "fraction": 0.5,
    "true": True,
    "empty list": [],
    "list": [1, "a", None],
    "empty object": {},
    "object": {"a": {"_target_": "os.system"}},
    "surrogate": "a\ud800b",
    "nested": nested(200),
    "number sign": "\u00b2",
}


class Attack(NamedTuple):
    """A field that was made wrong."""

    path: tuple[Any, ...]
    wrong: str

    def of(self, content: Any) -> Any:
        """A copy of the content with the field as it says."""
        if not self.path:
            return WRONG[self.wrong]
        changed = copied(content)
        *parents, last = self.path
        inside = changed
        for parent in parents:
            inside = inside[parent]
        if WRONG[self.wrong] is GONE:
            del inside[last]
        else:
            inside[last] = WRONG[self.wrong]
        return changed


def copied(content: Any) -> Any:
    """A copy of containers; what they hold (weights) stays."""
    if isinstance(content, dict):
        return {key: copied(value) for key, value in content.items()}
    if isinstance(content, list):
        return [copied(value) for value in content]
    return content


def fields(content: Any, path: tuple[Any, ...] = (), most: int = 3) -> Iterator[tuple[Any, ...]]:
    """Paths of all fields; of a list the first `most` entries."""
    yield path
    if isinstance(content, dict):
        for key in content:
            yield from fields(content[key], (*path, key), most)
    elif isinstance(content, list):
        for number in range(min(most, len(content))):
            yield from fields(content[number], (*path, number), most)


def attacks(content: Any, most: int = 3) -> list[Attack]:
    """Every field made wrong in every way."""
    return [
        Attack(path, wrong)
        for path in fields(content, most=most)
        for wrong in WRONG
        if path or WRONG[wrong] is not GONE
    ]


def as_json(value: Any) -> bytes:
    """JSON as a stranger may write it: NaN, lone surrogates and any nesting."""
    return json.dumps(value).encode()


def outcomes(
    chosen: list[Attack], write: Callable[[Attack], Any], use: Callable[[], Any], name: str
) -> dict[str, list[str]]:
    """What came of each attack: `refused` (in a line that names the file), `used`, or `raised`."""
    found: dict[str, list[str]] = {"refused": [], "used": [], "raised": []}
    for attack in chosen:
        write(attack)
        said = f"{'.'.join(map(str, attack.path))}: {attack.wrong}"
        try:
            use()
        except InputError as refused:
            line = str(refused)
            plain = "\n" not in line and len(line) < 700
            names = name in line or "the checkpoint names code outside nmt" in line
            found["refused" if plain and names else "raised"].append(f"{said}: {refused}")
        except Exception as error:
            found["raised"].append(f"{said}: {type(error).__name__}: {str(error)[:150]}")
        else:
            found["used"].append(said)
    counts = ", ".join(f"{len(lines)} {outcome}" for outcome, lines in found.items())
    print(f"{name}: {len(chosen)} tried, {counts}")  # `pytest -rP` shows it
    return found


def spread(chosen: list[Attack], count: int) -> list[Attack]:
    """About `count` of them, spread evenly."""
    step = max(1, len(chosen) // count)
    return copy.copy(chosen[:: step | 1])  # odd: in step with no period of the ways
