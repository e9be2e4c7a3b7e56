"""French forms of nouns and adjectives, elision and contraction.

A draft contains words such as `de ~le roi` and `~le ami`, which `join` turns into `du roi` and
`l' ami`. The mark `~` distinguishes words with the same spelling. For example, the article `~le`
contracts with `de`, but the pronoun `le` does not (`de le voir`).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple


class Links(NamedTuple):
    """The links of one French word, given as positions of English words.

    A link is sure if the two words are translations of each other. Links between words of a phrase that
    is translated as a whole (`in order to`, `pour`) are only possible. So are the links of words with a
    purely grammatical function: an auxiliary without counterpart, `do`, `to`, `ne`, a reflexive pronoun.
    """

    sure: tuple[int, ...] = ()
    possible: tuple[int, ...] = ()

    def __or__(self, other: Links) -> Links:
        return Links(
            tuple(sorted({*self.sure, *other.sure})),
            tuple(sorted({*self.possible, *other.possible})),
        )


_VOWELS = frozenset("aàâeéèêëiîïoôuùûyœh")
_ASPIRATED = ("hache", "haie", "hambourg", "harpe", "hérisson", "héros", "hibou", "hongrie", "huit")


@cache
def elides(word: str) -> bool:
    """Whether `word` begins with a vowel or a mute h, so that a word such as `le` before it becomes `l'`."""
    lower = word.lower()
    return lower[0] in _VOWELS and not lower.startswith(_ASPIRATED)


def plural(word: str) -> str:
    """The regular plural of a noun or adjective."""
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith(("eau", "eu")) and word != "bleu":
        return word + "x"
    if word.endswith("al"):
        return word[:-2] + "aux"
    return word + "s"


_PLURAL_IN_S = frozenset(("festival", "banal", "naval", "final", "natal"))
_FEMININE = {
    "beau": "belle", "nouveau": "nouvelle", "vieux": "vieille", "blanc": "blanche",
    "franc": "franche", "public": "publique", "grec": "grecque", "long": "longue",
    "doux": "douce", "faux": "fausse", "roux": "rousse", "gros": "grosse", "bas": "basse",
    "épais": "épaisse", "frais": "fraîche", "sec": "sèche", "gentil": "gentille",
    "complet": "complète", "secret": "secrète", "discret": "discrète", "inquiet": "inquiète",
    "jaloux": "jalouse", "conservateur": "conservatrice", "bref": "brève",
}  # fmt: skip
_ENDINGS = (
    ("e", "e"), ("f", "ve"), ("eux", "euse"), ("er", "ère"), ("el", "elle"), ("en", "enne"),
    ("on", "onne"), ("et", "ette"), ("eur", "euse"), ("", "e"),
)  # fmt: skip


def feminine(adjective: str) -> str:
    """The feminine singular of a masculine singular adjective."""
    if adjective in _FEMININE:
        return _FEMININE[adjective]
    ending, replacement = next(pair for pair in _ENDINGS if adjective.endswith(pair[0]))
    return adjective.removesuffix(ending) + replacement


def noun_plural(noun: str) -> str:
    """The plural of a noun, with exceptions such as `festivals`."""
    return noun + "s" if noun in _PLURAL_IN_S else plural(noun)


def agree(adjective: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Returns the four forms of an adjective, indexed by `[feminine][plural]`."""
    female = feminine(adjective)
    return (adjective, plural(adjective)), (female, female + "s")


# The form of each word before a consonant, and its form before a vowel or a mute h
_MEETING = {
    "~le": ("le", "l'"), "~la": ("la", "l'"), "~les": ("les", "les"),
    "le": ("le", "l'"), "la": ("la", "l'"), "je": ("je", "j'"), "me": ("me", "m'"),
    "se": ("se", "s'"), "ne": ("ne", "n'"), "de": ("de", "d'"), "que": ("que", "qu'"),
    "~ce": ("ce", "cet"), "~ma": ("ma", "mon"), "~sa": ("sa", "son"),
    "~beau": ("beau", "bel"), "~nouveau": ("nouveau", "nouvel"), "~vieux": ("vieux", "vieil"),
}  # fmt: skip
_CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


def join(words: list[str], links: list[Links]) -> tuple[list[str], list[Links]]:
    """Elides and contracts words, and chooses the forms that depend on the next word.

    Args:
        words: the words of a draft, with `~`.
        links: the links of each word.

    Returns:
        The final words and their links. A contraction has the links of both words.
    """
    out: list[str] = []  # in reverse order
    out_links: list[Links] = []
    following = "."
    article = False  # whether the following word is an article that may contract
    for word, link in zip(reversed(words), reversed(links), strict=True):
        if article and (word, following) in _CONTRACTED:
            out[-1] = following = _CONTRACTED[word, following]
            out_links[-1] |= link
            continue
        article = False
        forms = _MEETING.get(word)
        if forms is not None:
            following = forms[elides(following)]
            article = word[0] == "~"
        elif word == "si" and following in ("il", "ils"):
            following = "s'"
        else:
            following = word
        out.append(following)
        out_links.append(link)
    return out[::-1], out_links[::-1]
