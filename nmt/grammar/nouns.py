"""Nouns with their determiners and adjectives, and names of persons."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from nmt.grammar import english, lexicon
from nmt.grammar.draft import IL, ILS, JE, NOUS, VOUS, Draft, Referent
from nmt.grammar.lexicon import Adjective, Noun
from nmt.grammar.stream import Weighted

# French forms, indexed by [feminine][plural]
THE = (("~le", "~les"), ("~la", "~les"))
_THIS = (("~ce", "ces"), ("cette", "ces"))
_INVARIABLE = {"every": "chaque", "several": "plusieurs"}

# Possessives by the person of the owner, with the French forms for masculine, feminine and plural nouns
_POSSESSIVES = {
    JE: ("my", ("mon", "~ma", "mes")),
    NOUS: ("our", ("notre", "notre", "nos")),
    VOUS: ("your", ("votre", "votre", "vos")),
    ILS: ("their", ("leur", "leur", "leurs")),
}
_HIS_OR_HER = ("son", "~sa", "ses")
_NUMERALS = Weighted(
    [
        ("two", "deux"), ("three", "trois"), ("four", "quatre"), ("five", "cinq"), ("six", "six"),
        ("ten", "dix"), ("seven", "sept"), ("twelve", "douze"), ("nine", "neuf"),
        ("twenty", "vingt"), ("fifteen", "quinze"), ("thirty", "trente"),
        ("twenty-five", "vingt-cinq"), ("fifty", "cinquante"), ("sixteen", "seize"),
        ("forty", "quarante"), ("fourteen", "quatorze"), ("thirty-two", "trente-deux"),
    ],
    [1 / rank for rank in range(1, 19)],
)  # fmt: skip


@cache
def nouns_of(noun_classes: tuple[str, ...], mass: bool = True) -> Weighted[Noun]:
    """Returns the nouns of these classes; each class has the same total weight."""
    pairs = [
        pair
        for noun_class in noun_classes
        for pair in lexicon.nouns[noun_class]
        if mass or not pair[0].mass
    ]
    shares = {
        noun_class: sum(w for _, w in lexicon.nouns[noun_class]) for noun_class in noun_classes
    }
    return Weighted([noun for noun, _ in pairs], [w / shares[noun.noun_class] for noun, w in pairs])


@cache
def adjectives_of(noun_class: str, before: bool) -> Weighted[Adjective] | None:
    """Returns the adjectives of a noun class that precede the French noun, or follow it if `before` is False."""
    pairs = lexicon.adjectives.get((noun_class, before))
    return Weighted([a for a, _ in pairs], [w for _, w in pairs]) if pairs else None


def pick_noun(draft: Draft, noun_classes: tuple[str, ...], mass: bool = True) -> Noun:
    return draft.pick_unused(nouns_of(noun_classes, mass), tries=4)


class Nominal(NamedTuple):
    """A noun with its number and adjectives: a noun phrase without its determiner."""

    noun: Noun
    plural: bool
    before: Adjective | None = None  # before the French noun
    after: Adjective | None = None  # after the French noun

    def referent(self) -> Referent:
        noun, plural, _, _ = self
        return Referent(ILS if plural else IL, noun.feminine, plural, noun.noun_class)

    def in_english_order(self) -> list[Adjective]:
        """Returns the adjectives in English order: opinion, then size or age, then colour or origin."""
        adjectives = list(filter(None, (self.before, self.after)))
        if len(adjectives) == 2 and adjectives[0].size and adjectives[1].opinion:
            adjectives.reverse()
        return adjectives


def write_name(draft: Draft) -> Referent:
    """Writes the name of a person."""
    name = lexicon.names["man" if draft.chance(0.5) else "woman"].pick(draft.draw)
    draft.put(name.english, name.french)
    return Referent(IL, name.feminine, False, "person")


def write_determiner(
    draft: Draft,
    kind: str,
    nominal: Nominal,
    owner: Referent | None = None,
    negated: bool = False,
) -> None:
    """Writes the determiner of a nominal.

    Args:
        kind: `own` for a possessive, `number` for a numeral, or the English determiner.
        owner: the owner that a possessive refers to.
        negated: whether the noun is the direct object of a negated verb (`pas de pain`).
    """
    noun, plural, before, _ = nominal
    feminine = noun.feminine
    if kind == "the":
        draft.put("the", THE[feminine][plural])
    elif kind == "a":
        adjectives = nominal.in_english_order()
        article = english.article(adjectives[0].english if adjectives else noun.english[0])
        draft.put(article, "de" if negated else "une" if feminine else "un")
    elif kind == "some":
        if negated:
            draft.put("any", "de")
        elif plural:
            draft.put("some", "de" if before is not None else "des")
        else:
            at = draft.put_english("some")
            draft.put_french("de", at)
            draft.put_french(THE[feminine][False], at)
    elif kind == "own":
        assert owner is not None
        if owner.person == IL:
            word = "its" if owner.noun_class == "org" else "her" if owner.feminine else "his"
            forms = _HIS_OR_HER
        else:
            word, forms = _POSSESSIVES[owner.person]
        draft.put(word, forms[2 if plural else int(feminine)])
    elif kind == "this":
        draft.put("these" if plural else "this", _THIS[feminine][plural])
    elif kind in _INVARIABLE:
        draft.put(kind, _INVARIABLE[kind])
    elif kind == "many":
        draft.put_block(("many",), ("beaucoup", "de"), ((0, 0),))
    elif kind == "all":
        draft.put("all", "toutes" if feminine else "tous")
        draft.put("the", "~les")
    else:
        assert kind == "number", kind
        if draft.chance(0.3):
            draft.put("the", "~les")
        draft.put(*_NUMERALS.pick(draft.draw))


def write_nominal(draft: Draft, nominal: Nominal) -> None:
    """Writes the adjectives and the noun; in French, some adjectives follow the noun."""
    noun, plural, before, after = nominal
    at = {
        adjective: draft.put_english(adjective.english) for adjective in nominal.in_english_order()
    }
    if before is not None:
        masculine = not plural and not noun.feminine
        form = before.attributive if masculine else before.french[noun.feminine][plural]
        draft.put_french(form, at[before])
    draft.put(noun.english[plural], noun.french[plural])
    if after is not None:
        draft.put_french(after.french[noun.feminine][plural], at[after])
