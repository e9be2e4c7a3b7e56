import time

import numpy as np
import pytest

from nmt.evaluation.bleu import bleu, bleu_scores, sentence_statistics
from nmt.evaluation.resampling import SEED, Interval, interval, resampled_sums


def statistics(pairs):
    return np.stack([sentence_statistics(*pair) for pair in pairs])


def test_sums_are_those_of_the_sentences_drawn():
    rows = np.arange(21).reshape(7, 3) ** 2
    drawn = np.random.default_rng(SEED).integers(7, size=(50, 7))
    expected = rows[drawn].sum(axis=1)
    np.testing.assert_array_equal(resampled_sums(rows, 50), expected)


def test_drawing_in_chunks_changes_nothing(monkeypatch):
    rows = np.arange(26).reshape(13, 2)
    whole = resampled_sums(rows, 100)
    monkeypatch.setattr("nmt.evaluation.resampling.CHUNK", 64 * 13)
    np.testing.assert_array_equal(resampled_sums(rows, 100), whole)


def test_interval_of_bleu_is_the_quantiles_of_resampled_corpora(corpus):
    rows = statistics(corpus(40, seed=1))
    drawn = np.random.default_rng(SEED).integers(40, size=(200, 40))
    scores = [bleu(rows[picks].sum(axis=0)) for picks in drawn]
    expected = np.quantile(scores, [0.05, 0.95])
    found = interval(rows, bleu_scores, resamples=200, confidence=0.9)
    assert found == pytest.approx(tuple(expected), abs=1e-9)
    assert found.low < bleu(rows.sum(axis=0)) < found.high


def test_interval_of_a_mean_has_the_width_of_the_normal_law():
    rows = np.random.default_rng(0).normal(5.0, 2.0, size=(400, 1))
    low, high = interval(rows, lambda sums: sums[:, 0] / 400, resamples=4000)
    error = rows.std() / 20
    assert low == pytest.approx(rows.mean() - 1.96 * error, abs=0.02)
    assert high == pytest.approx(rows.mean() + 1.96 * error, abs=0.02)


def test_no_resamples_no_interval_and_undefined_resamples_are_left_out():
    rows = np.array([[1.0, 0.0], [1.0, 2.0]])
    assert interval(rows, bleu_scores, resamples=0) == Interval(None, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = interval(
            rows, lambda sums: np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)
        )
    assert (low, high) == (0.5, 1.0)


def test_a_thousand_resamples_of_three_thousand_sentences_take_about_a_second(corpus):
    rows = np.tile(statistics(corpus(300)), (10, 1))
    start = time.process_time()
    interval(rows, bleu_scores, resamples=1000)
    assert time.process_time() - start < 2.0
