"""What probes read where it is known what the vectors hold."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmt.evaluation.positions import means
from nmt.inference.probing.classifier import fit_probe
from nmt.inference.probing.protocol import ProbeSettings, ReadingTask
from nmt.inference.probing.vectors import ANNOTATIONS, FIXED, Vectors

WORDS, LENGTH, SIZE = 20, 4, 16
SETTINGS = ProbeSettings(3000, positions=LENGTH, classes=WORDS, epochs=20, seed=1)


def sentences(count, seed):
    """Sentences of 2 to 4 words of unequal frequency, ids from 2."""
    generator = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, WORDS + 1)
    drawn = generator.choice(WORDS, size=(count, LENGTH), p=frequency / frequency.sum()) + 2
    return [row[: generator.integers(2, LENGTH + 1)].tolist() for row in drawn]


def concatenated(sources):
    """The vectors of a sentence's words in a row, zeros where it has none."""
    table = torch.randn(WORDS + 2, SIZE, generator=torch.Generator().manual_seed(3))
    rows = torch.zeros(len(sources), LENGTH, SIZE)
    for row, source in zip(rows, sources, strict=True):
        row[: len(source)] = table[source]
    return rows.flatten(1)


def overall(read, lengths):
    return means(read, lengths, [3], resamples=1000, confidence=0.95)


@pytest.fixture(scope="module")
def concatenation():
    """The shares of words read from concatenated word vectors: of a test set, and its words."""
    learnt, tested = sentences(3000, 1), sentences(400, 2)
    task = ReadingTask(learnt, False, SETTINGS)
    vectors = {"t": Vectors(FIXED, concatenated(tested))}
    read = task.of_sentences(Vectors(FIXED, concatenated(learnt)), vectors, {"t": tested})["t"]
    return overall(read, [len(sentence) for sentence in tested]), tested


def test_words_are_read_from_concatenated_word_vectors(concatenation):
    found, tested = concatenation
    assert found["words"] == sum(map(len, tested))
    assert found["probe"]["score"] > 0.99
    assert [row["position"] for row in found["by_position"]] == [1, 2, 3, 4]
    assert all(row["probe"]["score"] > 0.98 for row in found["by_position"])


def test_a_probe_of_shuffled_words_is_no_better_than_chance(concatenation):
    found, tested = concatenation
    frequent = np.mean([word == 2 for sentence in tested for word in sentence])
    assert found["chance"]["score"] == pytest.approx(frequent)
    for row in (found, *found["by_length"], *found["by_position"]):
        assert row["shuffled"]["low"] <= row["chance"]["score"] <= row["shuffled"]["high"], row


def test_annotations_are_read_one_by_one():
    learnt, tested = sentences(600, 1), sentences(200, 2)
    table = torch.randn(WORDS + 2, SIZE, generator=torch.Generator().manual_seed(3))
    task = ReadingTask(learnt, False, SETTINGS)
    places = [torch.arange(1, len(sentence)) for sentence in learnt]  # never the first
    rows = torch.cat([table[sentence[1:]] for sentence in learnt])
    vectors = {"t": Vectors(ANNOTATIONS, torch.cat([table[sentence] for sentence in tested]))}
    read = task.of_words(Vectors(ANNOTATIONS, rows), vectors, {"t": tested}, places)["t"]
    found = overall(read, [len(sentence) for sentence in tested])
    assert found["words"] == sum(map(len, tested))
    assert found["by_position"][0]["probe"]["score"] > 0.98
    assert found["probe"]["score"] > 0.98
    assert found["shuffled"]["low"] <= found["chance"]["score"] <= found["shuffled"]["high"]


def test_positions_are_counted_from_the_end_and_rare_words_never_read():
    learnt = [[2, 3, 4]] * 160 + [[2, 4]] * 150 + [[4]] * 9 + [[5]] * 3
    task = ReadingTask(learnt, True, ProbeSettings(313, positions=9, classes=2, epochs=1, seed=1))
    assert task.positions == 3  # of 9, those that enough sentences have
    assert task.words([[2, 9, 4]])[0].tolist() == [0, 2, 1] + [-1] * 6  # the last word first
    assert task.words([[5]])[0, 0] == 2  # a word without a class
    assert np.exp(task.prior[0]) == pytest.approx([320 / 321, 1 / 321])  # one more than was seen


def test_where_nothing_is_known_the_prior_is_read():
    """No training sentence may have one of the classes at a position."""
    prior = torch.tensor([0.2, 0.7, 0.1]).log()
    probe = fit_probe(torch.zeros(0, 5), torch.zeros(0, dtype=torch.int64), prior, epochs=2, seed=1)
    assert probe.read(torch.randn(4, 5), prior).tolist() == [1] * 4
