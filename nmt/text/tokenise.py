"""Tokenisation and detokenisation by the rules of Moses (sacremoses).

Text is normalised to composed characters (NFC). Accents without a composed form stay with their letter.
An emoji of several code points (flags, skin tones, joined figures, keycaps) is one token. Invisible
characters are dropped, so that every token is visible and contains no white space. Special characters
are not escaped: `&` stays `&`.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

# Languages with Moses rules. sacremoses supports ja and ko too, but has no lists of abbreviations for them.
LANGUAGES = frozenset(NonbreakingPrefixes().available_langs.values()) | {"ja", "ko"}

# Control characters, lone surrogates, and the default ignorable characters of Unicode (soft hyphens, tags,
# variation selectors, directional marks, fillers, …) except the joiners U+200C and U+200D, which words may contain.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
# White space between the tokens of tokenised text, as in other tools. `str.split` would also split at
# no-break spaces, and the tokens would no longer match gold alignments.
ASCII_SPACE = re.compile(r"[ \t\n\r\f\v]+")
SPACE = re.compile(r"\s")
VIRAMA = 9  # canonical combining class of viramas, which suppress a vowel
JOINERS = "\u200c\u200d"
MARKS = "".join(c for c in map(chr, range(0x10000)) if unicodedata.category(c).startswith("M"))

_SYMBOL = "[\xa9\xae\u203c-\u3299\U0001f000-\U0001faff]"  # parts of emoji
_TONED = f"{_SYMBOL}[\U0001f3fb-\U0001f3ff]"
# Matches clusters that look like one character but that Moses would split. Private-use characters replace
# the clusters during tokenisation, so private-use characters in the text are matched too.
CLUSTER = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|(?:{_TONED}|{_SYMBOL})(?:\u200d(?:{_TONED}|{_SYMBOL}))+|{_TONED}"
    f"|[0-9#*]\u20e3|[^\\w\\s{MARKS}{JOINERS}][{MARKS}]+|[\U000f0000-\U0010ffff]"
)
# For a fast test for clusters: every cluster contains one of these characters or a private-use character.
EXTENDING = frozenset(
    MARKS + "\u200d" + "".join(map(chr, [*range(0x1F1E6, 0x1F200), *range(0x1F3FB, 0x1F400)]))
)
_PRIVATE = 0xF0000
# Languages without spaces between words: Chinese, Japanese, Thai, Lao, Khmer, Burmese
UNSPACED_LANGUAGES = frozenset(["zh", "ja", "th", "lo", "km", "my"])
# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han, and their punctuation.
UNSPACED = (
    "\u3001-\u303f\uff01-\uff0f\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0edf\u1000-\u109f\u1780-\u17dd\u3041-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
MAX_WORDS = 5_000  # maximum number of words per line of nmt.translate and nmt.score: attention is quadratic in it


class Tokeniser:
    """Moses normalisation, tokenisation and detokenisation of one language.

    Args:
        language: code such as `en` or `fr`. Languages without Moses rules use the English rules, as
            in Moses.

    Attributes:
        language: code of the Moses rules.
        characters: whether each character of a script without spaces is a token. True for the languages
            in `UNSPACED_LANGUAGES`.
    """

    def __init__(self, language: str) -> None:
        self.language = language if language in LANGUAGES else "en"
        self.characters = language in UNSPACED_LANGUAGES
        self._normaliser = MosesPunctNormalizer(self.language)
        self._tokeniser = MosesTokenizer(self.language)
        alphanumeric = self._tokeniser.IsAlnum + MARKS + JOINERS
        pattern, padded = self._tokeniser.PAD_NOT_ISALNUM
        # Ranges, because `re` tries the characters beyond U+FFFF of a class one by one.
        compressed = character_class(alphanumeric)
        pattern = re.compile(pattern.pattern.replace(self._tokeniser.IsAlnum, compressed))
        self._tokeniser.PAD_NOT_ISALNUM = pattern, padded
        self._alphanumeric = alphanumeric
        # sacremoses makes a set of its small letters again for every full stop, which is half of its time.
        self._tokeniser.islower = frozenset(self._tokeniser.IsLower).issuperset
        self._detokeniser = MosesDetokenizer(self.language)

    def tokenise(self, text: str) -> list[str]:
        """Splits a line of raw text into words; returns [] if no character is visible."""
        clusters: list[str] = []

        def stand_in(cluster: re.Match[str]) -> str:
            clusters.append(cluster[0])
            return chr(_PRIVATE + len(clusters) - 1)

        text = INVISIBLE.sub("", text)
        if not text.isascii():
            text = unicodedata.normalize("NFC", text)
            if not EXTENDING.isdisjoint(text) or max(text) >= chr(_PRIVATE):
                text = CLUSTER.sub(stand_in, text)
            if self.characters:
                text = _character_ends().sub(" ", text)
        text = self._normaliser.normalize(text)
        tokens = self._tokeniser.tokenize(text, escape=False)
        if clusters:
            indices = (ord(token) - _PRIVATE if len(token) == 1 else -1 for token in tokens)
            tokens = [clusters[n] if n >= 0 else t for n, t in zip(indices, tokens, strict=True)]
        if any(joiner in text for joiner in JOINERS):
            tokens = list(filter(None, map(_without_outer_joiners, tokens)))
        return list(map(sys.intern, tokens))  # equal words of a large text share memory

    def detokenise(self, tokens: Sequence[str]) -> str:
        """Joins words to a line of ordinary text, and removes the XML escapes of Moses' own tokeniser."""
        text = str(self._detokeniser.detokenize(list(tokens), unescape=True))
        return _between_characters().sub("", text) if self.characters else text

    def rules(self) -> dict[str, Any]:
        """Returns the rules, so that JavaScript code can tokenise and detokenise in the same way.

        Returns:
            The setting `language`, lists of words, and character ranges from `ranges`.
            Words in `prefixes` keep their full stop. Words in `numeric_prefixes` keep it only before a
            number. Characters in `vowel_killers` may precede a final joiner. Each character in `unspaced`
            is a token.
        """
        moses_tokenizer = self._tokeniser
        killers = (mark for mark in MARKS if unicodedata.combining(mark) == VIRAMA)
        return {
            "language": self.language,
            "prefixes": list(moses_tokenizer.NONBREAKING_PREFIXES),
            "numeric_prefixes": list(moses_tokenizer.NUMERIC_ONLY_PREFIXES),
            "alnum": ranges(self._alphanumeric),
            "alpha": ranges(moses_tokenizer.IsAlpha),
            "lower": ranges(moses_tokenizer.IsLower),
            "number": ranges(moses_tokenizer.IsN),
            "vowel_killers": ranges(killers),
            "marks": ranges(MARKS),
            "unspaced": ranges(_unspaced()) if self.characters else [],
            "plain_alpha": ranges(self._detokeniser.IsAlpha),
            "currency": ranges(self._detokeniser.IsSc),
        }


def ranges(characters: Iterable[str]) -> list[int]:
    """Returns the first and last code point of each range of consecutive code points.

    >>> ranges("cabx")
    [97, 99, 120, 120]
    """
    ends: list[int] = []
    for code in sorted(set(map(ord, characters))):
        if ends and code == ends[-1] + 1:
            ends[-1] = code
        else:
            ends += [code, code]
    return ends


def character_class(characters: Iterable[str]) -> str:
    r"""Returns characters as ranges, for use between the brackets of a regular expression.

    >>> character_class("cab-")
    '\\--\\-a-c'
    """
    ends = [re.escape(chr(code)) for code in ranges(characters)]
    return "".join(f"{first}-{last}" for first, last in zip(ends[::2], ends[1::2], strict=True))


def _without_outer_joiners(token: str) -> str:
    r"""Removes joiners at both ends of a token, except for one after a final virama.

    >>> ascii(_without_outer_joiners("\u200da\u200cb\u200d"))
    "'a\\u200cb'"
    """
    token = token.lstrip(JOINERS)
    word = token.rstrip(JOINERS)
    ends_in_mark = word != token and unicodedata.combining(word[-1:] or "a") == VIRAMA
    return token[: len(word) + 1] if ends_in_mark else word


def _unspaced() -> Iterator[str]:
    """Yields all characters of scripts without spaces."""
    inside = re.compile(f"[{UNSPACED}]")
    return filter(inside.match, map(chr, range(0x40000)))


@functools.cache
def _character_ends() -> re.Pattern[str]:
    """Matches both ends of each character of an unspaced script, except next to a space or before a mark."""
    character, inside = f"[{UNSPACED}]", f"(?![{MARKS}])"
    return re.compile(f"(?<={character}){inside}(?=\\S)|(?<=\\S)(?={character}){inside}")


@functools.cache
def _between_characters() -> re.Pattern[str]:
    """Matches a space between two characters of scripts without spaces."""
    return re.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")


def split(text: str) -> list[str]:
    """Splits a tokenised line at ASCII white space only, so that the number of tokens stays the same.

    Other white space within a token, such as a no-break space in a number, becomes `_`.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return [SPACE.sub("_", token) for token in ASCII_SPACE.split(text) if token]


def count_words(line: str, characters: bool) -> int:
    """Counts words between spaces; if `characters`, each character of a script without spaces is a word.

    >>> count_words("see https://example.org/a?b=c now", False)
    3
    >>> count_words("\u4ed6\u4e70\u4e863 apples", True)
    5
    """
    return len(_words(characters).findall(line))


@functools.cache
def _words(characters: bool) -> re.Pattern[str]:
    spaced = f"[^\\s{UNSPACED}]+"
    return re.compile(f"[{UNSPACED}]|{spaced}" if characters else r"\S+")


@functools.lru_cache(maxsize=16)
def tokeniser(language: str) -> Tokeniser:
    """Returns the cached tokeniser of a language."""
    return Tokeniser(language)
