import random

import pytest

from nmt.evaluation.alignment import Gold, parse_links
from nmt.evaluation.examples import Example
from nmt.evaluation.stress import joined, stress_sets


def text(lengths, gold=True):
    return [
        Example(
            number,
            [f"{number}.s{word}" for word in range(length)],
            [f"{number}.t{word}" for word in range(length + 1)],
            f"Text {number}.",
            Gold(frozenset({(0, 1)}), frozenset({(0, 1), (0, 0)})) if gold else None,
        )
        for number, length in enumerate(lengths)
    ]


def parts(example):
    """The numbers of the sentences that an input is made of."""
    return list(dict.fromkeys(int(word.partition(".")[0]) for word in example.source))


def test_links_follow_their_words():
    first = Example(3, ["a", "b"], ["x"], gold=parse_links("1-0"))
    pair = first + Example(4, ["c"], ["y", "z", "w"], gold=parse_links("0-2 0p1"))
    assert pair.source == ["a", "b", "c"]
    assert pair.target == ["x", "y", "z", "w"]
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
    assert [made.id for made in inputs] == list(range(30))
    for made in inputs:
        assert 0.75 * length <= len(made.source) <= 1.25 * length
        numbers = parts(made)
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert made.source == [word for number in numbers for word in pairs[number].source]
        assert made.target == [word for number in numbers for word in pairs[number].target]
        assert len(made.gold.sure) == len(numbers)
        assert made.text == " ".join(f"Text {number}." for number in numbers)
    used = [number for made in inputs for number in parts(made)]
    assert len(used) == len(set(used))
    assert sum(len(made.source) for made in inputs) / 30 == pytest.approx(length, rel=0.08)


def test_a_sentence_that_does_not_fit_is_passed_over():
    inputs = joined(text([90, 10, 11, 90, 19]), 20, count=9)
    assert [parts(made) for made in inputs] == [[1, 2], [4]]


def test_sets_are_named_after_their_length_and_absent_when_empty():
    sets = stress_sets("news", text([12] * 9), [20, 40, 160], count=2)
    assert {name: [len(made.source) for made in inputs] for name, inputs in sets.items()} == {
        "news-joined20": [24, 24],
        "news-joined40": [36, 36],
    }
