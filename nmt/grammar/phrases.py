"""Noun phrases and prepositional phrases, in both languages at once.

A `Derivation` writes the English words in their order and, beside them, the French words in
theirs, each French word with the English positions it comes from. What stands elsewhere in
French (adjectives, possessors, pronouns) is written there at once; nothing is aligned afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import NamedTuple, TypeVar

from nmt.grammar import english, lexicon
from nmt.grammar.french import Links
from nmt.grammar.lexicon import Adjective, Noun, Phrase
from nmt.grammar.stream import Draw, Weighted, threshold

Word = TypeVar("Word", Noun, Adjective)

# Persons, as the verb tables number them.
JE, IL, NOUS, VOUS, ILS = range(5)


class Referent(NamedTuple):
    """What agrees with a noun phrase or pronoun: a verb, a participle, a possessive."""

    person: int
    feminine: bool
    plural: bool
    noun_class: str  # semantic class


@cache
def nouns_of(noun_classes: tuple[str, ...], mass: bool = True) -> Weighted[Noun]:
    """Nouns of any of these classes, each class as likely as another."""
    pairs = [
        pair
        for noun_class in noun_classes
        for pair in lexicon.nouns[noun_class]
        if mass or not pair[0].mass
    ]
    shares = {
        noun_class: sum(w for _, w in lexicon.nouns[noun_class]) for noun_class in noun_classes
    }
    return Weighted([noun for noun, _ in pairs], [w / shares[noun.noun_class] for noun, w in pairs])


@cache
def adjectives_of(noun_class: str, before: bool) -> Weighted[Adjective] | None:
    pairs = lexicon.adjectives.get((noun_class, before))
    return Weighted([a for a, _ in pairs], [w for _, w in pairs]) if pairs else None


# my, our, ... by the person of the owner: English, and French[feminine, plural] of what is owned.
_POSSESSIVES = {
    JE: ("my", ("mon", "~ma", "mes")),
    NOUS: ("our", ("notre", "notre", "nos")),
    VOUS: ("your", ("votre", "votre", "vos")),
    ILS: ("their", ("leur", "leur", "leurs")),
}
_OF_ONE = ("son", "~sa", "ses")
_NUMERALS = Weighted(
    [
        ("two", "deux"), ("three", "trois"), ("four", "quatre"), ("five", "cinq"), ("six", "six"),
        ("ten", "dix"), ("seven", "sept"), ("twelve", "douze"), ("nine", "neuf"),
        ("twenty", "vingt"), ("fifteen", "quinze"), ("thirty", "trente"),
        ("twenty-five", "vingt-cinq"), ("fifty", "cinquante"), ("sixteen", "seize"),
        ("forty", "quarante"), ("fourteen", "quatorze"), ("thirty-two", "trente-deux"),
    ],
    [1 / rank for rank in range(1, 19)],
)  # fmt: skip
_SINGULAR = Weighted(["the", "a", "own", "this", "every", "'s"], [52, 24, 10, 7, 3, 8])
_PLURAL = Weighted(
    ["the", "some", "number", "this", "own", "several", "many", "all"], [46, 16, 9, 6, 9, 4, 5, 4]
)
_MASS = Weighted(["the", "some", "own", "this"], [42, 40, 10, 5])
_DEFINITE = frozenset(("the", "own", "this", "'s", "number", "all"))

# Classes of what no single person has.
_OWNERLESS = frozenset(
    ("spot", "route", "opening", "surface", "event", "contest", "area", "food", "drink", "music")
)

# Classes whose nouns take two adjectives well (a little red car).
_CONCRETE = frozenset(("person", "animal", "thing", "clothes", "vehicle", "building"))

HALF = threshold(0.5)
_PLURAL_SHARE = threshold(0.3)


def _in_english(first: Adjective | None, second: Adjective | None) -> list[str]:
    """The adjectives in English order: opinion, size and age, colour or origin."""
    words = [adjective.english for adjective in (first, second) if adjective is not None]
    if first is not None and second is not None and first.size and second.opinion:
        words.reverse()
    return words


class Nouns(ABC):
    """The part of a derivation that writes noun phrases."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.source: list[str] = []
        self.words: list[str] = []  # French, as `french.join` reads them
        self.links: list[Links] = []
        self.used: list[Noun | Adjective] = []  # so that a sentence seldom says a word twice
        self.depth = 0
        self.placed = -99  # where it was last said where

    def chance(self, probability: float) -> bool:
        return self.draw() < probability * 4294967296.0

    def put(self, source: str, target: str) -> None:
        """One English word for one French word."""
        self.links.append(Links((len(self.source),)))
        self.source.append(source)
        self.words.append(target)

    def put_block(
        self,
        source: tuple[str, ...],
        target: tuple[str, ...],
        sure: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """English words that mean French words together: all linked to all.

        Args:
            sure: which of these links (i, j) are; the others are possible.
        """
        start = len(self.source)
        self.source += source
        self.words += target
        for j in range(len(target)):
            own = tuple(start + i for i in range(len(source)) if (i, j) in sure)
            rest = tuple(start + i for i in range(len(source)) if (i, j) not in sure)
            self.links.append(Links(own, rest))

    def put_phrase(self, phrase: Phrase) -> None:
        start = len(self.source)
        self.source += phrase.english
        self.words += phrase.french
        for links in phrase.links:
            self.links.append(
                Links(
                    tuple(start + i for i in links.sure), tuple(start + i for i in links.possible)
                )
            )

    def noun(self, noun_classes: tuple[str, ...], mass: bool = True) -> Noun:
        return self._unused(nouns_of(noun_classes, mass), tries=4)

    def quality(self, choice: Weighted[Adjective]) -> Adjective:
        return self._unused(choice, tries=3)

    def _unused(self, choice: Weighted[Word], tries: int) -> Word:
        """A draw that the sentence does not have yet, or the last of so many tries."""
        for _ in range(tries):
            item = choice.pick(self.draw)
            if item not in self.used:
                break
        self.used.append(item)
        return item

    def name(self) -> Referent:
        """A person's name."""
        name = lexicon.names["man" if self.draw() < HALF else "woman"].pick(self.draw)
        self.put(name.english, name.french)
        return Referent(IL, name.feminine, False, "person")

    def noun_phrase(
        self,
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
            noun_classes: semantic classes the noun may have.
            budget: English words to use, kept to as far as the draws allow.
            owner: whose a possessive says it is; None: no possessive.
            definite: only determiners that a French preposition with `de` leaves alone.
            negated: the direct object of a negated verb (pas de pain).
            singular: no plural.
            subject: of a clause, where `every` reads well.
        """
        noun = self.noun(noun_classes)
        plural = not noun.mass and not singular and self.draw() < _PLURAL_SHARE
        choice = _MASS if noun.mass else _PLURAL if plural else _SINGULAR
        determiner = choice.pick(self.draw)
        if (
            (determiner == "own" and (owner is None or owner.noun_class not in ("person", "org")))
            or (definite and determiner not in _DEFINITE)
            or (determiner == "every" and not subject)
            or (determiner in ("own", "'s") and noun.noun_class == "person" and not noun.relation)
            or (
                determiner == "'s"
                and (budget < 4 or noun.noun_class in _OWNERLESS or self.depth > 1)
            )
            or (negated and determiner not in ("the", "a", "some", "own", "this"))
        ):
            determiner = "the"
        extra = budget - 2
        before = after = None
        if extra > 0 and self.draw() < HALF:
            before = adjectives_of(noun.noun_class, True) if self.chance(0.5) else None
            both = extra > 1 and noun.noun_class in _CONCRETE and self.chance(0.25)
            after = adjectives_of(noun.noun_class, False) if before is None or both else None
        first = self.quality(before) if before is not None else None
        second = self.quality(after) if after is not None else None
        extra -= (first is not None) + (second is not None)
        possessor_words: list[str] = []
        possessor_links: list[Links] = []
        if determiner == "'s":
            extra -= 2
            possessor_words, possessor_links = self._possessor(noun)
        else:
            self._determiner(determiner, noun, plural, first, second, owner, negated)
        self._head(noun, plural, first, second)
        self.words += possessor_words
        self.links += possessor_links
        if extra >= 3 and determiner != "every" and not negated:
            self.modifier(noun, plural, extra)
        return Referent(ILS if plural else IL, noun.feminine, plural, noun.noun_class)

    def _possessor(self, noun: Noun) -> tuple[list[str], list[Links]]:
        """Writes `the king 's` and the article of what he owns; returns the French `de ~le roi`."""
        mark = len(self.words)
        self.depth += 2
        if self.chance(0.5):
            self.name()
        else:
            self.noun_phrase(("person",), 2, definite=True, singular=True)
        self.depth -= 2
        words = self.words[mark:]
        links = self.links[mark:]
        del self.words[mark:], self.links[mark:]
        at = (len(self.source),)
        self.source.append("'s")
        self.words.append("~la" if noun.feminine else "~le")
        self.links.append(Links(possible=at))
        return ["de", *words], [Links(at), *links]

    def _determiner(
        self,
        determiner: str,
        noun: Noun,
        plural: bool,
        first: Adjective | None,
        second: Adjective | None,
        owner: Referent | None,
        negated: bool,
    ) -> None:
        """Writes a determiner; `first`, `second`: adjectives before and after the French noun."""
        feminine = noun.feminine
        if determiner == "the":
            self.put("the", "~les" if plural else "~la" if feminine else "~le")
        elif determiner == "a":
            described = _in_english(first, second)
            article = english.article(described[0] if described else noun.english[0])
            self.put(article, "de" if negated else "une" if feminine else "un")
        elif determiner == "some":
            if negated:
                self.put("any", "de")
            elif plural:
                self.put("some", "de" if first is not None else "des")
            else:
                self.put("some", "de")
                self.words.append("~la" if feminine else "~le")
                self.links.append(self.links[-1])
        elif determiner == "own":
            assert owner is not None
            if owner.person == IL:
                word = "its" if owner.noun_class == "org" else "her" if owner.feminine else "his"
                forms = _OF_ONE
            else:
                word, forms = _POSSESSIVES[owner.person]
            self.put(word, forms[2 if plural else int(feminine)])
        elif determiner == "this":
            self.put(
                "these" if plural else "this", "ces" if plural else "cette" if feminine else "~ce"
            )
        elif determiner == "every":
            self.put("every", "chaque")
        elif determiner == "several":
            self.put("several", "plusieurs")
        elif determiner == "many":
            self.put_block(("many",), ("beaucoup", "de"), ((0, 0),))
        elif determiner == "all":
            self.put("all", "toutes" if feminine else "tous")
            self.put("the", "~les")
        elif determiner == "number":
            if self.chance(0.3):
                self.put("the", "~les")
            self.put(*_NUMERALS.pick(self.draw))
        else:
            raise AssertionError(determiner)

    def _head(
        self, noun: Noun, plural: bool, first: Adjective | None, second: Adjective | None
    ) -> None:
        """Adjectives and noun: English adjectives first, French ones around the noun."""
        start = len(self.source)
        self.source += _in_english(first, second)
        swapped = first is not None and second is not None and first.size and second.opinion
        if first is not None:
            form = first.french[noun.feminine][plural]
            if not plural and not noun.feminine:
                form = first.attributive
            self.words.append(form)
            self.links.append(Links((start + swapped,)))
        self.put(noun.english[plural], noun.french[plural])
        if second is not None:
            self.words.append(second.french[noun.feminine][plural])
            self.links.append(Links((start + (first is not None and not swapped),)))

    @abstractmethod
    def modifier(self, noun: Noun, plural: bool, budget: int) -> None:
        """Writes what follows a noun: a relative clause or a prepositional phrase."""
