"""Clauses with their subjects, and relative clauses, in both languages at once."""

from __future__ import annotations

from nmt.grammar import lexicon
from nmt.grammar.french import Links
from nmt.grammar.lexicon import Noun
from nmt.grammar.phrases import IL, ILS, JE, NOUS, VOUS, Referent
from nmt.grammar.predicates import BASE, Predicates
from nmt.grammar.stream import Weighted
from nmt.grammar.verbs import FUTURE, PAST, PLUPERFECT, PRESENT, PROGRESSIVE, verbs_on

_SPEAKERS = Weighted(
    [
        ("I", "je", Referent(JE, False, False, "person")),
        ("we", "nous", Referent(NOUS, False, True, "person")),
        ("you", "vous", Referent(VOUS, False, True, "person")),
        ("he", "il", Referent(IL, False, False, "person")),
        ("she", "elle", Referent(IL, True, False, "person")),
    ],
    [5, 4, 3, 4, 4],
)
_BACK = {
    (False, False): ("he", "il"),
    (True, False): ("she", "elle"),
    (False, True): ("they", "ils"),
    (True, True): ("they", "elles"),
}
_NOUN_CLASSES = Weighted(
    [
        "person",
        "org",
        "animal",
        "event",
        "contest",
        "idea",
        "matter",
        "vehicle",
        "building",
        "thing",
        "text",
    ],
    [72, 9, 8, 3, 1, 3, 2, 2, 2, 1, 1],
)
# The tenses of a clause that depends on one of that tense: relative, and reported.
_RELATIVE = {
    PRESENT: Weighted([PRESENT, PAST], [75, 25]),
    PAST: Weighted([PAST, PROGRESSIVE, PLUPERFECT], [45, 25, 30]),
    FUTURE: Weighted([PRESENT, PAST], [75, 25]),
}


class Clauses(Predicates):
    """The part of a derivation that writes clauses."""

    crowd = 0  # groups of persons mentioned so far: "they" must have but one

    # -- subjects -------------------------------------------------------------------------------
    def subject(self, budget: int, noun_class: str | None = None) -> Referent:
        """Writes a subject of a class (None: any) in about `budget` words."""
        if noun_class is None:
            last = self.last
            if last is not None and self.chance(0.42):
                if last.person in (JE, NOUS, VOUS):
                    return self._speaker(last)
                if last.noun_class == "person" and (not last.plural or self.crowd == 1):
                    self.put(*_BACK[last.feminine, last.plural])
                    return last
            roll = self.draw() % 100
            if roll < 9 and last is None:
                source, target, referent = _SPEAKERS.pick(self.draw)
                self.put(source, target)
                self.last = referent
                return referent
            if roll < 26 and budget < 6:
                referent = self.name()
                self.last = referent
                return referent
            noun_class = _NOUN_CLASSES.pick(self.draw)
        referent = self.noun_phrase((noun_class,), budget, subject=True)
        if noun_class == "person" and referent.plural:
            self.crowd += 1
        if noun_class == "person" and budget >= 5 and self.depth == 0 and self.chance(0.08):
            self.put("and", "et")
            other = self.noun_phrase((noun_class,), 3)
            referent = Referent(ILS, referent.feminine and other.feminine, True, noun_class)
            self.crowd += 1
        self.last = referent
        return referent

    def _speaker(self, referent: Referent) -> Referent:
        source, target = {JE: ("I", "je"), NOUS: ("we", "nous"), VOUS: ("you", "vous")}[
            referent.person
        ]
        self.put(source, target)
        return referent

    # -- what follows a noun --------------------------------------------------------------------
    def modifier(self, noun: Noun, plural: bool, budget: int) -> None:
        referent = Referent(ILS if plural else IL, noun.feminine, plural, noun.noun_class)
        if budget >= 4 and self.depth < 2 and self.chance(0.5):
            outer = self.tense, self.last
            self.depth += 1
            self.relative(referent, min(budget, 12))
            self.depth -= 1
            self.tense, self.last = outer
            return
        roll = self.draw() % 100
        if noun.noun_class == "opening":
            self.put("of", "de")
            self.noun_phrase(("building",), budget - 1, definite=True, singular=True)
        elif noun.noun_class in ("person", "org") and roll < 25:
            noun_class = "city" if roll < 12 else "country-f" if roll < 20 else "country-m"
            name = lexicon.names[noun_class].pick(self.draw)
            self.put("from", "de")
            if noun_class == "country-m":
                self.words.append("~le")
                self.links.append(Links(possible=(len(self.source),)))
            self.put(name.english, name.french)
        elif noun.noun_class in ("idea", "matter") and roll < 60:
            self.put("of", "de")
            self.depth += 1
            self.noun_phrase(("org", "person"), budget - 1, definite=True, singular=True)
            self.depth -= 1
        elif noun.noun_class in ("thing", "text", "clothes", "food") and roll < 60:
            self.depth += 1
            self.place(budget, small=True)
            self.depth -= 1
        elif (
            noun.noun_class in ("person", "animal", "building", "spot", "route", "vehicle")
            and roll < 50
        ):
            self.depth += 1
            self.place(budget)
            self.depth -= 1

    def relative(self, noun: Referent, budget: int) -> None:
        """Writes a relative clause about `noun`."""
        self.tense = _RELATIVE[BASE.get(self.tense, self.tense)].pick(self.draw)
        roll = self.draw() % 100
        acting = verbs_on(noun.noun_class)
        if noun.noun_class in ("area", "building") and roll < 40:
            self.put("where", "où")
            self.last = None
            subject = self.person(3)
            self.predicate(subject, budget - 4)
        elif noun.noun_class == "person" and roll < 12 and budget >= 6:
            self.source.append("whose")
            at = (len(self.source) - 1,)
            owned = self.noun((("animal", "building", "vehicle")[self.draw() % 3],), False)
            plural = self.chance(0.3)
            self.words += ("dont", "~les" if plural else "~la" if owned.feminine else "~le")
            self.links += (Links(at), Links(possible=at))
            self._head(owned, plural, None, None)
            subject = Referent(ILS if plural else IL, owned.feminine, plural, owned.noun_class)
            self.predicate(subject, budget - 2)
        elif acting is not None and roll < 60:
            self.put("that", "que")
            subject = self.person(min(budget - 3, 3))
            verb = acting.pick(self.draw)
            tense = self.settle(verb, subject, self.tense)
            self.verb(
                verb,
                subject,
                tense,
                self.negation(tense) if self.chance(0.4) else None,
                self.adverb(verb, tense, subject),
                preceding=noun,
            )
        else:
            self.put("who" if noun.noun_class == "person" else "which", "qui")
            self.predicate(noun, budget - 1)

    def person(self, budget: int) -> Referent:
        """Writes a short subject: a person."""
        roll = self.draw() % 100
        if roll < 25:
            return self.name()
        if roll < 45:
            source, target, referent = _SPEAKERS.pick(self.draw)
            self.put(source, target)
            return referent
        return self.noun_phrase(("person",), max(2, budget))

    # -- clauses --------------------------------------------------------------------------------
    def clause(self, budget: int, tense: str) -> None:
        """Writes a subject and a predicate, or a clause without one (there is, passive)."""
        self.tense = tense
        roll = self.draw() % 1000
        if roll < 45 and budget >= 6:
            self.existential(budget, PRESENT if tense in (PRESENT, FUTURE) else PAST)
            return
        if roll < 110 and budget >= 7 and tense != PROGRESSIVE:
            self.passive(budget, tense)
            return
        share = max(2, budget // 3 + self.draw() % 3 - 1)
        start = len(self.source)
        subject = self.subject(share)
        self.predicate(subject, budget - (len(self.source) - start))
