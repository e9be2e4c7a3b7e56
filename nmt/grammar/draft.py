"""Aligned sentence pairs, and the drafts that rules extend word by word.

Alignment links connect words that are translations of each other. A rule that writes words also writes
their links. In this example, `ne ... pas` translates `not`. The link to `pas` is sure. The link to `ne`
is only possible, because `ne` adds no meaning.

    0 She   1 did   2 not   3 see   4 .            sure: 0-0 1-2 2-3 3-4 4-5
    0 Elle  1 n'    2 a     3 pas   4 vu   5 .     possible: 2p1

Agreement means that one word takes gender, number or person from another: `la lettre est longue`,
`les livres sont longs`. A rule for a noun phrase returns a `Referent` with the gender, number and person
of the phrase. Rules for verbs and adjectives take this `Referent` as an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, TypeVar

from nmt.grammar import french
from nmt.grammar.french import Links
from nmt.grammar.lexicon import Adjective, Noun, Phrase
from nmt.grammar.stream import RANGE, Draw, Weighted

Word = TypeVar("Word", Noun, Adjective)

# Grammatical persons, which are indices into the tables of verb forms
JE, IL, NOUS, VOUS, ILS = range(5)

# Tenses, named after the English form. The comments show English and French examples.
PRESENT = "present"  # eats: mange
PAST = "past"  # ate: a mangé; verbs of state have the imperfect (knew: connaissait)
PROGRESSIVE = "progressive"  # was eating: mangeait
PLUPERFECT = "pluperfect"  # had eaten: avait mangé
FUTURE = "future"  # will eat: mangera
CONDITIONAL = "conditional"  # would eat: mangerait

# The time of each tense. The tense of a subordinate clause depends on the time of the outer clause.
TIME = {
    PRESENT: PRESENT, FUTURE: FUTURE,
    PAST: PAST, PROGRESSIVE: PAST, PLUPERFECT: PAST, CONDITIONAL: PAST,
}  # fmt: skip


class AlignedPair(NamedTuple):
    """A sentence pair in Moses tokens, with sorted links (i, j) of source word i and target word j.

    Both i and j start at 0. A link is either sure or possible (Och and Ney 2003). See `nmt.grammar.french.Links`.
    """

    source: list[str]
    target: list[str]
    sure: list[tuple[int, int]]
    possible: list[tuple[int, int]]

    def pharaoh(self) -> str:
        """Returns the links on one line: `i-j` for a sure link, `ipj` for a possible link."""
        marked = [(*link, "-") for link in self.sure] + [(*link, "p") for link in self.possible]
        return " ".join(f"{i}{mark}{j}" for i, j, mark in sorted(marked))

    def reversed(self) -> AlignedPair:
        """Returns the pair with source and target exchanged."""
        sure, possible = (sorted((j, i) for i, j in links) for links in (self.sure, self.possible))
        return AlignedPair(self.target, self.source, sure, possible)


class Referent(NamedTuple):
    """The features of a noun phrase or pronoun with which other words must agree."""

    person: int
    feminine: bool
    plural: bool
    noun_class: str  # semantic class

    @property
    def speaker(self) -> bool:
        """Whether the person is `I`, `we` or `you`."""
        return self.person in (JE, NOUS, VOUS)


@cache
def _link(position: int) -> Links:
    return Links((position,))


class ClauseRules(NamedTuple):
    """The rules for clauses inside other phrases.

    Noun phrases and predicates need these rules, but the module `clauses` imports the modules of noun
    phrases and predicates. To avoid a circular import, each draft has the rules as an attribute.
    """

    relative: Callable[[Draft, Referent, int], None]  # (draft, modified noun, budget)
    reported: Callable[[Draft, Referent, str, int], None]  # (draft, reporter, tense, budget)


@dataclass(slots=True)
class Draft:
    """A sentence pair that rules extend word by word.

    Rules append the words of each language in the word order of that language. Each French word is
    appended with its links.
    """

    draw: Draw
    clauses: ClauseRules
    source: list[str] = field(default_factory=list)
    target: list[str] = field(default_factory=list)  # may contain `~`, which `french.join` removes
    links: list[Links] = field(default_factory=list)  # links of each word of `target`
    used: list[Noun | Adjective] = field(default_factory=list)
    depth: int = 0  # nesting depth; deeply nested phrases are simpler
    tense: str = PRESENT  # tense of the clause being written
    last_subject: Referent | None = None  # a subject pronoun may refer to it
    last_place: int = -99  # source position of the last phrase of place; -99: none yet
    groups: int = 0  # number of groups of persons so far; `they` is ambiguous if there are several

    def chance(self, probability: float) -> bool:
        return self.draw() < probability * RANGE

    def pick_unused(self, choice: Weighted[Word], tries: int = 3) -> Word:
        """Picks a word that is not in the sentence yet, but accepts any word at the last of `tries` attempts."""
        for _ in range(tries):
            item = choice.pick(self.draw)
            if item not in self.used:
                break
        self.used.append(item)
        return item

    def put(self, source: str, target: str) -> None:
        """Appends an English word and its French translation."""
        self.links.append(_link(len(self.source)))
        self.source.append(source)
        self.target.append(target)

    def put_english(self, *words: str) -> tuple[int, ...]:
        """Appends English words, and returns their positions for links."""
        start = len(self.source)
        self.source += words
        return tuple(range(start, len(self.source)))

    def put_french(
        self, word: str, sure: tuple[int, ...] = (), possible: tuple[int, ...] = ()
    ) -> None:
        """Appends a French word with links to positions of English words."""
        self.target.append(word)
        self.links.append(Links(sure, possible))

    def put_block(
        self,
        source: tuple[str, ...],
        target: tuple[str, ...],
        sure: tuple[tuple[int, int], ...] = (),
    ) -> None:
        """Appends a phrase that is translated as a whole, with links from each English word to each French word.

        Args:
            sure: the sure links (i, j) in the phrase. All other links are only possible.
        """
        at = self.put_english(*source)
        for j, word in enumerate(target):
            surely = tuple(at[i] for i, column in sure if column == j)
            self.put_french(word, surely, tuple(i for i in at if i not in surely))

    def put_phrase(self, phrase: Phrase) -> None:
        """Appends a phrase of the lexicon."""
        at = self.put_english(*phrase.english)
        for word, links in zip(phrase.french, phrase.links, strict=True):
            self.put_french(
                word, tuple(at[i] for i in links.sure), tuple(at[i] for i in links.possible)
            )

    def pair(self) -> AlignedPair:
        """Returns the finished sentence pair, with contractions and initial capitals."""
        words, links = french.join(self.target, self.links)
        self.source[0] = self.source[0][0].upper() + self.source[0][1:]
        words[0] = words[0][0].upper() + words[0][1:]
        sure = {(i, j) for j, word in enumerate(links) for i in word.sure}
        possible = {(i, j) for j, word in enumerate(links) for i in word.possible}
        return AlignedPair(self.source, words, sorted(sure), sorted(possible - sure))
