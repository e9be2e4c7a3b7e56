"""Main clauses with their subjects, relative clauses and reported clauses.

The grammar is recursive: noun phrases contain relative clauses, and predicates contain reported
clauses. The modules of these phrases call `RULES` through `Draft.clauses`, because a module that this
module imports cannot import it.
"""

from __future__ import annotations

from nmt.grammar.draft import (
    FUTURE,
    IL,
    ILS,
    JE,
    NOUS,
    PAST,
    PLUPERFECT,
    PRESENT,
    PROGRESSIVE,
    TIME,
    VOUS,
    ClauseRules,
    Draft,
    Referent,
)
from nmt.grammar.noun_phrases import write_noun_phrase, write_person, write_place
from nmt.grammar.nouns import (
    THE,
    Nominal,
    adjectives_of,
    pick_noun,
    write_determiner,
    write_name,
    write_nominal,
)
from nmt.grammar.predicates import write_predicate
from nmt.grammar.stream import Weighted
from nmt.grammar.verbs import (
    BE,
    pick_adverb,
    pick_negation,
    settle_tense,
    verbs_with_object,
    verbs_with_subject,
    write_verb,
)

# Subject pronouns by person and gender
_PRONOUNS = {
    (JE, False): ("I", "je"),
    (NOUS, False): ("we", "nous"),
    (VOUS, False): ("you", "vous"),
    (IL, False): ("he", "il"),
    (IL, True): ("she", "elle"),
    (ILS, False): ("they", "ils"),
    (ILS, True): ("they", "elles"),
}
_PRONOUN_REFERENTS = Weighted(
    [
        Referent(JE, False, False, "person"),
        Referent(NOUS, False, True, "person"),
        Referent(VOUS, False, True, "person"),
        Referent(IL, False, False, "person"),
        Referent(IL, True, False, "person"),
    ],
    [5, 4, 3, 4, 4],
)
_SUBJECT_CLASSES = Weighted(
    [
        "person", "org", "animal", "event", "contest", "idea", "matter", "vehicle", "building",
        "thing", "text",
    ],
    [72, 9, 8, 3, 1, 3, 2, 2, 2, 1, 1],
)  # fmt: skip
# Tenses of a relative clause, by the time of the clause that contains it
_RELATIVE = {
    PRESENT: Weighted([PRESENT, PAST], [75, 25]),
    PAST: Weighted([PAST, PROGRESSIVE, PLUPERFECT], [45, 25, 30]),
    FUTURE: Weighted([PRESENT, PAST], [75, 25]),
}
# In the passive, `be` describes an event, not a state: `was written` -> `a été écrit`
_BE_PASSIVE = BE._replace(state=False)


def write_clause(draft: Draft, tense: str, budget: int) -> None:
    """Writes a clause of about `budget` English words."""
    draft.tense = tense
    roll = draft.draw() % 1000
    if roll < 45 and budget >= 6:
        _write_existential(draft, TIME[tense] == PAST, budget)
        return
    if roll < 110 and budget >= 7 and tense != PROGRESSIVE:
        _write_passive(draft, tense, budget)
        return
    end = len(draft.source) + budget
    subject = _write_subject(draft, max(2, budget // 3 + draft.draw() % 3 - 1))
    write_predicate(draft, subject, end - len(draft.source))


def _write_subject(draft: Draft, budget: int) -> Referent:
    """Writes a subject, which is often a pronoun that refers to the last subject."""
    last = draft.last_subject
    if last is not None and draft.chance(0.42):
        unambiguous = last.noun_class == "person" and (not last.plural or draft.groups == 1)
        if last.speaker or unambiguous:
            draft.put(*_PRONOUNS[last.person, last.feminine])
            return last
    roll = draft.draw() % 100
    if roll < 9 and last is None:
        draft.last_subject = _write_any_pronoun(draft)
        return draft.last_subject
    if roll < 26 and budget < 6:
        draft.last_subject = write_name(draft)
        return draft.last_subject
    return _write_full_subject(draft, _SUBJECT_CLASSES.pick(draft.draw), budget)


def _write_full_subject(draft: Draft, noun_class: str, budget: int) -> Referent:
    """Writes a noun phrase as the subject, or sometimes two persons joined by `and`."""
    referent = write_noun_phrase(draft, (noun_class,), budget, subject=True)
    if noun_class == "person" and referent.plural:
        draft.groups += 1
    if noun_class == "person" and budget >= 5 and draft.depth == 0 and draft.chance(0.08):
        draft.put("and", "et")
        other = write_noun_phrase(draft, (noun_class,), 3)
        referent = Referent(ILS, referent.feminine and other.feminine, True, noun_class)
        draft.groups += 1
    draft.last_subject = referent
    return referent


def _write_any_pronoun(draft: Draft) -> Referent:
    """Writes one of the subject pronouns `I`, `we`, `you`, `he` and `she`."""
    referent = _PRONOUN_REFERENTS.pick(draft.draw)
    draft.put(*_PRONOUNS[referent.person, referent.feminine])
    return referent


def _write_existential(draft: Draft, past: bool, budget: int) -> None:
    """Writes a clause that says what exists somewhere: `there is a book on the table`."""
    noun_classes = ("person", "animal", "thing", "vehicle")
    noun = pick_noun(draft, (noun_classes[draft.draw() % 4],))
    plural = draft.chance(0.4)
    be = ("was", "were") if past else ("is", "are")
    draft.put_block(("there", be[plural]), ("il", "y", "avait" if past else "a"), ((1, 2),))
    choice = adjectives_of(noun.noun_class, False)
    adjective = choice.pick(draft.draw) if choice is not None and draft.chance(0.4) else None
    determiner = "a"
    if plural:
        determiner = "some" if draft.chance(0.4) else "number"
    nominal = Nominal(noun, plural, after=adjective)
    write_determiner(draft, determiner, nominal)
    write_nominal(draft, nominal)
    write_place(draft, max(3, budget - 4), small=noun.noun_class == "thing")


def _write_passive(draft: Draft, tense: str, budget: int) -> None:
    """Writes a passive clause: `the letter was written by the queen`."""
    verbs = verbs_with_subject("transitive", "person")
    assert verbs is not None
    verb = verbs.pick(draft.draw)
    while verb.preposition is not None or verb.particle is not None or not verb.willed:
        verb = verbs.pick(draft.draw)
    noun_class = verb.objects[draft.draw() % len(verb.objects)]
    if noun_class == "person":
        subject = _write_full_subject(draft, noun_class, max(2, budget - 6))
    else:
        share = max(2, (budget - 4) // 2)
        subject = write_noun_phrase(draft, (noun_class,), share, definite=True)
    be = _BE_PASSIVE if tense == PAST else BE
    write_verb(draft, be, subject, tense, pick_negation(draft, tense), passive=verb)
    draft.put("by", "par")
    write_person(draft, 0.3, max(2, budget - 6))


def write_relative_clause(draft: Draft, noun: Referent, budget: int) -> None:
    """Writes a relative clause that begins with `where`, `whose`, `that`, `who` or `which`."""
    outer = draft.tense, draft.last_subject
    draft.tense = _RELATIVE[TIME[draft.tense]].pick(draft.draw)
    draft.depth += 1
    roll = draft.draw() % 100
    verbs = verbs_with_object(noun.noun_class)
    if noun.noun_class in ("area", "building") and roll < 40:
        draft.put("where", "où")
        draft.last_subject = None
        subject = _write_short_subject(draft, 3)
        write_predicate(draft, subject, budget - 4)
    elif noun.noun_class == "person" and roll < 12 and budget >= 6:
        subject = _write_owned_subject(draft)
        write_predicate(draft, subject, budget - 2)
    elif verbs is not None and roll < 60:
        draft.put("that", "que")
        subject = _write_short_subject(draft, min(budget - 3, 3))
        verb = verbs.pick(draft.draw)
        tense = settle_tense(verb, subject, draft.tense)
        negation = pick_negation(draft, tense) if draft.chance(0.4) else None
        adverb = pick_adverb(draft, verb, tense, subject)
        write_verb(draft, verb, subject, tense, negation, adverb, preceding=noun)
    else:
        draft.put("who" if noun.noun_class == "person" else "which", "qui")
        write_predicate(draft, noun, budget - 1)
    draft.depth -= 1
    draft.tense, draft.last_subject = outer


def _write_owned_subject(draft: Draft) -> Referent:
    """Writes `whose dog` as `dont le chien`."""
    at = draft.put_english("whose")
    owned = pick_noun(draft, (("animal", "building", "vehicle")[draft.draw() % 3],), mass=False)
    nominal = Nominal(owned, draft.chance(0.3))
    draft.put_french("dont", at)
    draft.put_french(THE[owned.feminine][nominal.plural], possible=at)
    write_nominal(draft, nominal)
    return nominal.referent()


def _write_short_subject(draft: Draft, budget: int) -> Referent:
    """Writes a person as the subject of a relative clause."""
    roll = draft.draw() % 100
    if roll < 25:
        return write_name(draft)
    if roll < 45:
        return _write_any_pronoun(draft)
    return write_noun_phrase(draft, ("person",), max(2, budget))


def write_reported_clause(draft: Draft, reporter: Referent, tense: str, budget: int) -> None:
    """Writes the clause that `reporter` says; a pronoun in this clause may refer to `reporter`."""
    outer = draft.tense
    draft.last_subject = reporter
    draft.depth += 1
    write_clause(draft, tense, budget)
    draft.depth -= 1
    draft.tense = outer


RULES = ClauseRules(write_relative_clause, write_reported_clause)
