"""Sentences: an opening, and clauses until the sentence has about the requested length."""

from __future__ import annotations

from typing import NamedTuple

from nmt.grammar import lexicon
from nmt.grammar.clauses import RULES, write_clause
from nmt.grammar.draft import FUTURE, PAST, PRESENT, PROGRESSIVE, AlignedPair, Draft
from nmt.grammar.noun_phrases import write_place
from nmt.grammar.stream import Draw, Weighted

_TENSES = Weighted([PAST, PRESENT, FUTURE], [48, 33, 19])


class Conjunction(NamedTuple):
    """A conjunction that joins a clause to a sentence."""

    comma: bool  # whether a comma precedes the conjunction
    english: tuple[str, ...]
    french: tuple[str, ...]
    tenses: dict[str, str]  # tense of the joined clause for each tense of the sentence
    sure: tuple[tuple[int, int], ...] = ((0, 0),)  # sure links (English word, French word)


_SAME = {PAST: PAST, PRESENT: PRESENT, FUTURE: FUTURE}
_GENERAL = {PAST: PAST, PRESENT: PRESENT, FUTURE: PRESENT}
_DURING = {PAST: PROGRESSIVE, PRESENT: PRESENT}
_TIMED = {PAST: PAST, PRESENT: PRESENT}
_AND = Conjunction(True, ("and",), ("et",), _SAME)
_BUT = Conjunction(True, ("but",), ("mais",), _SAME)
_BECAUSE = Conjunction(False, ("because",), ("parce", "que"), _GENERAL)
_WHILE = Conjunction(False, ("while",), ("pendant", "que"), _DURING)
_WHEN = Conjunction(False, ("when",), ("quand",), _TIMED)
_SO = Conjunction(True, ("so",), ("donc",), _SAME)
_IF = Conjunction(False, ("if",), ("si",), {FUTURE: PRESENT})
_AS_SOON_AS = Conjunction(False, ("as", "soon", "as"), ("dès", "que"), _TIMED, ((1, 0), (2, 1)))
# Conjunctions after the first clause (`_JOINING`) and before it (`_OPENING`), by tense
_JOINING = {
    PAST: Weighted([_AND, _BUT, _BECAUSE, _WHILE, _WHEN, _SO], [34, 22, 18, 12, 7, 7]),
    PRESENT: Weighted([_AND, _BUT, _BECAUSE, _WHILE, _WHEN, _SO], [34, 22, 20, 9, 8, 7]),
    FUTURE: Weighted([_AND, _BUT, _BECAUSE, _IF, _SO], [38, 22, 18, 15, 7]),
}
_OPENING = {
    PAST: Weighted([_WHEN, _WHILE, _AS_SOON_AS], [5, 4, 2]),
    PRESENT: Weighted([_WHEN, _WHILE, _AS_SOON_AS], [5, 3, 2]),
    FUTURE: Weighted([_IF], [1]),
}
_SHORTEST = 5  # minimum number of English words planned for a clause
_LONGEST = 17  # maximum number of English words planned for a clause


def derive(draw: Draw, length: int) -> AlignedPair:
    """Derives a sentence pair of about `length` English words."""
    draft = Draft(draw, RULES)
    end = length - 1  # position of the full stop
    tense = _TENSES.pick(draw)
    _write_opening(draft, tense, length)
    write_clause(draft, tense, _pick_budget(draft, end))
    previous: Conjunction | None = None
    while end - len(draft.source) >= _SHORTEST + 2:
        conjunction = _JOINING[tense].pick(draw)
        if conjunction is previous or (previous is _BECAUSE and not conjunction.comma):
            conjunction = _AND if previous is not _AND else _BUT
        if len(draft.source) > 24 and conjunction.comma and draft.chance(0.35):
            draft.put(";", ";")
            draft.last_subject = None
            if draft.chance(0.25):
                tense = _TENSES.pick(draw)
            write_clause(draft, tense, _pick_budget(draft, end))
            previous = None
        else:
            _write_joined_clause(draft, conjunction, tense, _pick_budget(draft, end))
            previous = conjunction
    draft.put(".", ".")
    return draft.pair()


def _write_opening(draft: Draft, tense: str, length: int) -> None:
    """Sometimes writes a time, a place or a clause before the main clause."""
    if length >= 8 and draft.chance(0.16):
        draft.put_phrase(lexicon.phrases[tense].pick(draft.draw))
    elif length >= 10 and draft.chance(0.05):
        write_place(draft, 4)
    elif length >= 13 and draft.chance(0.16):
        conjunction = _OPENING[tense].pick(draft.draw)
        _write_joined_clause(draft, conjunction, tense, 6 + draft.draw() % 4)
    else:
        return
    draft.put(",", ",")


def _pick_budget(draft: Draft, end: int) -> int:
    """Picks the number of words of a clause, and often leaves some words for another clause."""
    left = end - len(draft.source)
    if left <= 11:
        return left
    longest = min(left - _SHORTEST - 1, _LONGEST)
    part = 6 + draft.draw() % (longest - 4)
    return left if left <= _LONGEST and draft.chance(0.4) else part


def _write_joined_clause(draft: Draft, conjunction: Conjunction, tense: str, budget: int) -> None:
    if conjunction.comma:
        draft.put(",", ",")
    draft.put_block(conjunction.english, conjunction.french, conjunction.sure)
    budget -= len(conjunction.english) + conjunction.comma
    write_clause(draft, conjunction.tenses[tense], budget)
