import time

import numpy as np
import pytest
from scipy import stats

from nmt.evaluation.resampling import SEED, interval_of, number_documents, resampled_sums
from nmt.evaluation.scores.bleu import bleu, sentence_statistics
from tests.helpers.bleu import bleu_by_hand, corpus


def statistics(pairs):
    return np.stack([sentence_statistics(*pair) for pair in pairs])


def test_sums_equal_those_of_drawn_sentences(monkeypatch):
    rows = np.arange(21).reshape(7, 3) ** 2
    drawn = np.random.default_rng(SEED).integers(7, size=(50, 7))
    expected = np.concatenate([rows.sum(axis=0)[None], rows[drawn].sum(axis=1)])
    np.testing.assert_array_equal(resampled_sums(rows, 50), expected)
    monkeypatch.setattr("nmt.evaluation.resampling.CHUNK", 7 * 13)  # forces several chunks
    np.testing.assert_array_equal(resampled_sums(rows, 50), expected)


def test_bleu_interval_has_the_quantiles_of_resampled_corpora():
    rows = statistics(corpus(40, seed=1))
    drawn = np.random.default_rng(SEED).integers(40, size=(200, 40))
    scores = [bleu_by_hand(rows[picks].sum(axis=0)) for picks in drawn]
    found = interval_of(bleu(resampled_sums(rows, 200))[1:], confidence=0.9)
    assert found == pytest.approx(tuple(np.quantile(scores, [0.05, 0.95])), abs=1e-9)


def test_interval_has_the_quantiles_of_numpy():
    generator = np.random.default_rng(0)
    for size in (1, 2, 3, 10, 999):
        values = generator.normal(size=size)
        for confidence in (0.5, 0.9, 0.95):
            tail = (1 - confidence) / 2
            expected = np.quantile(values, [tail, 1 - tail]).tolist()
            assert [*interval_of(values, confidence)] == expected


def test_mean_interval_has_the_normal_width():
    rows = np.random.default_rng(0).normal(5.0, 2.0, size=(400, 1))
    low, high = interval_of(resampled_sums(rows, 4000)[1:, 0] / 400)
    error = rows.std() / 20
    assert low == pytest.approx(rows.mean() - 1.96 * error, abs=0.02)
    assert high == pytest.approx(rows.mean() + 1.96 * error, abs=0.02)


def test_undefined_resamples_are_ignored():
    assert interval_of(np.array([np.nan, 1.0, np.inf, 1.0])) == (1.0, 1.0)
    assert interval_of(np.array([np.nan])) == (None, None)


def test_resampling_takes_about_a_second():
    rows = np.tile(statistics(corpus(300)), (10, 1))
    start = time.process_time()
    bleu(resampled_sums(rows, 1000))
    assert time.process_time() - start < 2.0


def test_documents_are_resampled_whole():
    rows = np.arange(14).reshape(7, 2) ** 2
    documents = np.array([4, 4, 0, 0, 0, 9, 4])
    sums = np.stack([rows[documents == name].sum(axis=0) for name in (0, 4, 9)])
    drawn = np.random.default_rng(SEED).integers(3, size=(50, 3))
    expected = np.concatenate([rows.sum(axis=0)[None], sums[drawn].sum(axis=1)])
    np.testing.assert_array_equal(resampled_sums(rows, 50, documents), expected)


@pytest.mark.parametrize("documents", [5, 40])
def test_interval_over_few_documents_is_a_t_interval(documents):
    values = np.random.default_rng(3).normal(5.0, 2.0, size=(documents, 1))
    means = resampled_sums(values, 20_000)[1:, 0] / documents
    low, high = interval_of(means, documents=documents)
    width = stats.t.ppf(0.975, documents - 1) * values.std(ddof=1) / documents**0.5
    assert high - low == pytest.approx(2 * width, rel=0.12 if documents < 10 else 0.03)
    assert interval_of(means, documents=1) == (None, None)


def test_documents_are_used_if_all_are_named():
    assert number_documents(["b", "a", "b"]).tolist() == [0, 1, 0]
    assert number_documents(["b", None]) is None
    assert number_documents([]) is None
