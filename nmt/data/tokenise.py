"""Tokenisation and detokenisation by the rules of Moses (sacremoses).

Nothing is escaped: `&` stays `&`. Invisible characters that would otherwise become words of their
own are dropped, so that every token is visible, not empty and free of white space.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

from nmt.utils.errors import InputError

# Handled by sacremoses in the tokeniser itself, without a list of abbreviations.
LANGUAGES = frozenset(NonbreakingPrefixes().available_langs.values()) | {"ja", "ko"}

# C0 and C1 controls, soft hyphen, zero-width space, word joiner, byte order mark, directional
# marks, interlinear and tag characters, lone surrogates. The joiners U+200C and U+200D stay inside
# words of the languages below.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
# What other tools take for the end of a token of already tokenised text; `str.split` would also cut
# at no-break spaces and put the tokens out of step with gold alignments.
ASCII_SPACE = re.compile(r"[ \t\n\r\f\v]+")
SPACE = re.compile(r"\s")
VIRAMA = 9  # canonical combining class of the signs that kill a vowel
JOINERS = "\u200c\u200d"
# Languages whose spelling needs joiners; Moses takes them for signs between two words.
JOINING = frozenset(["as", "bn", "gu", "hi", "kn", "ml", "mr", "or", "pa", "ta", "te"])


class Tokeniser:
    """Moses normalisation, tokenisation and detokenisation of one language.

    Args:
        language: code that Moses knows, such as `en` or `fr`.
        normalise: normalise punctuation before tokenising.

    Raises:
        InputError: for a language without Moses rules.
    """

    def __init__(self, language: str, normalise: bool = True) -> None:
        if language not in LANGUAGES:
            known = ", ".join(sorted(LANGUAGES))
            raise InputError(f"data.languages: no Moses rules for {language!r}; known: {known}")
        self.language = language
        self._normaliser = MosesPunctNormalizer(language) if normalise else None
        self._tokeniser = MosesTokenizer(language)
        if language in JOINING:
            alphanumeric = f"{self._tokeniser.IsAlnum}{JOINERS}"
            pattern, padded = self._tokeniser.PAD_NOT_ISALNUM
            pattern = re.compile(pattern.pattern.replace(self._tokeniser.IsAlnum, alphanumeric))
            self._tokeniser.PAD_NOT_ISALNUM = pattern, padded
        self._detokeniser = MosesDetokenizer(language)

    def tokenise(self, text: str) -> list[str]:
        """Words of one line of raw text; empty for a line without visible characters."""
        text = INVISIBLE.sub("", text)
        if self._normaliser is not None:
            text = self._normaliser.normalize(text)
        tokens = self._tokeniser.tokenize(text, escape=False)
        return [word for token in tokens if (word := _without_outer_joiners(token))]

    def detokenise(self, tokens: Sequence[str]) -> str:
        """Words as a line of ordinary text."""
        return str(self._detokeniser.detokenize(list(tokens), unescape=False))

    def rules(self) -> dict[str, Any]:
        """What another program needs to tokenise and detokenise alike.

        Returns:
            `language`, `normalise`; `prefixes` (words that keep their full stop) and
            `numeric_prefixes` (those that keep it before a number only); and classes of characters as
            `ranges`: `alnum`, `alpha`, `lower`, `number`, `vowel_killers` (which may end in a joiner)
            for tokenising, `plain_alpha` and `currency` for detokenising.
        """
        moses, joining = self._tokeniser, self.language in JOINING
        killers = (chr(c) for c in range(0x110000) if unicodedata.combining(chr(c)) == VIRAMA)
        return {
            "language": self.language,
            "normalise": self._normaliser is not None,
            "prefixes": list(moses.NONBREAKING_PREFIXES),
            "numeric_prefixes": list(moses.NUMERIC_ONLY_PREFIXES),
            "alnum": ranges(moses.IsAlnum + (JOINERS if joining else "")),
            "alpha": ranges(moses.IsAlpha),
            "lower": ranges(moses.IsLower),
            "number": ranges(moses.IsN),
            "vowel_killers": ranges(killers if joining else ""),
            "plain_alpha": ranges(self._detokeniser.IsAlpha),
            "currency": ranges(self._detokeniser.IsSc),
        }


def ranges(characters: Iterable[str]) -> list[int]:
    """Characters as runs of code points: first and last of each, one run after another.

    >>> ranges("cabx")
    [97, 99, 120, 120]
    """
    found: list[int] = []
    for code in sorted(set(map(ord, characters))):
        if found and code == found[-1] + 1:
            found[-1] = code
        else:
            found += [code, code]
    return found


def _without_outer_joiners(token: str) -> str:
    """A token whose joiners join something: none at its ends, but for one after a vowel killer.

    >>> ascii(_without_outer_joiners("\u200da\u200cb\u200d"))
    "'a\\u200cb'"
    """
    token = token.lstrip(JOINERS)
    word = token.rstrip(JOINERS)
    ends_in_mark = word != token and unicodedata.combining(word[-1:] or "a") == VIRAMA
    return token[: len(word) + 1] if ends_in_mark else word


def split(text: str) -> list[str]:
    """Tokens of a line that is tokenised already; their number is that of the line.

    White space other than ASCII within a token (a no-break space in a number) becomes `_`.
    """
    return [SPACE.sub("_", token) for token in ASCII_SPACE.split(text) if token]


@functools.lru_cache(maxsize=16)
def tokeniser(language: str, normalise: bool = True) -> Tokeniser:
    """The process-wide tokeniser of a language; arguments and errors as `Tokeniser`."""
    return Tokeniser(language, normalise)
