"""Predicates: a verb with complements and adverbial phrases, or a description of the subject.

Example: `gave the letter to Paul after the lesson` -> `a donné la lettre à Paul après la leçon`
"""

from __future__ import annotations

from nmt.grammar import french_verbs, lexicon
from nmt.grammar.circumstances import (
    pick_object_budget,
    write_circumstances,
    write_infinitive_phrase,
)
from nmt.grammar.descriptions import write_description
from nmt.grammar.draft import (
    CONDITIONAL,
    FUTURE,
    IL,
    ILS,
    PAST,
    PLUPERFECT,
    PRESENT,
    PROGRESSIVE,
    TIME,
    Draft,
    Referent,
)
from nmt.grammar.lexicon import Verb
from nmt.grammar.noun_phrases import write_noun_phrase, write_person
from nmt.grammar.nouns import write_name
from nmt.grammar.stream import Weighted
from nmt.grammar.verbs import (
    Pronoun,
    is_compound,
    pick_adverb,
    pick_negation,
    pick_pronoun,
    settle_tense,
    verbs_with_object,
    verbs_with_subject,
    write_preposition,
    write_verb,
)

# Constructions for subjects that are persons, and for all other subjects
_OF_PERSONS = Weighted(
    ["transitive", "intransitive", "locative", "ditransitive", "be", "control", "report"],
    [44, 9, 11, 11, 9, 10, 8],
)
_OF_OTHERS = Weighted(["transitive", "intransitive", "be", "report"], [50, 15, 25, 12])
# Semantic classes of subjects that may have a description
_DESCRIBABLE = frozenset(
    ("person", "animal", "building", "idea", "matter", "event", "org", "text", "thing")
)
# Sequence of tenses: tenses of a reported clause, by the time of the reporting clause
_REPORTED = {
    PRESENT: Weighted([PRESENT, PAST, FUTURE], [45, 30, 25]),
    PAST: Weighted([PROGRESSIVE, PLUPERFECT, CONDITIONAL], [30, 40, 30]),
    FUTURE: Weighted([PRESENT, FUTURE], [60, 40]),
}
_CAN = french_verbs.conjugate("pouvoir")
_MUST = french_verbs.conjugate("devoir")


def write_predicate(draft: Draft, subject: Referent, budget: int) -> None:
    """Writes the predicate of a subject in about `budget` English words."""
    end = len(draft.source) + budget
    construction = _pick_construction(draft, subject, budget)
    verbs = verbs_with_subject(construction, subject.noun_class)  # None for be
    if verbs is None and construction != "be":
        construction = "intransitive"
        verbs = verbs_with_subject(construction, subject.noun_class)
    if verbs is None:
        write_description(draft, subject, budget)
        return
    verb = verbs.pick(draft.draw)
    tense = settle_tense(verb, subject, draft.tense)
    _CONSTRUCTIONS[construction](draft, verb, subject, tense, budget)
    if construction not in ("control", "report"):
        write_circumstances(draft, subject, verb, construction, end - len(draft.source))


def _pick_construction(draft: Draft, subject: Referent, budget: int) -> str:
    """Picks a construction, or a simpler one if the first does not fit the subject or the budget."""
    choice = (_OF_PERSONS if subject.noun_class == "person" else _OF_OTHERS).pick(draft.draw)
    if (
        (choice == "report" and (budget < 7 or draft.depth >= 2))
        or (choice == "control" and budget < 5)
        or (choice == "be" and (budget < 0 or subject.speaker))
        or (choice == "be" and subject.noun_class not in _DESCRIBABLE)
    ):
        choice = "transitive"
    if (choice == "ditransitive" and budget < 6) or (
        choice in ("transitive", "locative") and budget < 3
    ):
        choice = "intransitive"
    return choice


def _write_intransitive(
    draft: Draft, verb: Verb, subject: Referent, tense: str, budget: int
) -> None:
    """Writes a verb alone: `the boy slept`."""
    negation = pick_negation(draft, tense)
    write_verb(draft, verb, subject, tense, negation, pick_adverb(draft, verb, tense, subject))


def _write_transitive(draft: Draft, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
    """Writes a verb with an object: `the boy read a book`."""
    end = len(draft.source) + budget
    negation = pick_negation(draft, tense)
    adverb = None if negation else pick_adverb(draft, verb, tense, subject)
    on_person = verb.objects == ("person",)
    if on_person and draft.chance(0.25):
        dative = verb.preposition == "à"
        pronoun = pick_pronoun(draft, dative, is_compound(verb, tense), subject)
        if pronoun is not None:
            write_verb(draft, verb, subject, tense, negation, adverb, pronoun)
            return
    write_verb(draft, verb, subject, tense, negation, adverb)
    write_preposition(draft, verb)
    budget = pick_object_budget(draft, end - len(draft.source))
    if on_person and draft.chance(0.3):
        write_name(draft)
        return
    thing = write_noun_phrase(
        draft,
        verb.objects,
        budget,
        owner=subject,
        negated=negation is not None and verb.preposition is None,
        definite=verb.preposition is not None,
    )
    if negation is None:
        _write_second_verb(draft, verb, subject, thing, tense)


def _write_second_verb(
    draft: Draft, first: Verb, subject: Referent, thing: Referent, tense: str
) -> None:
    """Sometimes adds a second verb with a pronoun as its object: `bought an apple and ate it`."""
    verbs = verbs_with_object(thing.noun_class)
    if verbs is None or subject.noun_class != "person" or thing.noun_class == "person":
        return
    if draft.depth or not draft.chance(0.22):
        return
    verb = verbs.pick(draft.draw)
    if verb.english == first.english or verb.english.past == verb.english.base or verb.state:
        return
    draft.put("and", "et")
    if thing.plural:
        pronoun = Pronoun("them", "les", ILS, thing.feminine, True, False)
    else:
        french = "la" if thing.feminine else "le"
        pronoun = Pronoun("it", french, IL, thing.feminine, False, False)
    write_verb(draft, verb, subject, tense, pronoun=pronoun)


def _write_locative(draft: Draft, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
    """Writes a verb with the place it requires: `the boy went to school`."""
    end = len(draft.source) + budget
    negation = pick_negation(draft, tense)
    write_verb(draft, verb, subject, tense, negation, pick_adverb(draft, verb, tense, subject))
    write_preposition(draft, verb)
    left = end - len(draft.source)
    if verb.particle and draft.chance(0.3) and verb.preposition in ("à", "dans"):
        if verb.particle == "at":  # `arrives at` a building, but `arrives in` a city
            draft.source[-1] = "in"
        draft.target[-1] = "à"
        name = lexicon.names["city"].pick(draft.draw)
        draft.put(name.english, name.french)
        return
    noun_classes = ("building",) if verb.preposition == "à" else ("building", "area")
    write_noun_phrase(draft, noun_classes, pick_object_budget(draft, left), subject, definite=True)


def _write_ditransitive(
    draft: Draft, verb: Verb, subject: Referent, tense: str, budget: int
) -> None:
    """Writes a verb with two objects: `the boy gave him a book`."""
    end = len(draft.source) + budget
    negation = pick_negation(draft, tense)
    negated = negation is not None
    adverb = None if negation else pick_adverb(draft, verb, tense, subject)
    pronoun = pick_pronoun(draft, True, False, subject) if draft.chance(0.5) else None
    write_verb(draft, verb, subject, tense, negation, adverb, pronoun)
    left = end - len(draft.source)
    if pronoun is not None:
        budget = pick_object_budget(draft, left)
        write_noun_phrase(draft, verb.objects, budget, subject, negated=negated)
        return
    draft.depth += 1
    write_noun_phrase(draft, verb.objects, max(2, (left - 1) // 2), subject, negated=negated)
    draft.depth -= 1
    left = end - len(draft.source)
    draft.put("to", "à")
    write_person(draft, 0.35, left - 1, subject, definite=True)


def _write_control(draft: Draft, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
    """Writes a verb or modal with an infinitive: `the boy tried to sleep`, `he can sleep`."""
    if draft.chance(0.45) and tense in (PRESENT, PAST):
        _write_modal(draft, subject, tense)
        write_infinitive_phrase(draft, subject, budget - 1)
        return
    write_verb(draft, verb, subject, tense, pick_negation(draft, tense))
    at = draft.put_english("to")
    if verb.preposition is not None:
        draft.put_french(verb.preposition, at)
        at = ()
    write_infinitive_phrase(draft, subject, budget - 2, at)


def _write_modal(draft: Draft, subject: Referent, tense: str) -> None:
    """Writes `can`, `could` or `must`; a negated `can` is one word, `cannot`."""
    negated = draft.chance(0.25)
    if tense == PAST:
        english = "could"
        french = _CAN.imperfect
    elif draft.chance(0.5):
        english = "cannot" if negated else "can"
        french = _CAN.present
    else:
        english = "must"
        french = _MUST.present
    at = draft.put_english(english)
    if negated:
        not_at = at if english == "cannot" else draft.put_english("not")
        draft.put_french("ne", possible=not_at)
    draft.put_french(french[subject.person], at)
    if negated:
        draft.put_french("pas", not_at)


def _write_report(draft: Draft, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
    """Writes a verb of saying or thinking and its clause: `the boy says that he slept`."""
    end = len(draft.source) + budget
    if tense == PROGRESSIVE:
        tense = PAST if verb.state else PLUPERFECT
    write_verb(draft, verb, subject, tense)
    draft.put("that", "que")
    reported = _REPORTED[TIME[tense]].pick(draft.draw)
    if verb.coming:
        reported = CONDITIONAL if TIME[tense] == PAST else FUTURE
    draft.clauses.reported(draft, subject, reported, end - len(draft.source))


_CONSTRUCTIONS = {
    "intransitive": _write_intransitive,
    "transitive": _write_transitive,
    "locative": _write_locative,
    "ditransitive": _write_ditransitive,
    "control": _write_control,
    "report": _write_report,
}
