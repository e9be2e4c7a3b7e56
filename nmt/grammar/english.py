"""English word forms: plurals, verb forms, and the articles `a` and `an`."""

from __future__ import annotations

from typing import NamedTuple

VOWELS = frozenset("aeiou")
_AN = ("hour", "honest", "honour", "heir")
_A = ("uni", "use", "euro", "one", "eu")
_DOUBLED = frozenset(
    [
        "admit", "begin", "cancel", "cut", "drop", "forget", "get", "hit", "plan", "prefer", "run",
        "sit", "stop", "swim", "travel", "win", "wrap",
    ]
)  # fmt: skip


def article(word: str) -> str:
    """Returns `a` or `an`, which depends on the first sound of `word` and not on its first letter."""
    lower = word.lower()
    if lower.startswith(_AN):
        return "an"
    if lower.startswith(_A) and not lower.startswith(("unin", "unim")):
        return "a"
    return "an" if lower[0] in VOWELS else "a"


def _consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in VOWELS


def noun_plural(noun: str) -> str:
    """The regular plural of a noun."""
    if _consonant_y(noun):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


class Forms(NamedTuple):
    """The forms of an English verb; `rest` follows each form, such as `up` in `gets up`."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    rest: tuple[str, ...]


def conjugate(lemma: str, past: str | None = None, participle: str | None = None) -> Forms:
    """Returns the forms of a verb such as `eat` or `get_up`; irregular verbs need their past forms."""
    base, *rest = lemma.split("_")
    if _consonant_y(base):
        third, regular = base[:-1] + "ies", base[:-1] + "ied"
    else:
        third = base + ("es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")
        doubled = base + base[-1] if base in _DOUBLED else base
        regular = doubled + ("d" if base.endswith("e") else "ed")
    if base == "lie":
        gerund = "lying"
    elif base == "die":
        gerund = "dying"
    elif base in _DOUBLED:
        gerund = base + base[-1] + "ing"
    elif base.endswith("e") and not base.endswith(("ee", "oe", "ye")):
        gerund = base[:-1] + "ing"
    else:
        gerund = base + "ing"
    past = past.split("_")[0] if past else regular
    participle = participle.split("_")[0] if participle else past
    return Forms(base, third, past, participle, gerund, tuple(rest))


BE_PRESENT = ("am", "is", "are", "are", "are")
BE_PAST = ("was", "was", "were", "were", "were")
DO = ("do", "does", "do", "do", "do")
