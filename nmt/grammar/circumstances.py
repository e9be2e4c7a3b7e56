"""Adverbial phrases and infinitive phrases, which may contain each other.

Examples: `during the concert`, `for Thomas`, `in order to read without waking the neighbours`
"""

from __future__ import annotations

from nmt.grammar.draft import Draft, Referent
from nmt.grammar.lexicon import Verb
from nmt.grammar.noun_phrases import write_noun_phrase, write_person, write_place
from nmt.grammar.nouns import write_name
from nmt.grammar.verbs import verbs_with_subject, write_infinitive

# Values of `Verb.objects` for the verbs that are never followed by `for somebody`
_NO_BENEFICIARY = (
    ("person",),
    ("person", "animal", "thing"),
    ("idea",),
    ("idea", "matter"),
    ("area", "route"),
)


def write_circumstances(
    draft: Draft, subject: Referent, verb: Verb, construction: str, budget: int
) -> None:
    """Writes at most two adverbial phrases after a verb and its complements, and often none."""
    end = len(draft.source) + budget
    roll = draft.draw() % 100
    if budget < 3 or roll < 12:
        return
    person = subject.noun_class == "person"
    willed = verb.willed and person
    if willed and roll < 30 and budget >= 6:
        draft.put_block(("in", "order", "to"), ("pour",))
        write_infinitive_phrase(draft, subject, budget - 3)
    elif willed and roll < 40 and budget >= 5:
        if roll % 2:
            draft.put("without", "sans")
        else:
            draft.put_block(("before",), ("avant", "de"), ((0, 0),))
        write_infinitive_phrase(draft, subject, min(budget - 1, 6), gerund=True, definite=True)
    elif (
        roll < 65
        and len(draft.source) - draft.last_place > 8
        and construction != "locative"
        and subject.noun_class in ("person", "animal")
        and "building" not in verb.objects
        and "area" not in verb.objects
    ):
        write_place(draft, min(budget, 7), small="thing" in verb.objects)
    elif roll < 82 and person and construction in ("intransitive", "locative"):
        draft.put("with", "avec")
        write_person(draft, 0.3, min(budget - 1, 9), subject)
    elif (
        roll < 75
        and willed
        and verb.objects not in _NO_BENEFICIARY
        and construction == "transitive"
    ):
        draft.put("for", "pour")
        write_person(draft, 0.3, min(budget - 1, 9), subject)
    elif subject.noun_class not in ("event", "contest", "idea", "matter") and draft.chance(0.5):
        write_time(draft, budget)
        return
    left = end - len(draft.source)
    if left >= 4 and roll >= 40 and draft.chance(0.3):
        write_time(draft, left)


def write_time(draft: Draft, budget: int) -> None:
    """Writes a phrase of time: `before`, `during` or `after` with an event."""
    when = (("after", "après"), ("before", "avant"), ("during", "pendant"))
    draft.put(*when[draft.draw() % 3])
    draft.depth += 1
    write_noun_phrase(draft, ("event", "contest"), min(budget - 1, 4), definite=True, singular=True)
    draft.depth -= 1


def pick_object_budget(draft: Draft, budget: int) -> int:
    """Picks how many words of `budget` an object gets; the rest is for adverbial phrases."""
    return budget if budget < 6 or draft.chance(0.4) else 2 + draft.draw() % (budget - 4)


def write_infinitive_phrase(
    draft: Draft,
    subject: Referent,
    budget: int,
    to: tuple[int, ...] = (),
    gerund: bool = False,
    definite: bool = False,
) -> None:
    """Writes an infinitive with its object and adverbial phrases.

    Args:
        subject: the implied subject.
        to: position of the English word `to`, if it is linked to the French infinitive.
        gerund: whether the English verb is a gerund instead of an infinitive.
        definite: whether the object is definite.
    """
    end = len(draft.source) + budget
    construction = "transitive" if budget >= 3 and draft.chance(0.85) else "intransitive"
    verbs = verbs_with_subject(construction, "person")
    assert verbs is not None
    verb = verbs.pick(draft.draw)
    while not verb.willed or verb.preposition is not None:
        verb = verbs.pick(draft.draw)
    write_infinitive(draft, verb, subject, to, gerund)
    if construction == "transitive":
        left = end - len(draft.source)
        if verb.objects == ("person",) and draft.chance(0.4):
            write_name(draft)
        else:
            write_noun_phrase(
                draft, verb.objects, pick_object_budget(draft, left), subject, definite=definite
            )
    write_circumstances(draft, subject, verb, construction, end - len(draft.source))
