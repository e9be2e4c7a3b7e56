"""Finite verbs with tense, negation, adverb and object pronoun, and infinitives.

Example: `She never spoke to them` -> `Elle ne leur a jamais parlé`
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from nmt.grammar import english, french_verbs, lexicon
from nmt.grammar.draft import (
    CONDITIONAL,
    FUTURE,
    IL,
    ILS,
    JE,
    NOUS,
    PAST,
    PLUPERFECT,
    PRESENT,
    PROGRESSIVE,
    VOUS,
    Draft,
    Referent,
)
from nmt.grammar.lexicon import Name, Verb
from nmt.grammar.stream import Weighted


class Negation(NamedTuple):
    english: tuple[str, ...]
    french: str  # comes after the finite verb; `ne` comes before the verb


NOT = Negation(("not",), "pas")
NEVER = Negation(("never",), "jamais")
NO_LONGER = Negation(("no", "longer"), "plus")


class Pronoun(NamedTuple):
    """An object pronoun, which follows the English verb and precedes the French verb."""

    english: str
    french: str
    person: int
    feminine: bool
    plural: bool
    dative: bool


_FIRST_OR_SECOND = [
    Pronoun("me", "me", JE, False, False, False),
    Pronoun("us", "nous", NOUS, False, True, False),
    Pronoun("you", "vous", VOUS, False, True, False),
]
_ACCUSATIVE = Weighted(
    [
        Pronoun("him", "le", IL, False, False, False),
        Pronoun("her", "la", IL, True, False, False),
        *_FIRST_OR_SECOND,
    ],
    [8, 8, 3, 3, 2],
)
_DATIVE = Weighted(
    [
        Pronoun("him", "lui", IL, False, False, True),
        Pronoun("her", "lui", IL, True, False, True),
        Pronoun("them", "leur", ILS, False, True, True),
        *(pronoun._replace(dative=True) for pronoun in _FIRST_OR_SECOND),
    ],
    [8, 8, 5, 3, 3, 2],
)
_REFLEXIVE = ("me", "se", "nous", "vous", "se")

_BE = french_verbs.conjugate("être")
_HAVE = french_verbs.conjugate("avoir")
_ENGLISH_BE = english.Forms("be", "is", "was", "been", "being", ())
_BECOME = english.conjugate("become", "became", "become")
BE = Verb(_ENGLISH_BE, _BE, state=True)
LINKING = Weighted(
    [
        BE,
        Verb(english.conjugate("seem"), french_verbs.conjugate("sembler"), state=True),
        Verb(_BECOME, french_verbs.conjugate("devenir"), etre=True),
        Verb(english.conjugate("remain"), french_verbs.conjugate("rester"), etre=True),
    ],
    [70, 14, 8, 6],
)

# The French tense of the verb (in simple tenses) or of its auxiliary (in compound tenses)
_SIMPLE_TENSES = {
    PRESENT: "present",
    PAST: "imperfect",
    PROGRESSIVE: "imperfect",
    FUTURE: "future",
    CONDITIONAL: "conditional",
}
_AUXILIARY_TENSES = {PAST: "present", PLUPERFECT: "imperfect"}


@cache
def verbs_with_subject(construction: str, subject: str) -> Weighted[Verb] | None:
    """Returns the verbs of a construction that may have a subject of this semantic class."""
    pairs = [pair for pair in lexicon.verbs[construction] if subject in pair[0].subjects]
    return Weighted([v for v, _ in pairs], [w for _, w in pairs]) if pairs else None


@cache
def verbs_with_object(noun_class: str) -> Weighted[Verb] | None:
    """Returns verbs that may have a person as subject and this class as direct object in both languages."""
    pairs = [
        (verb, weight / len(verb.objects))
        for verb, weight in lexicon.verbs["transitive"]
        if noun_class in verb.objects and "person" in verb.subjects and verb.preposition is None
    ]
    return Weighted([v for v, _ in pairs], [w for _, w in pairs]) if pairs else None


def pick_negation(draft: Draft, tense: str) -> Negation | None:
    """Picks a negation, or in most cases None.

    Picks `not` instead of `never` or `no longer` if these have several translations in this tense.
    """
    if not draft.chance(0.13):
        return None
    roll = draft.draw() % 100
    if roll < 60 or tense in (PROGRESSIVE, PLUPERFECT):
        return NOT
    if roll < 82:
        return NEVER
    return NOT if tense in (PAST, CONDITIONAL) else NO_LONGER


def pick_adverb(draft: Draft, verb: Verb, tense: str, subject: Referent) -> Name | None:
    """Picks an adverb of frequency or manner, or in most cases None."""
    alive = subject.noun_class in ("person", "animal")
    if tense == PRESENT and alive and not verb.state and draft.chance(0.12):
        return lexicon.adverbs["frequency"].pick(draft.draw)
    handled = verb.willed and verb.objects and "idea" not in verb.objects
    if handled and subject.noun_class == "person" and draft.chance(0.12):
        return lexicon.adverbs["manner"].pick(draft.draw)
    return None


def pick_pronoun(draft: Draft, dative: bool, compound: bool, subject: Referent) -> Pronoun | None:
    """Picks an object pronoun, or None if the pronoun does not fit.

    The pronoun must not refer to the subject. If a French participle agrees with the pronoun, the gender
    of the pronoun must be known.
    """
    pronoun = (_DATIVE if dative else _ACCUSATIVE).pick(draft.draw)
    if pronoun.person != IL and pronoun.person == subject.person:
        return None
    first_or_second = pronoun.person in (JE, NOUS, VOUS)
    if first_or_second and (subject.speaker or (compound and not dative)):
        return None
    return pronoun


def is_compound(verb: Verb, tense: str) -> bool:
    """Whether the French tense has an auxiliary and a participle."""
    return tense == PLUPERFECT or (tense == PAST and not verb.state)


def settle_tense(verb: Verb, subject: Referent, tense: str) -> str:
    """Returns `tense`, or another tense if the verb would be ambiguous in `tense`."""
    if verb.state and tense == PROGRESSIVE:
        tense = PAST
    if tense == PAST and verb.english.past == verb.english.base and subject.person != IL:
        tense = PLUPERFECT  # `they read` could be present or past
    if verb.etre and subject.speaker and is_compound(verb, tense):
        tense = FUTURE if tense == PAST else CONDITIONAL  # gender of `I`, `we`, `you` is unknown
    return tense


def write_verb(
    draft: Draft,
    verb: Verb,
    subject: Referent,
    tense: str,
    negation: Negation | None = None,
    adverb: Name | None = None,
    pronoun: Pronoun | None = None,
    preceding: Referent | None = None,
    passive: Verb | None = None,
) -> None:
    """Writes a finite verb with all words between the subject and the complements.

    Args:
        preceding: the direct object in a relative clause with `que`. The French participle agrees
            with it.
        passive: the verb of a passive clause. Its participle follows the form of `be`.
    """
    # English order: auxiliary, negation, adverb, verb, particle, pronoun. A form of `be` precedes the
    # negation even if it is the main verb.
    auxiliary, main = _english_forms(verb, subject.person, tense, negation)
    auxiliary_at: tuple[int, ...] = ()
    main_at: tuple[int, ...] = ()
    if auxiliary is not None:
        auxiliary_at = draft.put_english(auxiliary)
    elif verb.english is _ENGLISH_BE:
        main_at = draft.put_english(main)
    if negation is not None:
        negation_at = draft.put_english(*negation.english)
    if adverb is not None:
        adverb_at = draft.put_english(adverb.english)
    if not main_at:
        main_at = draft.put_english(main, *_rest(verb))
    if passive is not None:
        passive_at = draft.put_english(passive.english.participle, *passive.english.rest)
    if pronoun is not None:
        particle_at: tuple[int, ...] = ()
        if pronoun.dative and verb.particle is not None:  # `speaks to him` -> `lui parle`
            particle_at = draft.put_english(verb.particle)
        pronoun_at = draft.put_english(pronoun.english)

    # French order: ne, pronouns, finite verb, pas, adverb, participle.
    if negation is not None:
        draft.put_french("ne", possible=negation_at)
    if verb.reflexive:
        draft.put_french(_REFLEXIVE[subject.person], possible=main_at)
    if pronoun is not None:
        draft.put_french(pronoun.french, pronoun_at, particle_at)
    compound = is_compound(verb, tense)
    if compound:
        forms = getattr(_BE if verb.etre else _HAVE, _AUXILIARY_TENSES[tense])
        draft.put_french(forms[subject.person], auxiliary_at, () if auxiliary_at else main_at)
    else:
        forms = getattr(verb.french, _SIMPLE_TENSES[tense])
        draft.put_french(forms[subject.person], main_at[:1], (*auxiliary_at, *main_at[1:]))
    if negation is not None:
        draft.put_french(negation.french, negation_at)
    if adverb is not None:
        draft.put_french(adverb.french, adverb_at)
    if compound:
        agrees: Referent | Pronoun | None = preceding
        if verb.etre:
            agrees = subject
        elif pronoun is not None and not pronoun.dative:
            agrees = pronoun
        feminine, plural = (agrees.feminine, agrees.plural) if agrees else (False, False)
        draft.put_french(verb.french.participle[feminine][plural], main_at[:1], main_at[1:])
    if passive is not None:
        participle = passive.french.participle[subject.feminine][subject.plural]
        draft.put_french(participle, passive_at[:1], passive_at[1:])


def _english_forms(
    verb: Verb, person: int, tense: str, negation: Negation | None
) -> tuple[str | None, str]:
    """Returns the auxiliary, if any, and the form of the verb: `did` and `see`."""
    forms = verb.english
    if tense == FUTURE:
        return "will", forms.base
    if tense == CONDITIONAL:
        return "would", forms.base
    if tense == PLUPERFECT:
        return "had", forms.participle
    if forms is _ENGLISH_BE:
        return None, (english.BE_PRESENT if tense == PRESENT else english.BE_PAST)[person]
    if tense == PROGRESSIVE:
        return english.BE_PAST[person], forms.gerund
    if negation is NOT:
        return english.DO[person] if tense == PRESENT else "did", forms.base
    if tense == PRESENT:
        return None, forms.third if person == IL else forms.base
    return None, forms.past


def _rest(verb: Verb) -> tuple[str, ...]:
    """Returns English words without a French counterpart, such as `at` in `look at` -> `regarder`."""
    if verb.particle is None or verb.preposition is not None:
        return verb.english.rest
    return (*verb.english.rest, verb.particle)


def write_infinitive(
    draft: Draft, verb: Verb, subject: Referent, to: tuple[int, ...] = (), gerund: bool = False
) -> None:
    """Writes a French infinitive for an English infinitive or gerund.

    Args:
        to: position of the English word `to`, if it is linked to the French infinitive.
    """
    at = draft.put_english(verb.english.gerund if gerund else verb.english.base, *_rest(verb))
    if verb.reflexive:
        draft.put_french(_REFLEXIVE[subject.person], possible=at)
    draft.put_french(verb.french.infinitive, at[:1], (*to, *at[1:]))


def write_preposition(draft: Draft, verb: Verb) -> None:
    """Writes the prepositions of a verb, if any: `goes to` -> `va à`, `obeys` -> `obéit à`."""
    if verb.preposition is None:
        return
    if verb.particle is not None:
        draft.put(verb.particle, verb.preposition)
    else:
        draft.put_french(verb.preposition, (len(draft.source) - 1,))
