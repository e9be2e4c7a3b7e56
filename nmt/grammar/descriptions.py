"""Descriptions of a subject: `be` or a similar verb with an adjective, a comparison or a place.

Example: `She was as tall as Peter` -> `Elle était aussi grande que Pierre`
"""

from __future__ import annotations

from nmt.grammar import lexicon
from nmt.grammar.circumstances import write_time
from nmt.grammar.draft import PAST, PROGRESSIVE, Draft, Referent
from nmt.grammar.noun_phrases import write_person, write_place
from nmt.grammar.nouns import adjectives_of
from nmt.grammar.verbs import BE, LINKING, pick_negation, write_verb

# In this grammar, `_ATTRIBUTIVE` adjectives never follow `be`, and `_ABSOLUTE` adjectives have no degrees:
# neither an adverb such as `very` nor a comparison (`as tall as`).
_ATTRIBUTIVE = frozenset(
    [
        "real", "little", "recent", "lonely", "red", "white", "black", "green", "blue", "yellow",
        "grey", "pink", "purple", "brown", "golden", "annual", "religious", "scientific",
    ]
)  # fmt: skip
_ABSOLUTE = frozenset(
    [
        "French", "English", "German", "American", "Italian", "Spanish", "Russian", "Chinese",
        "foreign", "Portuguese", "Greek", "Dutch", "Belgian", "Swiss", "Polish", "Swedish", "Irish",
        "Japanese", "Canadian", "Norwegian", "Brazilian", "Egyptian", "European", "huge", "excellent",
        "magnificent", "incredible", "complete", "innocent", "mute", "blind", "deaf", "furious",
        "delicious", "royal", "medieval", "private", "public", "abandoned", "national", "regional",
        "local", "international",
    ]
)  # fmt: skip


def write_description(draft: Draft, subject: Referent, budget: int) -> None:
    """Writes a description in the tense of the clause."""
    end = len(draft.source) + budget
    person = subject.noun_class == "person"
    tense = PAST if draft.tense == PROGRESSIVE else draft.tense
    before = adjectives_of(subject.noun_class, True)
    after = adjectives_of(subject.noun_class, False)
    roll = draft.draw() % 100
    either = before is not None and subject.noun_class in ("person", "animal", "building")
    choice = before if after is None or (either and roll < 20) else after
    if roll > 85 and budget >= 4 and subject.noun_class in ("person", "animal"):
        write_verb(draft, BE, subject, tense, pick_negation(draft, tense))
        write_place(draft, end - len(draft.source))
        return
    assert choice is not None
    adjective = draft.pick_unused(choice)
    while adjective.english in _ATTRIBUTIVE or (not person and adjective.english in _ABSOLUTE):
        adjective = choice.pick(draft.draw)
    form = adjective.french[subject.feminine][subject.plural]
    gradable = adjective.english not in _ABSOLUTE
    verb = LINKING.pick(draft.draw) if person else BE
    write_verb(draft, verb, subject, tense, pick_negation(draft, tense))
    left = end - len(draft.source)
    if verb is BE and left >= 5 and person and gradable and draft.chance(0.3):
        draft.put("as", "aussi")
        draft.put(adjective.english, form)
        draft.put("as", "que")
        write_person(draft, 0.4, left - 3, definite=True)
        return
    if left >= 2 and gradable and draft.chance(0.4):
        degree = lexicon.adverbs["degree"].pick(draft.draw)
        draft.put(degree.english, degree.french)
    draft.put(adjective.english, form)
    temporary = verb is BE and person and gradable and choice is after
    if temporary and left >= 4 and draft.chance(0.4):
        write_time(draft, left - 1)
