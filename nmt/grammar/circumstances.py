"""Where, when, with whom and what for something is done, in both languages at once."""

from __future__ import annotations

from abc import abstractmethod

from nmt.grammar import lexicon
from nmt.grammar.french import Links
from nmt.grammar.lexicon import Verb
from nmt.grammar.phrases import Referent
from nmt.grammar.stream import Weighted, threshold
from nmt.grammar.verbs import Verbs

# Where things are: English words, French words, sure links between them, classes of the place.
_PLACES = Weighted(
    [
        (("in",), ("dans",), ((0, 0),), ("building", "area")),
        (("near",), ("près", "de"), ((0, 0),), ("building", "spot", "route")),
        (("in", "front", "of"), ("devant",), ((1, 0),), ("building",)),
        (("behind",), ("derrière",), ((0, 0),), ("building",)),
        (("on",), ("sur",), ((0, 0),), ("surface",)),
        (("under",), ("sous",), ((0, 0),), ("surface",)),
        (("between",), ("entre",), ((0, 0),), ("building", "spot", "route")),
        (("far", "from"), ("loin", "de"), ((0, 0), (1, 1)), ("building", "spot", "route")),
    ],
    [46, 16, 8, 7, 8, 4, 4, 5],
)

_NAMED_PLACE = threshold(0.25)
# Objects that nothing is done to for somebody.
_LIVING = (
    ("person",),
    ("person", "animal", "thing"),
    ("idea",),
    ("idea", "matter"),
    ("area", "route"),
)


def _placeable(verb: Verb, subject: Referent, construction: str) -> bool:
    """Whether it may be said where, and has not been said yet."""
    return (
        construction != "locative"
        and subject.noun_class in ("person", "animal")
        and "building" not in verb.objects
        and "area" not in verb.objects
    )


class Circumstances(Verbs):
    """The part of a derivation that writes adverbial phrases."""

    def place(self, budget: int, small: bool = False) -> None:
        """Writes a phrase that says where; `small`: of what may lie on or under furniture."""
        self.placed = len(self.source)
        if self.draw() < _NAMED_PLACE:
            noun_class = ("city", "country-f", "country-m")[self.draw() % 3]
            name = lexicon.names[noun_class].pick(self.draw)
            self.source += ("in", name.english)
            at = len(self.source) - 2
            words = {
                "city": ("à", name.french),
                "country-f": ("en", name.french),
                "country-m": ("à", "~le", name.french),
            }[noun_class]
            self.words += words
            article = [Links(possible=(at,))] * (len(words) - 2)
            self.links += [Links((at,)), *article, Links((at + 1,))]
            return
        source, target, sure, noun_classes = _PLACES.pick(self.draw)
        while noun_classes == ("surface",) and not small:
            source, target, sure, noun_classes = _PLACES.pick(self.draw)
        if source == ("between",) and budget < 6:
            source, target, sure = ("in",), ("dans",), ((0, 0),)
            noun_classes = ("building", "area")
        self.put_block(source, target, sure)
        if source == ("between",):
            self.noun_phrase(noun_classes, 2, definite=True, singular=True)
            self.put("and", "et")
            self.noun_phrase(noun_classes, budget - 4, definite=True, singular=True)
        else:
            self.noun_phrase(
                noun_classes, budget - len(source), definite=target[-1] == "de", singular=True
            )

    def circumstances(self, subject: Referent, budget: int, verb: Verb, construction: str) -> None:
        """Writes what for, where, with whom or when, in what is left of the budget."""
        start = len(self.source)
        roll = self.draw() % 100
        if budget < 3 or roll < 12:
            return
        willed = verb.willed and subject.noun_class == "person"
        if willed and roll < 30 and budget >= 6:
            self.put_block(("in", "order", "to"), ("pour",))
            self.action(subject, budget - 3)
        elif willed and roll < 40 and budget >= 5:
            if roll % 2:
                self.put("without", "sans")
            else:
                self.put_block(("before",), ("avant", "de"), ((0, 0),))
            self.action(subject, min(budget - 1, 6), gerund=True, definite=True)
        elif roll < 65 and start - self.placed > 8 and _placeable(verb, subject, construction):
            self.place(min(budget, 7), small="thing" in verb.objects)
        elif (
            roll < 82
            and subject.noun_class == "person"
            and construction in ("intransitive", "locative")
        ):
            self.put("with", "avec")
            if self.chance(0.3):
                self.name()
            else:
                self.noun_phrase(("person",), min(budget - 1, 9), subject)
        elif roll < 75 and willed and verb.objects not in _LIVING and construction == "transitive":
            self.put("for", "pour")
            if self.chance(0.3):
                self.name()
            else:
                self.noun_phrase(("person",), min(budget - 1, 9), subject)
        elif subject.noun_class not in ("event", "contest", "idea", "matter") and self.chance(0.5):
            self.time(budget)
            return
        left = budget - (len(self.source) - start)
        if left >= 4 and roll >= 40 and self.chance(0.3):
            self.time(left)

    def time(self, budget: int) -> None:
        """Writes a phrase that says during, before or after which event."""
        when = (("after", "après"), ("before", "avant"), ("during", "pendant"))
        self.put(*when[self.draw() % 3])
        self.depth += 1
        self.noun_phrase(("event", "contest"), min(budget - 1, 4), definite=True, singular=True)
        self.depth -= 1

    @abstractmethod
    def action(
        self,
        subject: Referent,
        budget: int,
        to: tuple[int, ...] = (),
        gerund: bool = False,
        definite: bool = False,
    ) -> None:
        """Writes an infinitive and its complements."""
