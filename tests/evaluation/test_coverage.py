"""Words left out and words repeated, planted in sentences of the built-in corpus."""

from __future__ import annotations

import numpy as np
import pytest

from nmt.evaluation.coverage import attention_mass, repeated_ngrams
from nmt.evaluation.scores import REGISTERED
from nmt.grammar import draw

UNREAD = 0.2
PAIRS = [draw(1, "test", k) for k in range(200)]


def links(pair):
    return [*pair.sure, *pair.possible]


def simulated_attention(pair, generator, left_out=()):
    """Weights (I + 1, J + 1) of a model that looks at the linked words, a tenth of it elsewhere."""
    words, source = len(pair.target), len(pair.source)
    weights = generator.dirichlet(np.full(source + 1, 0.5), words + 1) / 10
    for i in range(words):
        linked = [j for j, target in links(pair) if target == i] or [source]
        weights[i, linked] += 0.9 / len(linked)
    weights[words, source] += 0.9
    return np.delete(weights, list(left_out), axis=0)


def masses(weights):
    """Of words that the model expected."""
    return attention_mass(weights, np.ones(len(weights)))


def test_planted_deletions_are_found():
    """Of one source word a sentence all translations are left out of the target side."""
    generator = np.random.default_rng(1)
    hits = planted = flagged = before = total = 0
    for pair in PAIRS:
        alone = [
            (j, i)
            for j, i in links(pair)
            if sum(j == other for other, _ in links(pair)) == 1
            and sum(i == other for _, other in links(pair)) == 1
        ]
        word, translation = alone[generator.integers(len(alone))]
        linked = {j for j, _ in links(pair)}
        whole = masses(simulated_attention(pair, generator)) < UNREAD
        cut = masses(simulated_attention(pair, generator, [translation])) < UNREAD
        before += sum(whole[j] for j in linked)
        total += len(linked)
        planted, hits = planted + 1, hits + int(cut[word])
        flagged += sum(cut[j] for j in linked)
    assert before / total < 0.02  # a word that is translated is rarely taken for unread
    assert hits / planted > 0.9
    assert hits / flagged > 0.9


def test_planted_repetitions_are_found():
    """A span of three to six words is written twice."""
    generator = np.random.default_rng(1)
    for pair in PAIRS:
        words = list(pair.target)
        if len(words) < 7:
            continue
        assert repeated_ngrams(words, words)[0] == 0
        length = int(generator.integers(3, 7))
        start = int(generator.integers(len(words) - length + 1))
        again = [*words[: start + length], *words[start:]]
        repeated, ngrams = repeated_ngrams(again, words)
        assert repeated >= length - 2
        assert ngrams == len(again) - 2


def test_sums_over_sentences_and_short_ones():
    score = REGISTERED["repeated_ngrams"]
    rows = score.table(
        [
            {"hypothesis": ["a", "b", "c", "a", "b", "c"], "reference": ["a"]},
            {"hypothesis": ["a", "b"], "reference": ["a"]},
        ]
    )
    assert rows.tolist() == [[1, 4], [0, 0]]
    assert score.combine(rows.sum(0)) == pytest.approx(1 / 4)
    kept = {"statistics": {"unread_words": [1, 4]}}
    assert REGISTERED["unread_words"].table([kept, {}]).tolist()[0] == [1, 4]
    assert np.isnan(REGISTERED["unread_words"].table([kept, {}])[1]).all()
