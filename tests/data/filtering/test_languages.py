"""Scripts and languages of single lines."""

from __future__ import annotations

import unicodedata

import pytest

from nmt.data.filtering.languages import SCRIPTS, check_identifier, in_script, is_other
from nmt.data.tokenise import LANGUAGES
from nmt.utils.errors import InputError

SAMPLES = {  # the name of each script in the names of its letters
    "Bengali": "BENGALI",
    "Greek": "GREEK",
    "Gujarati": "GUJARATI",
    "Devanagari": "DEVANAGARI",
    "Han": "CJK",
    "Hiragana": "HIRAGANA",
    "Katakana": "KATAKANA",
    "Kannada": "KANNADA",
    "Hangul": "HANGUL",
    "Malayalam": "MALAYALAM",
    "Meetei_Mayek": "MEETEI",
    "Oriya": "ORIYA",
    "Gurmukhi": "GURMUKHI",
    "Cyrillic": "CYRILLIC",
    "Tamil": "TAMIL",
    "Telugu": "TELUGU",
    "Latin": "LATIN",
}


def test_every_language_has_the_letters_that_unicode_names_after_its_script() -> None:
    assert set(SCRIPTS) <= LANGUAGES
    letters: dict[str, list[str]] = {}
    for point in range(0x41, 0xAC00, 7):
        character = chr(point)
        if unicodedata.category(character).startswith("L"):
            letters.setdefault(unicodedata.name(character, "").split()[0], []).append(character)
    letters["HANGUL"] = list("가나다")
    for language in LANGUAGES:
        scripts = SCRIPTS.get(language, ("Latin",))
        own = {SAMPLES[script] for script in scripts}
        for name in SAMPLES.values():
            expected = 1.0 if name in own else 0.0
            assert in_script("".join(letters[name][-40:]), language) == expected, (language, name)


def test_only_letters_count() -> None:
    assert in_script("12 % , « »", "ru") == 1.0
    assert in_script("ab жз 12", "en") == 0.5
    assert in_script("éœß", "fr") == 1.0


def test_language_is_identified() -> None:
    pytest.importorskip("py3langid", reason="the extra 'languages' is not installed")
    english = "The committee has voted on the proposal of the commission ."
    french = "Le comité a voté sur la proposition de la commission ."
    assert not is_other(english, "en", 0.5)
    assert is_other(english, "fr", 0.5)
    assert is_other(french, "en", 0.5)
    assert not is_other("Koch ( A5-0105 / 1999 )", "en", 0.5)  # too little to be sure of anything
    check_identifier(("en", "yue"), "key")
    with pytest.raises(InputError, match=r"^key: the identifier does not know the language 'tdt'"):
        check_identifier(("en", "tdt"), "key")
