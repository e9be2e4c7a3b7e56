"""Sentences: clauses joined, opened, punctuated and brought to about a wanted length."""

from __future__ import annotations

from typing import NamedTuple

from nmt.grammar import french, lexicon
from nmt.grammar.clauses import Clauses
from nmt.grammar.stream import Draw, Weighted
from nmt.grammar.verbs import FUTURE, PAST, PRESENT, PROGRESSIVE

_TENSES = Weighted([PAST, PRESENT, FUTURE], [48, 33, 19])


class AlignedPair(NamedTuple):
    """A sentence pair: words as Moses tokenises them, and links (i, j) from 0, sorted.

    No link is both in `sure` and in `possible` (Och and Ney 2003; `nmt.grammar.french.Links`).
    """

    source: list[str]
    target: list[str]
    sure: list[tuple[int, int]]
    possible: list[tuple[int, int]]

    def pharaoh(self) -> str:
        """The links on one line: `i-j` a sure one, `ipj` a possible one."""
        marked = [(*link, "-") for link in self.sure] + [(*link, "p") for link in self.possible]
        return " ".join(f"{i}{mark}{j}" for i, j, mark in sorted(marked))

    def reversed(self) -> AlignedPair:
        """The pair in the other direction."""
        sure, possible = (sorted((j, i) for i, j in links) for links in (self.sure, self.possible))
        return AlignedPair(self.target, self.source, sure, possible)


class Joint(NamedTuple):
    """How a further clause follows: its words, and its tense by that of the sentence."""

    comma: bool
    english: tuple[str, ...]
    french: tuple[str, ...]
    tenses: dict[str, str]
    sure: tuple[tuple[int, int], ...] = ((0, 0),)  # links; the others are possible


_SAME = {PAST: PAST, PRESENT: PRESENT, FUTURE: FUTURE}
_GENERAL = {PAST: PAST, PRESENT: PRESENT, FUTURE: PRESENT}
_DURING = {PAST: PROGRESSIVE, PRESENT: PRESENT}
_TIMED = {PAST: PAST, PRESENT: PRESENT}
_AND = Joint(True, ("and",), ("et",), _SAME)
_BUT = Joint(True, ("but",), ("mais",), _SAME)
_BECAUSE = Joint(False, ("because",), ("parce", "que"), _GENERAL)
_WHILE = Joint(False, ("while",), ("pendant", "que"), _DURING)
_WHEN = Joint(False, ("when",), ("quand",), _TIMED)
_SO = Joint(True, ("so",), ("donc",), _SAME)
_IF = Joint(False, ("if",), ("si",), {FUTURE: PRESENT})
_AS_SOON_AS = Joint(False, ("as", "soon", "as"), ("dès", "que"), _TIMED, ((1, 0), (2, 1)))
_FURTHER = {
    PAST: Weighted([_AND, _BUT, _BECAUSE, _WHILE, _WHEN, _SO], [34, 22, 18, 12, 7, 7]),
    PRESENT: Weighted([_AND, _BUT, _BECAUSE, _WHILE, _WHEN, _SO], [34, 22, 20, 9, 8, 7]),
    FUTURE: Weighted([_AND, _BUT, _BECAUSE, _IF, _SO], [38, 22, 18, 15, 7]),
}
_OPENING = {
    PAST: Weighted([_WHEN, _WHILE, _AS_SOON_AS], [5, 4, 2]),
    PRESENT: Weighted([_WHEN, _WHILE, _AS_SOON_AS], [5, 3, 2]),
    FUTURE: Weighted([_IF], [1]),
}
_SHORTEST = 5  # words of a clause worth adding
_LONGEST = 17


class Derivation(Clauses):
    """The derivation of one sentence of about `length` English words."""

    def __init__(self, draw: Draw, length: int) -> None:
        super().__init__(draw)
        self.length = length

    def left(self) -> int:
        """English words until the wanted length, the full stop left out."""
        return self.length - 1 - len(self.source)

    def part(self) -> int:
        """The budget of the next clause: all that is left, or so much as leaves another clause."""
        left = self.left()
        if left <= 11:
            return left
        longest = min(left - _SHORTEST - 1, _LONGEST)
        part = 6 + self.draw() % (longest - 4)
        return left if left <= _LONGEST and self.chance(0.4) else part

    def join_clause(self, joint: Joint, tense: str, budget: int) -> None:
        if joint.comma:
            self.put(",", ",")
        self.put_block(joint.english, joint.french, joint.sure)
        self.clause(budget - len(joint.english) - joint.comma, joint.tenses[tense])

    def write(self) -> AlignedPair:
        tense = _TENSES.pick(self.draw)
        length = self.length
        if length >= 8 and self.chance(0.16):
            self.put_phrase(lexicon.phrases[tense].pick(self.draw))
            self.put(",", ",")
        elif length >= 10 and self.chance(0.05):
            self.place(4)
            self.put(",", ",")
        elif length >= 13 and self.chance(0.16):
            joint = _OPENING[tense].pick(self.draw)
            self.join_clause(joint, tense, 6 + self.draw() % 4)
            self.put(",", ",")
        self.clause(self.part(), tense)
        previous: Joint | None = None
        while self.left() >= _SHORTEST + 2:
            joint = _FURTHER[tense].pick(self.draw)
            if joint is previous or (previous is _BECAUSE and not joint.comma):
                joint = _AND if previous is not _AND else _BUT
            if len(self.source) > 24 and joint.comma and self.chance(0.35):
                self.put(";", ";")
                self.last = None
                if self.chance(0.25):
                    tense = _TENSES.pick(self.draw)
                self.clause(self.part(), tense)
                previous = None
                continue
            self.join_clause(joint, tense, self.part())
            previous = joint
        self.put(".", ".")
        return self.pair()

    def pair(self) -> AlignedPair:
        """The sentence as it is written in both languages."""
        words, links = french.join(self.words, self.links)
        self.source[0] = self.source[0][0].upper() + self.source[0][1:]
        words[0] = words[0][0].upper() + words[0][1:]
        sure = {(i, j) for j, word in enumerate(links) for i in word.sure}
        possible = {(i, j) for j, word in enumerate(links) for i in word.possible}
        return AlignedPair(self.source, words, sorted(sure), sorted(possible - sure))
