"""Verbs with their tense, negation, adverb, pronouns and complements, in both languages at once."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from nmt.grammar import english, french_verbs, lexicon
from nmt.grammar.french import Links
from nmt.grammar.lexicon import Adjective, Name, Verb
from nmt.grammar.phrases import IL, ILS, JE, NOUS, VOUS, Nouns, Referent
from nmt.grammar.stream import Weighted

# Tenses by their English form, and the French tense of each:
PRESENT = "present"  # eats: mange
PAST = "past"  # ate: a mangé, or for a state (knew) the imperfect connaissait
PROGRESSIVE = "progressive"  # was eating: mangeait
PLUPERFECT = "pluperfect"  # had eaten: avait mangé
FUTURE = "future"  # will eat: mangera
CONDITIONAL = "conditional"  # would eat: mangerait


class Negation(NamedTuple):
    english: tuple[str, ...]
    french: str  # after the finite verb; `ne` stands before it


NOT = Negation(("not",), "pas")
NEVER = Negation(("never",), "jamais")
NO_LONGER = Negation(("no", "longer"), "plus")


class Pronoun(NamedTuple):
    """An object pronoun, after the English verb and before the French one."""

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
BE = Verb(_ENGLISH_BE, None, _BE, None, False, False, True, False, False, (), ())
LINKING = Weighted(
    [
        BE,
        lexicon.linking("seem", "sembler", state=True),
        lexicon.linking("become became become", "devenir", etre=True),
        lexicon.linking("remain", "rester", etre=True),
    ],
    [70, 14, 8, 6],
)
CAN = french_verbs.conjugate("pouvoir")
MUST = french_verbs.conjugate("devoir")


@cache
def verbs_of(construction: str, subject: str) -> Weighted[Verb] | None:
    """Verbs of a construction whose subject may be of this class."""
    pairs = [pair for pair in lexicon.verbs[construction] if subject in pair[0].subjects]
    return Weighted([v for v, _ in pairs], [w for _, w in pairs]) if pairs else None


@cache
def verbs_on(noun_class: str) -> Weighted[Verb] | None:
    """Verbs that persons may do to this class: direct object in both languages."""
    pairs = [
        (verb, weight / len(verb.objects))
        for verb, weight in lexicon.verbs["transitive"]
        if noun_class in verb.objects and "person" in verb.subjects and verb.preposition is None
    ]
    return Weighted([v for v, _ in pairs], [w for _, w in pairs]) if pairs else None


class Verbs(Nouns):
    """The part of a derivation that writes verbs."""

    def negation(self, tense: str) -> Negation | None:
        """A negation, or seldom none: `no longer` and `never` only where both languages agree."""
        if not self.chance(0.13):
            return None
        roll = self.draw() % 100
        if roll < 60 or tense in (PROGRESSIVE, PLUPERFECT):
            return NOT
        if roll < 82:
            return NEVER
        return NOT if tense in (PAST, CONDITIONAL) else NO_LONGER

    def adverb(self, verb: Verb, tense: str, subject: Referent) -> Name | None:
        alive = subject.noun_class in ("person", "animal")
        if tense == PRESENT and alive and not verb.state and self.chance(0.12):
            return lexicon.adverbs["frequency"].pick(self.draw)
        handled = verb.willed and verb.objects and "idea" not in verb.objects
        if handled and subject.noun_class == "person" and self.chance(0.12):
            return lexicon.adverbs["manner"].pick(self.draw)
        return None

    def pronoun(self, dative: bool, compound: bool, subject: Referent) -> Pronoun | None:
        """An object pronoun that is not the subject; of known gender, if a participle agrees."""
        pronoun = (_DATIVE if dative else _ACCUSATIVE).pick(self.draw)
        if pronoun.person != IL and pronoun.person == subject.person:
            return None
        first_and_second = pronoun.person in (JE, NOUS, VOUS)
        if first_and_second and (subject.person in (JE, NOUS, VOUS) or (compound and not dative)):
            return None
        return pronoun

    def verb(
        self,
        verb: Verb,
        subject: Referent,
        tense: str,
        negation: Negation | None = None,
        adverb: Name | None = None,
        pronoun: Pronoun | None = None,
        preceding: Referent | None = None,
        passive: Verb | None = None,
    ) -> None:
        """Writes a finite verb with all that stands between it and its complements.

        Args:
            preceding: the direct object, where it stands before the verb (that-relative): the
                French participle agrees with it.
            passive: the verb whose participle follows a form of be.
        """
        source = self.source
        person = subject.person
        forms = verb.english
        be = forms is _ENGLISH_BE
        auxiliary: str | None = None
        if tense == FUTURE:
            auxiliary = "will"
            main = forms.base
        elif tense == CONDITIONAL:
            auxiliary = "would"
            main = forms.base
        elif tense == PLUPERFECT:
            auxiliary = "had"
            main = forms.participle
        elif tense == PROGRESSIVE and not be:
            auxiliary = english.BE_PAST[person]
            main = forms.gerund
        elif be:
            main = (english.BE_PRESENT if tense == PRESENT else english.BE_PAST)[person]
        elif negation is NOT:
            auxiliary = english.DO[person] if tense == PRESENT else "did"
            main = forms.base
        elif tense == PRESENT:
            main = forms.third if person == IL else forms.base
        else:
            main = forms.past

        # English: auxiliary, negation, adverb, verb, its particles, pronoun.
        at = len(source)
        aux_at: tuple[int, ...] = ()
        if auxiliary is not None:
            source.append(auxiliary)
            aux_at = (at,)
        main_at: tuple[int, ...] = ()
        if be and auxiliary is None:
            main_at = (len(source),)
            source.append(main)
        not_at: tuple[int, ...] = ()
        if negation is not None:
            not_at = tuple(range(len(source), len(source) + len(negation.english)))
            source += negation.english
        adverb_at = len(source)
        if adverb is not None:
            source.append(adverb.english)
        if not main_at:
            start = len(source)
            source.append(main)
            source += forms.rest
            if verb.particle is not None and verb.preposition is None:
                source.append(verb.particle)
            main_at = tuple(range(start, len(source)))
        if passive is not None:
            start = len(source)
            source += (passive.english.participle, *passive.english.rest)
            passive_at = tuple(range(start, len(source)))
        pronoun_at = len(source)
        if pronoun is not None:
            if pronoun.dative and verb.particle is not None:  # speaks to him: lui parle
                source.append(verb.particle)
            source.append(pronoun.english)

        # French: ne, pronouns, finite verb, pas, adverb, participle.
        words, links = self.words, self.links
        if negation is not None:
            words.append("ne")
            links.append(Links(possible=not_at))
        if verb.reflexive:
            words.append(_REFLEXIVE[person])
            links.append(Links(possible=main_at))
        if pronoun is not None:
            words.append(pronoun.french)
            links.append(Links((len(source) - 1,), tuple(range(pronoun_at, len(source) - 1))))
        compound = self.is_compound(verb, tense)
        french = verb.french
        if compound:
            helper = _BE if verb.etre else _HAVE
            table = helper.imperfect if tense == PLUPERFECT else helper.present
            finite_at = Links(aux_at) if aux_at else Links(possible=main_at)
        else:
            if tense == PRESENT:
                table = french.present
            elif tense == FUTURE:
                table = french.future
            elif tense == CONDITIONAL:
                table = french.conditional
            else:
                table = french.imperfect
            finite_at = Links(main_at[:1], (*aux_at, *main_at[1:]))
        words.append(table[person])
        links.append(finite_at)
        if negation is not None:
            words.append(negation.french)
            links.append(Links(not_at))
        if adverb is not None:
            words.append(adverb.french)
            links.append(Links((adverb_at,)))
        if compound:
            agrees: Referent | Pronoun | None = None
            if verb.etre:
                agrees = subject
            elif pronoun is not None and not pronoun.dative:
                agrees = pronoun
            else:
                agrees = preceding
            feminine, plural = (agrees.feminine, agrees.plural) if agrees else (False, False)
            words.append(french.participle[feminine][plural])
            links.append(Links(main_at[:1], main_at[1:]))
        if passive is not None:
            words.append(passive.french.participle[subject.feminine][subject.plural])
            links.append(Links(passive_at[:1], passive_at[1:]))

    @staticmethod
    def is_compound(verb: Verb, tense: str) -> bool:
        """Whether French uses an auxiliary and a participle."""
        return tense == PLUPERFECT or (tense == PAST and not verb.state)

    def settle(self, verb: Verb, subject: Referent, tense: str) -> str:
        """The tense in which `verb` is said of `subject` without ambiguity in either language."""
        if verb.state and tense == PROGRESSIVE:
            tense = PAST
        if tense == PAST and verb.english.past == verb.english.base and subject.person != IL:
            tense = PLUPERFECT  # "they read" could be either tense
        if verb.etre and subject.person in (JE, NOUS, VOUS) and self.is_compound(verb, tense):
            tense = FUTURE if tense == PAST else CONDITIONAL  # the speaker's gender is unknown
        return tense

    def infinitive(
        self, verb: Verb, subject: Referent, to: tuple[int, ...] = (), gerund: bool = False
    ) -> None:
        """Writes a French infinitive for an English infinitive or gerund.

        Args:
            to: positions of English words that the French infinitive stands for too.
        """
        start = len(self.source)
        self.source.append(verb.english.gerund if gerund else verb.english.base)
        self.source += verb.english.rest
        if verb.particle is not None and verb.preposition is None:
            self.source.append(verb.particle)
        at = tuple(range(start, len(self.source)))
        if verb.reflexive:
            self.words.append(_REFLEXIVE[subject.person])
            self.links.append(Links(possible=at))
        self.words.append(verb.french.infinitive)
        self.links.append(Links(at[:1], (*to, *at[1:])))

    def preposition(self, verb: Verb) -> None:
        """Writes the prepositions that a verb takes: `goes to` / `va à`, `obeys` / `obéit à`."""
        if verb.preposition is None:
            return
        last = len(self.source) - 1
        if verb.particle is not None:
            last += 1
            self.source.append(verb.particle)
        self.words.append(verb.preposition)
        self.links.append(Links((last,)))

    def adjective(self, adjective: Adjective, subject: Referent) -> None:
        """Writes an adjective that is said of the subject."""
        self.put(adjective.english, adjective.french[subject.feminine][subject.plural])
