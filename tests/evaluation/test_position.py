"""Cuts the outputs for joined sentences, and measures the loss of BLEU at each position."""

import itertools
import math
import random

import pytest

from nmt.evaluation.position import cut, cut_outputs, join_sentences, position_losses


def distance(a, b):
    """Computes the edit distance with the textbook recurrence."""
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        last = row
        row = [i]
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
    """The system translates the first sentence of each input completely, and half of each other sentence."""
    words = [[f"{n}.{k}" for k in range(8)] for n in range(10)]
    sentences = [{"id": n, "source": own, "reference": own} for n, own in enumerate(words)]
    inputs = join_sentences(sentences, 4)
    assert [each["source"] for each in inputs] == [
        list(itertools.chain(*words[first : first + 4])) for first in (0, 4, 8)
    ]
    assert [each["length"] for each in inputs] == [32, 32, 16]
    written = [each["source"][:8] for each in inputs]
    for n, own in enumerate(words):
        written[n // 4] += own[:4] if n % 4 else []
    alone = cut_outputs(sentences, words, 1, " ".join)
    four = cut_outputs(sentences, written, 4, " ".join)
    assert [row["id"] for row in four] == [row["id"] for row in alone] == list(range(10))
    assert four[1]["hypothesis"] == words[1][:4]
    assert four[1]["detokenised"] == "1.0 1.1 1.2 1.3"
    rows = list(position_losses("news-position4", alone, four, 100))
    assert [row["from"] for row in rows] == [None, 1, 2, 3, 4]
    assert [row["sentences"] for row in rows] == [10, 3, 3, 2, 2]
    half = 100 * (1 - math.exp(-1))
    assert [row["value"] for row in rows[1:]] == [0, *[pytest.approx(half)] * 3]
