"""Clauses that describe: what is how, what there is, and what is done by whom (the passive)."""

from __future__ import annotations

from abc import abstractmethod

from nmt.grammar import lexicon
from nmt.grammar.circumstances import Circumstances
from nmt.grammar.phrases import Referent, adjectives_of
from nmt.grammar.verbs import BE, LINKING, PAST, PRESENT, PROGRESSIVE, verbs_of

# Adjectives that never follow be, and that are not a matter of degree.
_NEVER_SAID_OF = frozenset(
    [
        "real",
        "little",
        "recent",
        "lonely",
        "red",
        "white",
        "black",
        "green",
        "blue",
        "yellow",
        "grey",
        "pink",
        "purple",
        "brown",
        "golden",
        "annual",
        "religious",
        "scientific",
    ]
)
_ABSOLUTE = frozenset(
    [
        "French",
        "English",
        "German",
        "American",
        "Italian",
        "Spanish",
        "Russian",
        "Chinese",
        "foreign",
        "Portuguese",
        "Greek",
        "Dutch",
        "Belgian",
        "Swiss",
        "Polish",
        "Swedish",
        "Irish",
        "Japanese",
        "Canadian",
        "Norwegian",
        "Brazilian",
        "Egyptian",
        "European",
        "huge",
        "excellent",
        "magnificent",
        "incredible",
        "complete",
        "innocent",
        "mute",
        "blind",
        "deaf",
        "furious",
        "delicious",
        "royal",
        "medieval",
        "private",
        "public",
        "abandoned",
        "national",
        "regional",
        "local",
        "international",
    ]
)
# Be in the passive is an event: was written, a été écrit.
_EVENT = BE._replace(state=False)


class Descriptions(Circumstances):
    """The part of a derivation that writes be and what follows it."""

    tense = PRESENT  # of the clause being written, which those inside it follow

    def description(self, subject: Referent, budget: int) -> None:
        """Writes be (or seem, become, remain) and an adjective, comparison or place."""
        tense = self.tense
        if tense == PROGRESSIVE:
            tense = PAST
        before = adjectives_of(subject.noun_class, True)
        after = adjectives_of(subject.noun_class, False)
        roll = self.draw() % 100
        either = before is not None and subject.noun_class in ("person", "animal", "building")
        choice = before if after is None or (either and roll < 20) else after
        start = len(self.source)
        if roll > 85 and budget >= 4 and subject.noun_class in ("person", "animal"):
            self.verb(BE, subject, tense, self.negation(tense))
            self.place(budget - (len(self.source) - start))
            return
        assert choice is not None
        adjective = self.quality(choice)
        while adjective.english in _NEVER_SAID_OF or (
            subject.noun_class != "person" and adjective.english in _ABSOLUTE
        ):
            adjective = choice.pick(self.draw)
        gradable = adjective.english not in _ABSOLUTE
        verb = LINKING.pick(self.draw) if subject.noun_class == "person" else BE
        self.verb(verb, subject, tense, self.negation(tense))
        left = budget - (len(self.source) - start)
        if (
            verb is BE
            and left >= 5
            and subject.noun_class == "person"
            and gradable
            and self.chance(0.3)
        ):
            self.put("as", "aussi")
            self.adjective(adjective, subject)
            self.put("as", "que")
            if self.chance(0.4):
                self.name()
            else:
                self.noun_phrase(("person",), left - 3, definite=True)
            return
        if left >= 2 and gradable and self.chance(0.4):
            degree = lexicon.adverbs["degree"].pick(self.draw)
            self.put(degree.english, degree.french)
        self.adjective(adjective, subject)
        mood = verb is BE and subject.noun_class == "person" and gradable and choice is after
        if mood and left >= 4 and self.chance(0.4):
            self.time(left - 1)

    def passive(self, budget: int, tense: str) -> None:
        """Writes a passive clause: the letter was written by the queen."""
        verbs = verbs_of("transitive", "person")
        assert verbs is not None
        verb = verbs.pick(self.draw)
        while verb.preposition is not None or verb.particle is not None or not verb.willed:
            verb = verbs.pick(self.draw)
        noun_class = verb.objects[self.draw() % len(verb.objects)]
        if noun_class == "person":
            subject = self.subject(max(2, budget - 6), "person")
        else:
            subject = self.noun_phrase((noun_class,), max(2, (budget - 4) // 2), definite=True)
        compound = _EVENT if tense == PAST else BE
        self.verb(compound, subject, tense, self.negation(tense), passive=verb)
        self.put("by", "par")
        if self.chance(0.3):
            self.name()
        else:
            self.noun_phrase(("person",), max(2, budget - 6))

    def existential(self, budget: int, tense: str) -> None:
        """Writes that there is something somewhere."""
        noun_classes = ("person", "animal", "thing", "vehicle")
        noun = self.noun((noun_classes[self.draw() % 4],))
        plural = self.chance(0.4)
        be = ("is", "are") if tense == PRESENT else ("was", "were")
        self.put_block(
            ("there", be[plural]), ("il", "y", "a" if tense == PRESENT else "avait"), ((1, 2),)
        )
        choice = adjectives_of(noun.noun_class, False)
        adjective = choice.pick(self.draw) if choice is not None and self.chance(0.4) else None
        if plural:
            determiner = "some" if self.chance(0.4) else "number"
            self._determiner(determiner, noun, True, None, adjective, None, False)
        else:
            self._determiner("a", noun, False, None, adjective, None, False)
        self._head(noun, plural, None, adjective)
        self.place(max(3, budget - 4), small=noun.noun_class == "thing")

    @abstractmethod
    def subject(self, budget: int, noun_class: str | None = None) -> Referent:
        """Writes a subject."""
