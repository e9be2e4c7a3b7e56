"""Compares intervals over seeds and sentences, and equivalence tests, with textbook formulas."""

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.decisions import equivalence_p, p_value
from nmt.evaluation.estimate import combined


def test_seeds_give_a_t_interval():
    """If only the seeds vary, the interval is the t interval for the mean of four values."""
    values = np.array([3.0, 5.0, 4.0, 8.0])
    found = combined([np.repeat(values[:, None], 51, axis=1)], 100)
    expected = stats.t.interval(0.95, 3, 5, values.std(ddof=1) / 2)
    assert found.interval() == pytest.approx(expected)
    assert (found.drawn, found.seeds, found.df) == ("sentences and seeds", 4, 3)
    assert p_value(found, expected[0]) == pytest.approx(0.05)
    two = combined([np.repeat(values[:2, None], 51, axis=1)], 100)
    assert two.drawn == "sentences"


def test_variance_of_sentences_and_seeds():
    """Three seeds score 1, 2, 3; a resample adds ±3 to all scores, ±1 to the first, and ∓1 to the last."""
    shared, own = np.array([3, 3, -3, -3]), np.array([1, -1, 1, -1])
    seeds = np.array([1.0, 2.0, 3.0])
    resampled = seeds[:, None] + shared + np.array([1, 0, -1])[:, None] * own
    found = combined([np.concatenate([seeds[:, None], resampled], axis=1)], 100)
    between = 1 / 3  # variance of the scores (1) / number of seeds
    interaction = (4 / 3 + 0 + 4 / 3) / 2 / 3  # variance of (score - mean), / number of seeds
    of_mean = 36 / 3  # bootstrap variance of the mean score
    assert found.error**2 == pytest.approx(between + of_mean - interaction)
    least = max(between, interaction)
    assert found.df == pytest.approx((of_mean - interaction + least) ** 2 / (least**2 / 2))


def test_mean_that_no_sentence_moves_varies_with_the_seeds():
    """A resample adds ±1 to the first of three scores, and ∓1 to the last, so their mean stays the same."""
    own = np.array([1, -1, 1, -1])
    resampled = np.array([[1.0], [2.0], [3.0]]) + np.array([[1], [0], [-1]]) * own
    found = combined([np.concatenate([[[1], [2], [3]], resampled], axis=1)], 100)
    assert found.error**2 == pytest.approx(1 / 3)
    assert found.df == pytest.approx(2)


def test_smaller_group_decides_whether_seeds_count():
    """A group of three seeds is compared with a group of two, so the interval accounts for the sentences only."""
    shared = np.array([0.0, -2, -1, 0, 1, 2])
    several, two = (np.array(means)[:, None] + shared for means in ([5.0, 6, 7], [1.0, 3]))
    found = combined([several, two], 100)
    assert (found.seeds, found.drawn, found.score) == (2, "sentences", 4)
    assert found.interval() == (4, 4)


def test_variances_and_degrees_of_freedom_of_few_documents():
    """Resamples of D documents vary too little by the factor (D - 1) / D; they have D - 1 degrees of freedom."""
    run = combined([np.array([[2.0, 1.0, 3.0]])], 100, documents=5)
    assert run.error**2 == pytest.approx(2 * 5 / 4)
    assert run.df == 4
    resampled = [[5, 3, -1, -3], [5, 5, -1, -1], [5, 7, -1, 1]]  # as in the test above
    samples = np.concatenate([[[1], [2], [3]], resampled], axis=1)
    seeds = combined([samples.astype(float)], 100, documents=5)
    interaction = 4 / 9 * 5 / 4
    shared = 12 * 5 / 4 - interaction
    assert seeds.error**2 == pytest.approx(shared + 1 / 3)
    squares = shared**2 / 4 + interaction**2 / 2
    assert seeds.df == pytest.approx((shared + interaction) ** 2 / squares)


def test_only_shared_errors_add_the_bootstrap_variance():
    """If the errors of n runs are independent, their mean has the variance S²/n (S²: variance between runs).

    S²/n already contains the variance over sentences, so the bootstrap variance must not be added to it.
    If all runs share the errors, S² does not contain their variance, so the bootstrap variance must be added.
    """
    draw = np.random.default_rng(8)
    own = draw.normal(0, 1, (5, 1))
    found = combined([np.concatenate([own, own + draw.normal(0, 1, (5, 4000))], axis=1)], 100)
    assert found.error == pytest.approx(own.std(ddof=1) / math.sqrt(5), rel=0.05)
    shared = combined([np.concatenate([own, own + draw.normal(0, 3, 4000)], axis=1)], 100)
    assert shared.error == pytest.approx(math.sqrt(own.var(ddof=1) / 5 + 9), rel=0.05)
    assert shared.df > 100


def test_equivalence_is_two_one_sided_tests():
    draw = np.random.default_rng(9)
    found = combined([np.concatenate([[0.2], draw.normal(0.2, 0.1, 5000)])[None]], 10_000)
    low, high = found.interval(0.9)
    assert equivalence_p(found, high + 0.01) <= 0.05 < equivalence_p(found, high - 0.01)
    assert low < 0.2
    assert p_value(found, 0.2) > 0.9 > p_value(found)


@pytest.mark.parametrize(("df", "equivalent"), [(9_999, True), (20, False)])
def test_equivalence_of_single_runs_uses_the_larger_p(df, equivalent):
    """p is the larger of two values: the share of resamples beyond the margin, and the p of a t test."""
    draw = np.random.default_rng(10)
    values = np.concatenate([[0.2], draw.normal(0.2, 0.1, 5000)])[None]
    error = values[0, 1:].std(ddof=1)
    margin = 0.2 + 1.66 * error
    found = combined([values], df + 1)
    share = ((found.resampled >= margin).sum() + 1) / 5001
    p = max(share, stats.t.cdf((0.2 - margin) / error, df))
    assert equivalence_p(found, margin) == pytest.approx(p)
    assert (equivalence_p(found, margin) <= 0.05) is equivalent
