"""Splits translations of documents into segments."""

import itertools
import random

import pytest

from nmt.evaluation.documents import align, cut, measure_documents


def distance(a, b):
    """Computes the edit distance with the textbook recurrence."""
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        last = row
        row = [i]
        for j, other in enumerate(b, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (word != other)))
    return row[-1]


def price(parts):
    """Counts the cuts inside the text that follow no final mark."""
    ends = list(itertools.accumulate(map(len, parts)))[:-1]
    words = [word for part in parts for word in part]
    return sum(0 < end < len(words) and words[end - 1] != "." for end in ends)


@pytest.mark.parametrize("seed", range(8))
def test_cut_has_the_least_cost_of_all_cuts(seed):
    draw = random.Random(seed)
    references = [draw.choices("ab.", k=draw.randint(0, 4)) for _ in range(3)]
    output = draw.choices("abd.", k=draw.randint(0, 9))
    found = cut([" ".join(reference) for reference in references], " ".join(output))
    parts = [text.split() for text in found.texts]
    assert [word for part in parts for word in part] == output
    places = range(len(output) + 1)
    least = min(
        sum(map(distance, split, references)) + price(split)
        for i, j in itertools.combinations_with_replacement(places, 2)
        for split in [(output[:i], output[i:j], output[j:])]
    )
    assert sum(map(distance, parts, references)) + price(parts) == least


def test_segments_keep_the_original_text():
    references = ["He said: “Go!”", "It's 3,5 km.", "他走了。", "再见！"]
    output = "He said:  “Go !”   It’s 3,5\u00a0km. 他走了。再见！"
    assert align(references, output).texts == [
        "He said:  “Go !”",
        "It’s 3,5\u00a0km.",
        "他走了。",
        "再见！",
    ]


@pytest.mark.parametrize("mark", ["\n\n", "\n"])
def test_equal_numbers_of_paragraphs_or_lines_are_the_segments(mark):
    found = align(["a b.", "c d.", "e."], mark.join(["c d.", "", "a b."]))
    assert found == (["c d.", "", "a b."], False, 0)
    assert align(["a b.", "c d."], mark.join(["a b.", "c", "d."])).is_cut


def test_omissions_and_additions_are_counted():
    found = cut(["a b c.", "d e f.", "g h i."], "a b c. g h x y i.")
    assert found.texts == ["a b c.", "", "g h x y i."]
    assert found.extra == 2


def test_positions_and_lengths_of_documents():
    documents, lengths = ["x"] * 3 + ["y"] * 2, [5, 6, 7, 20, 30]
    scale, positions = measure_documents(documents, lengths, "position")
    assert positions == [1, 2, 3, 1, 2]
    assert (scale.short, scale.long, scale.edges) == (1, 2, [1, 2])
    assert measure_documents(documents, lengths, "document")[1] == [18, 18, 18, 50, 50]
