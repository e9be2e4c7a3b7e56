"""What is said of a subject: verbs with their complements and circumstances, in both languages."""

from __future__ import annotations

from abc import abstractmethod

from nmt.grammar import lexicon
from nmt.grammar.descriptions import Descriptions
from nmt.grammar.french import Links
from nmt.grammar.lexicon import Verb
from nmt.grammar.phrases import IL, ILS, JE, NOUS, VOUS, Referent
from nmt.grammar.stream import Weighted
from nmt.grammar.verbs import (
    CAN,
    CONDITIONAL,
    FUTURE,
    MUST,
    PAST,
    PLUPERFECT,
    PRESENT,
    PROGRESSIVE,
    Pronoun,
    verbs_of,
    verbs_on,
)

# The tenses of a reported clause, by that of the clause that reports.
_REPORTED = {
    PRESENT: Weighted([PRESENT, PAST, FUTURE], [45, 30, 25]),
    PAST: Weighted([PROGRESSIVE, PLUPERFECT, CONDITIONAL], [30, 40, 30]),
    FUTURE: Weighted([PRESENT, FUTURE], [60, 40]),
}
BASE = {PROGRESSIVE: PAST, PLUPERFECT: PAST, CONDITIONAL: PAST}
_PERSON_PREDICATES = Weighted(
    ["transitive", "intransitive", "locative", "ditransitive", "be", "control", "report"],
    [44, 9, 11, 11, 9, 10, 8],
)
_OTHER_PREDICATES = Weighted(["transitive", "intransitive", "be", "report"], [50, 15, 25, 12])
_DESCRIBABLE = frozenset(
    ("person", "animal", "building", "idea", "matter", "event", "org", "text", "thing")
)


class Predicates(Descriptions):
    """The part of a derivation that writes predicates."""

    last: Referent | None = None  # the last subject, where a pronoun may take it up

    def predicate(self, subject: Referent, budget: int) -> None:
        """Writes what is said of a subject in about `budget` words."""
        noun_class = subject.noun_class
        choice = (_PERSON_PREDICATES if noun_class == "person" else _OTHER_PREDICATES).pick(
            self.draw
        )
        start = len(self.source)
        small = {"report": 7 if self.depth < 2 else 999, "control": 5}.get(choice, 0)
        if budget < small:
            choice = "transitive"
        elif choice == "ditransitive" and budget < 6:
            choice = "intransitive"
        if choice in ("transitive", "locative") and budget < 3:
            choice = "intransitive"
        speaker = subject.person in (JE, NOUS, VOUS)
        if choice == "be" and (speaker or noun_class not in _DESCRIBABLE):
            choice = "transitive" if budget >= 3 else "intransitive"
        verbs = verbs_of(choice, noun_class) if choice != "be" else None
        if choice == "be" or verbs is None:
            verbs = verbs_of("intransitive", noun_class) if choice != "be" else None
            if verbs is None:
                self.description(subject, budget)
                return
            choice = "intransitive"
        verb = verbs.pick(self.draw)
        tense = self.settle(verb, subject, self.tense)
        getattr(self, "_" + choice)(verb, subject, tense, budget)
        if choice in ("transitive", "intransitive", "ditransitive", "locative"):
            left = budget - (len(self.source) - start)
            self.circumstances(subject, left, verb, choice)

    def _object_budget(self, budget: int) -> int:
        """How much of what is left goes to the object, and not to circumstances."""
        return budget if budget < 6 or self.chance(0.4) else 2 + self.draw() % (budget - 4)

    def _intransitive(self, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
        self.verb(verb, subject, tense, self.negation(tense), self.adverb(verb, tense, subject))

    def _transitive(self, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
        negation = self.negation(tense)
        adverb = None if negation else self.adverb(verb, tense, subject)
        noun_classes = verb.objects
        if noun_classes == ("person",) and self.chance(0.25):
            dative = verb.preposition == "à"
            pronoun = self.pronoun(dative, self.is_compound(verb, tense), subject)
            if pronoun is not None:
                self.verb(verb, subject, tense, negation, adverb, pronoun)
                return
        start = len(self.source)
        self.verb(verb, subject, tense, negation, adverb)
        self.preposition(verb)
        budget = self._object_budget(budget - (len(self.source) - start))
        owner = subject
        if noun_classes == ("person",) and self.chance(0.3):
            self.name()
            return
        thing = self.noun_phrase(
            noun_classes,
            budget,
            owner,
            negated=negation is not None and verb.preposition is None,
            definite=verb.preposition is not None,
        )
        if negation is None:
            self._again(verb, subject, thing, tense)

    def _again(self, first: Verb, subject: Referent, thing: Referent, tense: str) -> None:
        """Seldom goes on with a second verb whose object is a pronoun: `and eats it`."""
        verbs = verbs_on(thing.noun_class)
        if verbs is None or subject.noun_class != "person" or thing.noun_class == "person":
            return
        if self.depth or not self.chance(0.22):
            return
        verb = verbs.pick(self.draw)
        if verb.english == first.english or verb.english.past == verb.english.base or verb.state:
            return
        self.put("and", "et")
        if thing.plural:
            pronoun = Pronoun("them", "les", ILS, thing.feminine, True, False)
        else:
            french = "la" if thing.feminine else "le"
            pronoun = Pronoun("it", french, IL, thing.feminine, False, False)
        self.verb(verb, subject, tense, None, None, pronoun)

    def _locative(self, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
        negation = self.negation(tense)
        start = len(self.source)
        self.verb(verb, subject, tense, negation, self.adverb(verb, tense, subject))
        self.preposition(verb)
        left = budget - (len(self.source) - start)
        if verb.particle and self.chance(0.3):
            if verb.particle == "at" or verb.preposition == "à":
                name = lexicon.names["city"].pick(self.draw)
                if verb.particle == "at":
                    self.source[-1] = "in"
                self.put(name.english, name.french)
                return
            if verb.preposition == "dans":
                name = lexicon.names["city"].pick(self.draw)
                self.words[-1] = "à"
                self.put(name.english, name.french)
                return
        noun_classes = ("building",) if verb.preposition == "à" else ("building", "area")
        self.noun_phrase(noun_classes, self._object_budget(left), subject, definite=True)

    def _ditransitive(self, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
        negation = self.negation(tense)
        adverb = None if negation else self.adverb(verb, tense, subject)
        start = len(self.source)
        pronoun = self.pronoun(True, False, subject) if self.chance(0.5) else None
        self.verb(verb, subject, tense, negation, adverb, pronoun)
        left = budget - (len(self.source) - start)
        negated = negation is not None
        if pronoun is not None:
            self.noun_phrase(verb.objects, self._object_budget(left), subject, negated=negated)
            return
        self.depth += 1
        self.noun_phrase(verb.objects, max(2, (left - 1) // 2), subject, negated=negated)
        self.depth -= 1
        left = budget - (len(self.source) - start)
        self.put("to", "à")
        if self.chance(0.35):
            self.name()
        else:
            self.noun_phrase(("person",), left - 1, subject, definite=True)

    def _control(self, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
        if self.chance(0.45) and tense in (PRESENT, PAST):
            self._modal(subject, tense)
        else:
            self.verb(verb, subject, tense, self.negation(tense))
            at = len(self.source)
            self.source.append("to")
            if verb.preposition is not None:
                self.words.append(verb.preposition)
                self.links.append(Links((at,)))
                self.action(subject, budget - 2)
            else:
                self.action(subject, budget - 2, (at,))
            return
        self.action(subject, budget - 1)

    def _modal(self, subject: Referent, tense: str) -> None:
        """Writes can, could or must, negated or not; cannot is one word for ne peut pas."""
        negated = self.chance(0.25)
        if tense == PAST:
            english = "could"
            french = CAN.imperfect
        elif self.chance(0.5):
            english = "cannot" if negated else "can"
            french = CAN.present
        else:
            english = "must"
            french = MUST.present
        at = len(self.source)
        self.source.append(english)
        not_at = at
        if negated and english != "cannot":
            not_at = len(self.source)
            self.source.append("not")
        if negated:
            self.words.append("ne")
            self.links.append(Links(possible=(not_at,)))
        self.words.append(french[subject.person])
        self.links.append(Links((at,)))
        if negated:
            self.words.append("pas")
            self.links.append(Links((not_at,)))

    def action(
        self,
        subject: Referent,
        budget: int,
        to: tuple[int, ...] = (),
        gerund: bool = False,
        definite: bool = False,
    ) -> None:
        """Writes an infinitive (English: also a gerund) with its complements.

        Args:
            definite: whether the object is.
            to: positions of English words that the French infinitive stands for too.
        """
        construction = "transitive" if budget >= 3 and self.chance(0.85) else "intransitive"
        verbs = verbs_of(construction, "person")
        assert verbs is not None
        verb = verbs.pick(self.draw)
        while not verb.willed or verb.preposition is not None:
            verb = verbs.pick(self.draw)
        start = len(self.source)
        self.infinitive(verb, subject, to, gerund)
        if construction == "transitive":
            left = budget - (len(self.source) - start)
            if verb.objects == ("person",) and self.chance(0.4):
                self.name()
            else:
                self.noun_phrase(
                    verb.objects, self._object_budget(left), subject, definite=definite
                )
        self.circumstances(subject, budget - (len(self.source) - start), verb, construction)

    def _report(self, verb: Verb, subject: Referent, tense: str, budget: int) -> None:
        """Writes a verb of saying or thinking and the clause that is said."""
        if tense == PROGRESSIVE:
            tense = PAST if verb.state else PLUPERFECT
        start = len(self.source)
        self.verb(verb, subject, tense)
        self.put("that", "que")
        outer = self.tense
        base = BASE.get(tense, tense)
        inner = _REPORTED[base].pick(self.draw)
        if verb.coming:
            inner = CONDITIONAL if base == PAST else FUTURE
        self.depth += 1
        self.last = subject
        self.clause(budget - (len(self.source) - start), inner)
        self.depth -= 1
        self.tense = outer

    @abstractmethod
    def clause(self, budget: int, tense: str) -> None:
        """Writes a subject and a predicate."""
