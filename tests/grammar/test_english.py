"""English word forms."""

import pytest

from nmt.grammar import english


@pytest.mark.parametrize(
    ("word", "article"),
    [
        ("apple", "an"), ("house", "a"), ("hour", "an"), ("honest", "an"), ("university", "a"),
        ("uniform", "a"), ("useful", "a"), ("European", "a"), ("umbrella", "an"), ("uncle", "an"),
        ("unexpected", "an"), ("union", "a"), ("urgent", "an"), ("ugly", "an"), ("English", "an"),
    ],
)  # fmt: skip
def test_article_follows_the_sound(word: str, article: str) -> None:
    assert english.article(word) == article


def test_plurals() -> None:
    plurals = {"city": "cities", "boy": "boys", "box": "boxes", "church": "churches", "cat": "cats"}
    assert {noun: english.noun_plural(noun) for noun in plurals} == plurals


@pytest.mark.parametrize(
    ("given", "forms"),
    [
        (("stop",), ("stop", "stops", "stopped", "stopped", "stopping")),
        (("carry",), ("carry", "carries", "carried", "carried", "carrying")),
        (("play",), ("play", "plays", "played", "played", "playing")),
        (("die",), ("die", "dies", "died", "died", "dying")),
        (("prefer",), ("prefer", "prefers", "preferred", "preferred", "preferring")),
        (("visit",), ("visit", "visits", "visited", "visited", "visiting")),
        (("go", "went", "gone"), ("go", "goes", "went", "gone", "going")),
        (("take", "took", "taken"), ("take", "takes", "took", "taken", "taking")),
        (("see", "saw", "seen"), ("see", "sees", "saw", "seen", "seeing")),
        (("wash",), ("wash", "washes", "washed", "washed", "washing")),
    ],
)
def test_verb_forms(given: tuple[str, ...], forms: tuple[str, ...]) -> None:
    assert english.conjugate(*given)[:5] == forms
    assert english.conjugate(*given).rest == ()


def test_verb_of_two_words() -> None:
    forms = english.conjugate("wake_up", "woke_up", "woken_up")
    assert (forms.third, forms.past, forms.participle, forms.gerund) == (
        "wakes", "woke", "woken", "waking",
    )  # fmt: skip
    assert forms.rest == ("up",)
