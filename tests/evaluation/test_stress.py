import random

import pytest

from nmt.evaluation.alignment import Gold, parse_links
from nmt.evaluation.stress import JoinedPair, joined, stress_sets


def text(lengths, gold=True):
    return [
        JoinedPair(
            tuple(f"s{number}.{word}" for word in range(length)),
            tuple(f"t{number}.{word}" for word in range(length + 1)),
            Gold(frozenset({(0, 1)}), frozenset({(0, 1), (0, 0)})) if gold else None,
            f"Text {number}.",
            (number,),
        )
        for number, length in enumerate(lengths)
    ]


def test_links_follow_their_words():
    pair = JoinedPair(("a", "b"), ("x",), parse_links("1-0")) + JoinedPair(
        ("c",), ("y", "z", "w"), parse_links("0-2 0p1")
    )
    assert pair.source == ("a", "b", "c")
    assert pair.target == ("x", "y", "z", "w")
    assert pair.gold.sure == {(1, 0), (2, 3)}
    assert pair.gold.possible == {(1, 0), (2, 3), (2, 2)}


def test_a_part_without_gold_leaves_none():
    first, second = text([2])[0], text([3], gold=False)[0]
    assert (first + second).gold is None


@pytest.mark.parametrize("length", [20, 40, 80, 160])
def test_inputs_are_near_the_length_and_use_a_sentence_once(length):
    generator = random.Random(length)
    pairs = text([generator.randint(1, 60) for _ in range(400)])
    inputs = joined(pairs, length, count=30)
    assert len(inputs) == 30
    assert inputs == joined(pairs, length, count=30)
    for made in inputs:
        assert 0.75 * length <= len(made.source) <= 1.25 * length
        assert list(made.parts) == list(range(made.parts[0], made.parts[-1] + 1))
        assert made.source == tuple(w for part in made.parts for w in pairs[part].source)
        assert made.target == tuple(w for part in made.parts for w in pairs[part].target)
        assert len(made.gold.sure) == len(made.parts)
        assert made.text == " ".join(f"Text {part}." for part in made.parts)
    used = [part for made in inputs for part in made.parts]
    assert len(used) == len(set(used))
    assert sum(len(made.source) for made in inputs) / 30 == pytest.approx(length, rel=0.08)


def test_a_sentence_that_does_not_fit_is_passed_over():
    inputs = joined(text([90, 10, 11, 90, 19]), 20, count=9)
    assert [made.parts for made in inputs] == [(1, 2), (4,)]


def test_sets_are_named_after_their_length_and_absent_when_empty():
    sets = stress_sets("news", text([12] * 9), [20, 40, 160], count=2)
    assert {name: [len(made.source) for made in inputs] for name, inputs in sets.items()} == {
        "news-joined20": [24, 24],
        "news-joined40": [36, 36],
    }
