"""Noun phrases with their modifiers, and prepositional phrases of place.

Example: `the king 's old car in front of the house` -> `la vieille voiture du roi devant la maison`
"""

from __future__ import annotations

from typing import NamedTuple

from nmt.grammar import lexicon
from nmt.grammar.draft import Draft, Referent
from nmt.grammar.lexicon import Adjective, Noun
from nmt.grammar.nouns import (
    THE,
    Nominal,
    adjectives_of,
    pick_noun,
    write_determiner,
    write_name,
    write_nominal,
)
from nmt.grammar.stream import RANGE, Weighted

_SINGULAR = Weighted(["the", "a", "own", "this", "every", "'s"], [52, 24, 10, 7, 3, 8])
_PLURAL = Weighted(
    ["the", "some", "number", "this", "own", "several", "many", "all"], [46, 16, 9, 6, 9, 4, 5, 4]
)
_MASS = Weighted(["the", "some", "own", "this"], [42, 40, 10, 5])
_DEFINITE = frozenset(("the", "own", "this", "'s", "number", "all"))
_PLURAL_SHARE = int(0.3 * RANGE)  # a random number below this gives a plural

# Nouns of these classes have no owner
_OWNERLESS = frozenset(
    ("spot", "route", "opening", "surface", "event", "contest", "area", "food", "drink", "music")
)
# Nouns of these classes may have two adjectives: `a little red car`
_CONCRETE = frozenset(("person", "animal", "thing", "clothes", "vehicle", "building"))


class Preposition(NamedTuple):
    """A preposition of place."""

    english: tuple[str, ...]
    french: tuple[str, ...]
    noun_classes: tuple[str, ...]  # semantic classes of the noun
    sure: tuple[tuple[int, int], ...] = ((0, 0),)  # sure links (English word, French word)


_IN = Preposition(("in",), ("dans",), ("building", "area"))
_BETWEEN = Preposition(("between",), ("entre",), ("building", "spot", "route"))
_PREPOSITIONS = Weighted(
    [
        _IN,
        Preposition(("near",), ("près", "de"), ("building", "spot", "route")),
        Preposition(("in", "front", "of"), ("devant",), ("building",), ((1, 0),)),
        Preposition(("behind",), ("derrière",), ("building",)),
        Preposition(("on",), ("sur",), ("surface",)),
        Preposition(("under",), ("sous",), ("surface",)),
        _BETWEEN,
        Preposition(
            ("far", "from"), ("loin", "de"), ("building", "spot", "route"), ((0, 0), (1, 1))
        ),
    ],
    [46, 16, 8, 7, 8, 4, 4, 5],
)


def write_noun_phrase(
    draft: Draft,
    noun_classes: tuple[str, ...],
    budget: int,
    owner: Referent | None = None,
    definite: bool = False,
    negated: bool = False,
    singular: bool = False,
    subject: bool = False,
) -> Referent:
    """Writes a noun phrase of at least two words.

    Args:
        noun_classes: semantic classes that the noun may have.
        budget: approximate number of English words.
        owner: the owner that a possessive such as `his` refers to. None: no possessive.
        definite: allows only determiners that may follow `de`.
        negated: whether the phrase is the direct object of a negated verb (`pas de pain`).
        singular: whether the noun must be singular.
        subject: whether the phrase is a subject. Only subjects may have `every`.
    """
    noun = pick_noun(draft, noun_classes)
    plural = not noun.mass and not singular and draft.draw() < _PLURAL_SHARE
    determiner = (_MASS if noun.mass else _PLURAL if plural else _SINGULAR).pick(draft.draw)
    if (
        (determiner == "own" and (owner is None or owner.noun_class not in ("person", "org")))
        or (definite and determiner not in _DEFINITE)
        or (determiner == "every" and not subject)
        or (determiner in ("own", "'s") and noun.noun_class == "person" and not noun.relation)
        or (determiner == "'s" and (budget < 4 or noun.noun_class in _OWNERLESS or draft.depth > 1))
        or (negated and determiner not in ("the", "a", "some", "own", "this"))
    ):
        determiner = "the"  # always fits
    left = budget - 2
    before, after = _pick_adjectives(draft, noun, left)
    left -= (before is not None) + (after is not None)
    nominal = Nominal(noun, plural, before, after)
    if determiner == "'s":
        left -= 2
        write_possessed(draft, nominal)
    else:
        write_determiner(draft, determiner, nominal, owner, negated)
        write_nominal(draft, nominal)
    referent = nominal.referent()
    if left >= 3 and determiner != "every" and not negated:
        _write_modifier(draft, referent, left)
    return referent


def _pick_adjectives(
    draft: Draft, noun: Noun, budget: int
) -> tuple[Adjective | None, Adjective | None]:
    """Picks at most one adjective before the French noun, and at most one after it."""
    if budget <= 0 or not draft.chance(0.5):
        return None, None
    before = adjectives_of(noun.noun_class, True) if draft.chance(0.5) else None
    both = budget > 1 and noun.noun_class in _CONCRETE and draft.chance(0.25)
    after = adjectives_of(noun.noun_class, False) if before is None or both else None
    return (
        draft.pick_unused(before) if before is not None else None,
        draft.pick_unused(after) if after is not None else None,
    )


def write_person(
    draft: Draft,
    named: float,
    budget: int,
    owner: Referent | None = None,
    definite: bool = False,
    singular: bool = False,
) -> Referent:
    """Writes the name of a person with probability `named`, and otherwise a noun phrase."""
    if draft.chance(named):
        return write_name(draft)
    return write_noun_phrase(
        draft, ("person",), budget, owner, definite=definite, singular=singular
    )


def write_possessed(draft: Draft, nominal: Nominal) -> None:
    """Writes a possessor and a noun: `the king 's car` -> `la voiture du roi`."""
    mark = len(draft.target)
    draft.depth += 2
    write_person(draft, 0.5, 2, definite=True, singular=True)
    draft.depth -= 2
    possessor, links = draft.target[mark:], draft.links[mark:]
    del draft.target[mark:], draft.links[mark:]
    at = draft.put_english("'s")
    draft.put_french(THE[nominal.noun.feminine][False], possible=at)
    write_nominal(draft, nominal)
    draft.put_french("de", at)
    draft.target += possessor
    draft.links += links


def _write_modifier(draft: Draft, noun: Referent, budget: int) -> None:
    """Writes a relative clause, a prepositional phrase or nothing after a noun."""
    noun_class = noun.noun_class
    if budget >= 4 and draft.depth < 2 and draft.chance(0.5):
        draft.clauses.relative(draft, noun, min(budget, 12))
        return
    roll = draft.draw() % 100
    if noun_class == "opening":
        draft.put("of", "de")
        write_noun_phrase(draft, ("building",), budget - 1, definite=True, singular=True)
    elif noun_class in ("person", "org") and roll < 25:
        origin = "city" if roll < 12 else "country-f" if roll < 20 else "country-m"
        name = lexicon.names[origin].pick(draft.draw)
        draft.put("from", "de")
        if origin == "country-m":
            draft.put_french("~le", possible=(len(draft.source),))
        draft.put(name.english, name.french)
    elif noun_class in ("idea", "matter") and roll < 60:
        draft.put("of", "de")
        draft.depth += 1
        write_noun_phrase(draft, ("org", "person"), budget - 1, definite=True, singular=True)
        draft.depth -= 1
    elif noun_class in ("thing", "text", "clothes", "food") and roll < 60:
        draft.depth += 1
        write_place(draft, budget, small=True)
        draft.depth -= 1
    elif noun_class in ("person", "animal", "building", "spot", "route", "vehicle") and roll < 50:
        draft.depth += 1
        write_place(draft, budget)
        draft.depth -= 1


def write_place(draft: Draft, budget: int, small: bool = False) -> None:
    """Writes a phrase of place, such as `near the house`.

    Args:
        small: whether the thing at this place is small enough to lie on or under furniture.
    """
    draft.last_place = len(draft.source)
    if draft.chance(0.25):
        _write_city_or_country(draft)
        return
    preposition = _PREPOSITIONS.pick(draft.draw)
    while preposition.noun_classes == ("surface",) and not small:
        preposition = _PREPOSITIONS.pick(draft.draw)
    if preposition is _BETWEEN and budget < 6:
        preposition = _IN
    draft.put_block(preposition.english, preposition.french, preposition.sure)
    budget -= len(preposition.english)
    if preposition is _BETWEEN:
        write_noun_phrase(draft, preposition.noun_classes, 2, definite=True, singular=True)
        draft.put("and", "et")
        budget -= 3
    definite = preposition is _BETWEEN or preposition.french[-1] == "de"
    write_noun_phrase(draft, preposition.noun_classes, budget, definite=definite, singular=True)


def _write_city_or_country(draft: Draft) -> None:
    """Writes a place: `in Paris` -> `à Paris`, `in France` -> `en France`, `in Japan` -> `au Japon`."""
    noun_class = ("city", "country-f", "country-m")[draft.draw() % 3]
    name = lexicon.names[noun_class].pick(draft.draw)
    at = draft.put_english("in")
    draft.put_french("en" if noun_class == "country-f" else "à", at)
    if noun_class == "country-m":
        draft.put_french("~le", possible=at)
    draft.put(name.english, name.french)
