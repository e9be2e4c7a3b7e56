import dataclasses
import itertools
import math
import random

import pytest

from nmt.evaluation.alignment import Gold, parse_links
from nmt.evaluation.stress import (
    Example,
    cut,
    cut_records,
    joined,
    position_losses,
    position_sets,
)


def text(lengths):
    return [
        Example(
            number,
            [f"{number}.s{word}" for word in range(length)],
            [f"{number}.t{word}" for word in range(length + 1)],
            f"Text {number}.",
            Gold(frozenset({(0, 1)}), frozenset({(0, 1), (0, 0)})),
        )
        for number, length in enumerate(lengths)
    ]


def parts(example):
    """The numbers of the sentences that an input is made of."""
    return list(dict.fromkeys(int(word.partition(".")[0]) for word in example.source))


def test_links_follow_their_words():
    first = Example(3, ["a", "b"], ["x"], gold=parse_links("1-0"))
    second = Example(4, ["c"], ["y", "z", "w"], gold=parse_links("0-2 0p1"))
    pair = first + second
    assert pair.source == ["a", "b", "c"]
    assert pair.target == ["x", "y", "z", "w"]
    assert pair.gold.sure == {(1, 0), (2, 3)}
    assert pair.gold.possible == {(1, 0), (2, 3), (2, 2)}
    assert (first + dataclasses.replace(second, gold=None)).gold is None


@pytest.mark.parametrize("length", [20, 160])
def test_inputs_are_near_the_length_and_use_a_sentence_once(length):
    generator = random.Random(length)
    pairs = text([generator.randint(1, 60) for _ in range(400)])
    inputs = joined(pairs, length, count=30)
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


def distance(a, b):
    """Edit distance by the definition."""
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        last, row = row, [i]
        for j, other in enumerate(b, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (word != other)))
    return row[-1]


@pytest.mark.parametrize("seed", range(6))
def test_an_output_is_cut_with_the_least_edit_distance_of_all_cuts(seed):
    draw = random.Random(seed)
    references = [draw.choices("abc", k=draw.randint(0, 4)) for _ in range(3)]
    output = draw.choices("abcd", k=draw.randint(0, 9))
    parts = cut(output, references)
    assert [word for part in parts for word in part] == output
    places = range(len(output) + 1)
    least = min(
        distance(output[:i], references[0])
        + distance(output[i:j], references[1])
        + distance(output[j:], references[2])
        for i, j in itertools.combinations_with_replacement(places, 2)
    )
    assert sum(map(distance, parts, references)) == least


def test_sentences_are_paired_with_themselves_alone():
    """A system that writes the first sentence of an input and half of each later one."""
    examples = [
        Example(n, [f"{n}.{k}" for k in range(8)], [f"{n}.{k}" for k in range(8)])
        for n in range(11)
    ]
    sets = position_sets("news", examples, [2, 4], 10)
    assert [len(inputs) for inputs in sets.values()] == [8, 4, 2]

    def translated(inputs):
        for each in inputs:
            sources = [part.source for part in each.parts]
            written = [word for n, words in enumerate(sources) for word in words[: 4 if n else 8]]
            parts = [
                {"id": part.id, "reference": part.target, "position": n}
                for n, part in enumerate(each.parts, 1)
            ]
            yield {"hypothesis": written, "parts": parts}

    alone, _, four = (cut_records(translated(inputs), " ".join) for inputs in sets.values())
    assert [row["id"] for row in four] == [row["id"] for row in alone] == list(range(8))
    rows = list(position_losses("news-position4", alone, four, 100))
    assert [(row["from"], row["sentences"]) for row in rows] == [(None, 8), (1, 2), (2, 2), (3, 2), (4, 2)]  # fmt: skip
    half = 100 * (1 - math.exp(-1))
    assert [row["value"] for row in rows[1:]] == [0, *[pytest.approx(half)] * 3]
