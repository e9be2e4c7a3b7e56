"""The words of the corpus with all their forms, read from the lists in `lexicon/`.

Each list is divided into sections. A section lists its lemmas by frequency, the most frequent one first.
Sections have semantic classes, so that persons read letters but letters do not read persons. In each
section, the word of rank r (from 1) has the weight 1 / (r + 1), as in Zipf's law.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import NamedTuple

from nmt.grammar import english, french, french_verbs
from nmt.grammar.french import Links
from nmt.grammar.stream import Weighted


class Noun(NamedTuple):
    """A noun; its forms are `english[plural]` and `french[plural]`."""

    english: tuple[str, str]
    french: tuple[str, str]
    feminine: bool
    noun_class: str  # semantic class
    mass: bool
    relation: bool  # a person, often with a possessive: my friend, the king's doctor


class Adjective(NamedTuple):
    """An adjective; its French forms are `french[feminine][plural]`."""

    english: str
    french: tuple[tuple[str, str], tuple[str, str]]
    attributive: str  # masculine singular before the noun; may have a `~` for `french.join`
    before: bool  # precedes the French noun
    size: bool  # describes size or age
    opinion: bool


class Verb(NamedTuple):
    """A verb in one construction, such as transitive."""

    english: english.Forms
    french: french_verbs.Forms
    particle: str | None = None  # English preposition, such as `at` in `look at`
    preposition: str | None = None  # French preposition, such as `à` in `obéir à`
    reflexive: bool = False
    etre: bool = False  # compound tenses have the auxiliary être
    state: bool = False  # describes a state; its simple past becomes a French imperfect
    willed: bool = False  # describes a deliberate action, such as `eat`
    coming: bool = False  # its reported clause is in the future, as after `promise`
    subjects: tuple[str, ...] = ()  # semantic classes
    objects: tuple[str, ...] = ()


class Name(NamedTuple):
    """A proper name or an adverb; names of countries are masculine (au Japon) or feminine (en France)."""

    english: str
    french: str
    feminine: bool


class Phrase(NamedTuple):
    """A fixed phrase; `links[j]` has the links of French word j."""

    english: tuple[str, ...]
    french: tuple[str, ...]
    links: tuple[Links, ...]


_SIZES = frozenset(("little", "young", "old", "big", "new", "huge"))
_CLASSIFYING = frozenset(
    [
        "foreign", "black", "white", "grey", "brown", "red", "green", "blue", "yellow", "pink",
        "purple", "golden", "wild", "blind", "deaf", "mute", "royal", "medieval", "public", "private",
        "tame", "lame", "round",
    ]
)  # fmt: skip
_RELATIONS = frozenset(
    [
        "father", "friend", "doctor", "child", "brother", "son", "teacher", "neighbour", "student",
        "lawyer", "uncle", "grandfather", "cousin", "nephew", "guest", "rival", "tailor", "dentist",
        "driver", "gardener", "cook", "mother", "sister", "nurse", "aunt", "grandmother", "secretary",
        "niece", "governess", "tenant", "customer",
    ]
)  # fmt: skip


def _sections(name: str, separator: str = ",") -> Iterator[tuple[list[str], list[str]]]:
    """Yields two lists for each section of a word list: the words of its header in brackets, and its entries."""
    text = (files("nmt.grammar") / "lexicon" / f"{name}.txt").read_text(encoding="utf-8")
    head: list[str] = []
    entries: list[str] = []
    for line in text.splitlines():
        if line.startswith("["):
            if head:
                yield head, entries
            head = line.strip("[]").split()
            entries = []
        elif line and not line.startswith("#"):
            entries += [entry.strip() for entry in line.split(separator)]
    yield head, entries


def _numbers(word: str, pluralise: Callable[[str], str]) -> tuple[str, str]:
    """Returns singular and plural of a list entry such as `book` or `man/men`."""
    singular, _, plural = word.partition("/")
    return singular, plural or pluralise(singular)


def _noun(entry: str, noun_class: str, feminine: bool, mass: bool) -> Noun:
    left, right = entry.split()
    forms = _numbers(left, english.noun_plural), _numbers(right, french.noun_plural)
    return Noun(*forms, feminine, noun_class, mass, relation=forms[0][0] in _RELATIONS)


def _adjective(entry: str, before: bool) -> Adjective:
    left, right = entry.split()
    changes = right in ("beau", "nouveau", "vieux")
    return Adjective(
        left,
        french.agree(right),
        "~" + right if changes else right,
        before,
        left in _SIZES,
        not before and left[0].islower() and left not in _CLASSIFYING,
    )


def _verb(entry: str, subjects: tuple[str, ...], objects: tuple[str, ...]) -> Verb:
    left, right = entry.split(" = ")
    words, _, particle = left.partition("|")
    infinitive, *flags = right.split()
    infinitive, _, preposition = infinitive.partition("|")
    verb = infinitive.removeprefix("se_").removeprefix("s'")
    reflexive = verb != infinitive
    return Verb(
        english.conjugate(*words.split()),
        french_verbs.conjugate(verb),
        particle or None,
        preposition or None,
        reflexive,
        reflexive or "+" in flags,
        "*" in flags,
        "-" not in flags and "*" not in flags,
        ">" in flags,
        subjects,
        objects,
    )


def _phrase(entry: str) -> Phrase:
    left, right, alignment = entry.split(" = ")
    links = [Links() for _ in right.split()]
    for link in alignment.split():
        i, mark, j = link.partition("p" if "p" in link else "-")
        links[int(j)] |= Links(possible=(int(i),)) if mark == "p" else Links((int(i),))
    return Phrase(tuple(left.split()), tuple(right.split()), tuple(links))


nouns: dict[str, list[tuple[Noun, float]]] = defaultdict(list)
adjectives: dict[tuple[str, bool], list[tuple[Adjective, float]]] = defaultdict(list)
verbs: dict[str, list[tuple[Verb, float]]] = defaultdict(list)
adverbs: dict[str, Weighted[Name]] = {}
names: dict[str, Weighted[Name]] = {}
phrases: dict[str, Weighted[Phrase]] = {}


def _load() -> None:
    for (noun_class, gender, *mass), entries in _sections("nouns"):
        weight = 0.7 if mass else 1.0
        if noun_class == "person":
            weight = 1.4 if gender == "f" else 2.0
        for rank, entry in enumerate(entries, start=1):
            noun = _noun(entry, noun_class, gender == "f", bool(mass))
            nouns[noun_class].append((noun, weight / (rank + 1)))
    for (position, *noun_classes), entries in _sections("adjectives"):
        for rank, entry in enumerate(entries, start=1):
            adjective = _adjective(entry, position == "before")
            for noun_class in noun_classes:
                adjectives[noun_class, adjective.before].append((adjective, 1 / (rank + 1)))
    for (construction, *classes), entries in _sections("verbs"):
        split = classes.index(">") if ">" in classes else len(classes)
        subjects, objects = tuple(classes[:split]), tuple(classes[split + 1 :])
        for rank, entry in enumerate(entries, start=1):
            verb = _verb(entry, subjects, objects)
            if construction == "control":
                verb = verb._replace(particle=None)  # because `to` belongs to the infinitive
            verbs[construction].append((verb, math.sqrt(len(entries)) / (rank + 1)))
    for (section,), entries in _sections("adverbs"):
        adverbs[section] = _weighted([_name(entry, False) for entry in entries])
    for (section,), entries in _sections("names"):
        female = section in ("woman", "country-f")
        names[section] = _weighted([_name(entry, female) for entry in entries])
    for (tense,), entries in _sections("phrases", separator="\n"):
        phrases[tense] = _weighted([_phrase(entry) for entry in entries])


def _name(entry: str, feminine: bool) -> Name:
    left, right = entry.split()
    return Name(left, right, feminine)


def _weighted(items: list) -> Weighted:
    return Weighted(items, [1 / (rank + 1) for rank, _ in enumerate(items, start=1)])


_load()
