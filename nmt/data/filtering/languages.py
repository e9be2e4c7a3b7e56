"""Whether a line is in the script and the language it should be in."""

from __future__ import annotations

import functools
from typing import Any

import regex

from nmt.utils.errors import InputError
from nmt.utils.optional import need

# Scripts of the languages with Moses rules that are not written in Latin letters.
SCRIPTS = {
    "as": ("Bengali",),
    "bn": ("Bengali",),
    "el": ("Greek",),
    "gu": ("Gujarati",),
    "hi": ("Devanagari",),
    "ja": ("Han", "Hiragana", "Katakana"),
    "kn": ("Kannada",),
    "ko": ("Hangul", "Han"),
    "ml": ("Malayalam",),
    "mni": ("Meetei_Mayek", "Bengali"),
    "mr": ("Devanagari",),
    "or": ("Oriya",),
    "pa": ("Gurmukhi",),
    "ru": ("Cyrillic",),
    "ta": ("Tamil",),
    "te": ("Telugu",),
    "yue": ("Han",),
    "zh": ("Han",),
}
LETTER = regex.compile(r"\p{Letter}")
IDENTIFIED_AS = {"yue": "zh", "tdt": None, "mni": None}  # codes that the identifier lacks


def in_script(text: str, language: str) -> float:
    """Share of the letters of `text` that are of the language's script; 1 where it has no letter.

    >>> in_script("Москва and", "en"), in_script("1914", "ru")
    (0.3333333333333333, 1.0)
    """
    letters = len(LETTER.findall(text))
    return len(_letters(language).findall(text)) / letters if letters else 1.0


@functools.cache
def _letters(language: str) -> Any:
    scripts = SCRIPTS.get(language, ("Latin",))
    named = "".join(rf"\p{{Script={script}}}" for script in scripts)
    return regex.compile(rf"[{named}&&\p{{Letter}}]", flags=regex.VERSION1)


def identify(text: str) -> tuple[str, float]:
    """The most probable of the languages that the identifier knows, and its probability."""
    language, probability = _identifier().classify(text)
    return str(language), float(probability)


def is_other(text: str, language: str, probability: float) -> bool:
    """Whether `text` is in another language than `language` with more than this probability."""
    found, found_probability = identify(text)
    return found != IDENTIFIED_AS.get(language, language) and found_probability > probability


def check_identifier(languages: tuple[str, str], key: str) -> None:
    """Refuses where the identifier is not installed or does not know one of the languages."""
    need("py3langid", "languages", key)
    for language in languages:
        if IDENTIFIED_AS.get(language, language) not in _identifier().labels:
            raise InputError(f"{key}: the identifier does not know the language {language!r}")


@functools.cache
def _identifier() -> Any:
    """py3langid (Lui and Baldwin 2012, langid.py), whose model lies in its package."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
