"""Moses tokenisation of ordinary and unusual text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.text.tokenise import split, tokeniser

HOSTILE = [
    "",
    " \t\u00a0\u3000 ",
    "\x00\x01\x1f\x7f\x85",
    "\u200b\u200d\u2060\ufeff\u00ad",
    "\u202eesrever\u202c مرحبا بالعالم שלום",
    "a\u2028b\u2029c\x0bd\x0ce\x1cf",
    "word " * 1_000 + "x" * 1_000 + "." * 500,
    "DOTDOTMULTI DOTMULTI THISISPROTECTED000",
    "<script>alert(1)</script> &amp; </s> <unk> | [x]",
    "e\u0301\u0300\u0300 👩‍👩‍👧‍👧 🇫🇷",
    "\ud800 lone",
]


@pytest.mark.parametrize(
    ("language", "text", "tokens"),
    [
        ("en", "Don't say “maybe”, Mr. Smith!", 'Don \'t say " maybe , " Mr. Smith !'),
        ("en", "It's Mr. Smith's (old) dog.", "It 's Mr. Smith 's ( old ) dog ."),
        ("fr", "L’été, c’est l’heure d’y aller…", "L' été , c' est l' heure d' y aller ..."),
        ("fr", "Il paie 5\u00a0300,50 € « comptant ».", 'Il paie 5,300,50 € " comptant " .'),
        ("en", "R&D <b> 100%", "R & D < b > 100 %"),
        # Before a small letter, a full stop belongs to an abbreviation.
        ("en", "Approx. three came. Four left. élan!", "Approx. three came . Four left. élan !"),
    ],
)
def test_tokens_equal_those_of_moses(language: str, text: str, tokens: str) -> None:
    assert " ".join(tokeniser(language).tokenise(text)) == tokens


def test_detokenise_restores_text() -> None:
    text = "It's Mr. Smith's (old) dog, isn't it?"
    tool = tokeniser("en")
    assert tool.detokenise(tool.tokenise(text)) == text
    french = ["l'", "été", "d'", "avant", ",", "c'", "est", "tout", "."]
    assert tokeniser("fr").detokenise(french) == "l'été d'avant, c'est tout."
    assert tool.detokenise(["a", "&amp;", "b", "&apos;s"]) == "a & b's"


def check(text: str, language: str = "en") -> None:
    tool = tokeniser(language)
    tokens = tool.tokenise(text)
    assert " ".join(tokens).split() == tokens
    assert all(tokens)
    assert "\n" not in tool.detokenise(tokens)
    " ".join(tokens).encode()


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("text", HOSTILE)
def test_odd_text_gives_clean_tokens(text: str, language: str) -> None:
    check(text, language)


@settings(max_examples=80, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("ab.'\"-,… \u00a0<>&0\u200d"))
def test_any_text_gives_clean_tokens(text: str) -> None:
    check(text)
    tokens = split(text)
    assert " ".join(tokens).split() == tokens


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("hi", ["\u0915\u094d\u200d\u0937", "\u092a\u0922\u093c\u200c\u0928\u093e"]),
        ("bn", ["\u09b0\u200d\u09cd\u09af\u09be\u09ac", "\u09ae\u200c\u09ac\u09be"]),
        ("te", ["\u0c38\u0c3e\u0c2b\u0c4d\u0c1f\u0c4d\u200c\u0c35\u0c47\u0c30\u0c4d"]),
        ("ml", ["\u0d28\u0d4d\u200d\u0d2e", "\u0d05\u0d35\u0d28\u0d4d\u200d"]),
    ],
)
def test_joiners_stay_inside_words(language: str, words: list[str]) -> None:
    tool = tokeniser(language)
    text = " ".join(words)
    assert tool.tokenise(text) == words
    assert tool.detokenise(words) == text
    assert tool.tokenise(f"\u200d{words[0]} \u200d , \u200c") == [words[0], ","]


def test_splitting_keeps_the_number_of_tokens() -> None:
    assert split(" 10\u00a0000  francs\t. ") == ["10_000", "francs", "."]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("cafe\u0301s, ma\u0302t", ["cafés", ",", "mât"]),
        ("Михаи\u0301л", ["Михаи\u0301л"]),
        ("I \u2764\ufe0f you", ["I", "\u2764", "you"]),
        ("ok👍🏽!👩\u200d👩\u200d👧x", ["ok", "👍🏽", "!", "👩\u200d👩\u200d👧", "x"]),
        ("🇫🇷🇩🇪 1\ufe0f\u20e3", ["🇫🇷", "🇩🇪", "1\u20e3"]),
        ("x \u2205\u0338 \U000f0001👍🏽", ["x", "\u2205\u0338", "\U000f0001", "👍🏽"]),
    ],
)
def test_grapheme_clusters_are_one_token(text: str, tokens: list[str]) -> None:
    assert tokeniser("en").tokenise(text) == tokens
    assert split(" ".join(tokens)) == tokens


IGNORABLE = "\xad\u034f\u115f\u17b4\u180b\u180f\u200b\u200d\u202a\u2060\u206f\u3164\ufe00\ufe0f\ufeff\uffa0\U000e0100"


def test_ignorable_characters_are_dropped() -> None:
    tokens = tokeniser("en").tokenise("".join(f"heart {character} " for character in IGNORABLE))
    assert tokens == ["heart"] * len(IGNORABLE)


def test_each_character_of_a_script_without_spaces_is_a_token() -> None:
    tool = tokeniser("ja")
    assert tool.tokenise("我爱GPU，中国。") == ["我", "爱", "GPU", "，", "中", "国", "。"]
    assert tool.detokenise(["我", "爱", "中", "国", "。"]) == "我爱中国。"
    assert tokeniser("th").tokenise("สวัสดี") == ["ส", "วั", "ส", "ดี"]


def test_languages_without_rules_use_english_rules() -> None:
    text = "It's Mr. Smith's (old) dog."
    assert tokeniser("xx").tokenise(text) == tokeniser("en").tokenise(text)
