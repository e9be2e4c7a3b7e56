"""Compares length curves with known functions, with loops, and with variances computed by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from nmt.evaluation.compared_curve import difference
from nmt.evaluation.length_curve import (
    FEWEST,
    LONG,
    LOST,
    WIDTH,
    Curve,
    Kernel,
    excess_retention,
    kernel,
    length_curves,
)
from nmt.evaluation.measured import Measured
from nmt.evaluation.resampling import SEED
from nmt.evaluation.scores import choose_scores
from nmt.evaluation.scores.bleu import sentence_statistics


def words_and_hits(lengths, share):
    return np.stack([lengths, lengths * share], axis=1).astype(float)


def share_of(sums):
    return sums[..., 1] / sums[..., 0]


def natural(count, seed=1):
    """Draws sentence lengths as in running text: very short and very long sentences are rare."""
    draws = np.random.default_rng(seed).lognormal(np.log(20), 0.6, count)
    return np.clip(draws.round(), 1, 120).astype(int)


def curve_of(lengths, *tables, resamples=0):
    of = kernel(lengths)
    samples = np.stack([share_of(of.sums(table, resamples)) for table in tables])

    def influence():
        return np.mean([of.influence(table, share_of) for table in tables], axis=0)

    return Curve(of, [samples], influence=influence)


def test_curve_recovers_a_line_over_log_length():
    lengths = natural(3000)
    line = 0.9 - 0.1 * np.log(lengths)
    curve = curve_of(lengths, words_and_hits(lengths, line))
    np.testing.assert_allclose(curve.score, 0.9 - 0.1 * np.log(curve.lengths), atol=1e-4)
    assert {10, 50} <= set(curve.lengths.round(9).tolist())


@pytest.mark.parametrize(("short", "long"), [(10**6, 10**6 + 5), (1, 10**9), (10**9 - 1, 10**9)])
def test_number_of_points_is_bounded_for_all_lengths(short, long):
    lengths = [1, 10**9, *[10**6] * 100]
    points = kernel(lengths, short=short, long=long, fewest=0).lengths
    assert len(points) < 300
    assert np.isclose(points[:, None], [short, long], rtol=1e-9).any(axis=0).all()


def test_weights_are_gaussian():
    lengths = np.repeat(np.arange(1, 121), 30)
    of = kernel(lengths)
    place = np.flatnonzero(np.isclose(of.lengths, 50))[0]
    weights = of.weights[place]
    logs = np.log(lengths)
    assert np.average(logs, weights=weights * lengths) == pytest.approx(np.log(50), abs=1e-3)
    assert np.cov(logs, aweights=weights * lengths) == pytest.approx(WIDTH**2, rel=0.01)
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert weights.sum() == pytest.approx(effective) == pytest.approx(of.sentences[place])
    assert of.sentences.min() >= FEWEST


def test_no_curve_without_sentences():
    """Sentences of about 10 and 40 words give no value at 20 words; with 20 sentences there is no curve."""
    of = kernel([10] * 200 + [11] * 200 + [40] * 200 + [44] * 200)
    assert not np.any((of.lengths > 17) & (of.lengths < 28))
    assert 10 in of.lengths.round(6)
    assert not len(kernel([10] * 10 + [12] * 10).lengths)


def test_sums_equal_those_of_the_drawn_sentences():
    lengths = natural(200)
    table = np.random.default_rng(2).integers(1, 9, (200, 3)).astype(float)
    of = kernel(lengths)
    drawn = np.random.default_rng(SEED).integers(200, size=(20, 200))
    expected = [
        [table[picks].T @ weights[picks] for weights in of.weights]
        for picks in [range(200), *drawn]
    ]
    np.testing.assert_allclose(of.sums(table, 20), expected)


def test_retention_and_lost_lengths_of_a_power_law():
    lengths = np.repeat(np.arange(4, 100), 40)
    curve = curve_of(lengths, words_and_hits(lengths, (lengths / 4.0) ** -0.5), resamples=200)
    kept = curve.relative.at(LONG)
    assert kept.score == pytest.approx(5**-0.5, rel=0.01)
    for share in LOST:
        length, low, high = curve.lost(share)
        assert length == pytest.approx(10 / (1 - share) ** 2, rel=0.02)
        assert low <= length <= high
    assert curve.lost(0.9) == (None, None, None)
    flat = curve_of(lengths, words_and_hits(lengths, 0.4), resamples=200)
    assert flat.lost(0.1) == (None, None, None)
    assert flat.relative.at(LONG).score == pytest.approx(1)


def test_lost_length_is_beyond_the_short_length():
    of = Kernel(np.array([5.0, 10, 20, 40]), np.ones((4, 1)), np.full(4, 40.0))
    length, *_ = Curve(of, [np.array([[[0.2, 0.8, 0.8, 0.3]]])]).lost(0.5)
    assert length == pytest.approx(20 * 2**0.8)  # four fifths of the way from 0.8 to 0.3


def test_variance_of_a_ratio_equals_the_delta_method():
    """The scores vary over three seeds, but not over sentences, so the delta method gives the error of the ratio."""
    lengths = np.repeat(np.arange(4, 100), 20)
    ends = {"short": np.array([0.8, 0.7, 0.75]), "long": np.array([0.4, 0.3, 0.2])}
    share = [np.where(lengths < 25, a, b) for a, b in zip(*ends.values(), strict=True)]
    curve = curve_of(lengths, *(words_and_hits(lengths, each) for each in share), resamples=300)
    found = curve.relative.at(LONG)
    expected = 0.3 / 0.75
    residuals = (ends["long"] - expected * ends["short"]) / 0.75
    assert found.score == pytest.approx(expected, abs=1e-6)
    assert found.error == pytest.approx(residuals.std(ddof=1) / 3**0.5, rel=1e-3)
    low, high = found.interval()
    assert high - found.score == pytest.approx(stats.t.ppf(0.975, 2) * found.error, rel=1e-3)
    assert low == pytest.approx(2 * found.score - high)


def test_kernel_averages_both_sides_of_the_training_limit():
    """60 % of the words are correct in sentences of up to 50 words, else 30 %; the kernel averages these shares."""
    lengths = np.repeat(np.arange(1, 151), 40)
    curve = curve_of(lengths, words_and_hits(lengths, np.where(lengths <= 50, 0.6, 0.3)))
    below = stats.norm.cdf(np.log(50.5 / curve.lengths) / WIDTH)
    inside = (curve.lengths > 10) & (curve.lengths < 100)
    np.testing.assert_allclose(curve.score[inside], (0.3 + 0.3 * below)[inside], atol=0.003)
    assert (curve.kernel.weights.sum(axis=0) > 0).all()


def apart(curve, value):
    """Returns the lengths at which the band of a curve excludes a value."""
    low, high = curve.band
    return curve.lengths[(low > value) | (high < value)]


def test_lengths_at_which_two_systems_differ():
    lengths = np.repeat(np.arange(4, 100), 20)
    draw = np.random.default_rng(4)
    noise = draw.normal(0, 0.05, (3, len(lengths)))
    falls = np.where(lengths > 30, 0.3, 0.6)
    flat = curve_of(lengths, words_and_hits(lengths, 0.6 + noise[0]), resamples=500)
    falling = curve_of(lengths, words_and_hits(lengths, falls + noise[1]), resamples=500)
    differing = apart(difference(flat, falling), 0)
    assert 20 < differing[0] < 32
    np.testing.assert_array_equal(differing, flat.lengths[-len(differing) :])
    again = curve_of(lengths, words_and_hits(lengths, 0.6 + noise[2]), resamples=500)
    assert not len(apart(difference(flat, again), 0))


def band_of_nll(lengths, nll, resamples, documents=None):
    """Returns the band of the difference in NLL per word of two systems with these NLLs (2, N)."""
    groups = {}
    numbers = [None] * len(lengths) if documents is None else documents.tolist()
    for name, values in zip("ab", nll.tolist(), strict=True):
        heads = enumerate(zip(lengths.tolist(), numbers, values, strict=True))
        records = [
            {"id": n, "length": x, "document": d, "reference": ["w"] * (x - 1), "nll": value}
            for n, (x, d, value) in heads
        ]
        groups[name] = [Measured(records, choose_scores(["nll_per_word"]), resamples)]
    curves = length_curves(groups, ["nll_per_word"])["nll_per_word"]
    return difference(curves["a"], curves["b"]).band


def test_band_of_a_difference_equals_a_loop_over_sentences():
    """Each loop draws sentences, and divides the deviation at each length by the standard error of this draw."""
    draw = np.random.default_rng(6)
    lengths = draw.integers(8, 40, 150)
    nll = draw.gamma(1, 3, (2, 150)) * lengths
    band = band_of_nll(lengths, nll, 40)

    weights = kernel(lengths).weights
    above, words = weights * (nll[0] - nll[1]), weights * lengths
    score = above.sum(axis=1) / words.sum(axis=1)
    influence = (above - score[:, None] * words) / words.sum(axis=1)[:, None]
    found, largest = [], []
    for picks in np.random.default_rng(SEED).integers(150, size=(40, 150)):
        found.append(above[:, picks].sum(axis=1) / words[:, picks].sum(axis=1))
        error = np.sqrt(150 * influence[:, picks].var(axis=1))
        largest.append(np.max(np.abs(found[-1] - score) / error))
    width = np.quantile(largest, 0.95) * np.std(found, axis=0, ddof=1)
    np.testing.assert_allclose(band, [score - width, score + width], rtol=1e-5)


def test_band_of_a_difference_equals_a_loop_over_documents():
    """Each loop gives the documents random signs, and divides the sum at each length by its own standard error.

    The signed terms are as good as a difference of two systems, so each document differs from its share of it.
    """
    draw = np.random.default_rng(5)
    documents = np.repeat(np.arange(12), [2, 5, 40, *[15] * 9])
    lengths = draw.integers(8, 40, len(documents))
    nll = draw.normal(3, 1, (2, 12))[:, documents] * lengths + draw.normal(0, 3, (2, len(lengths)))
    band = band_of_nll(lengths, nll, 40, documents)

    weights = kernel(lengths).weights
    above, words = weights * (nll[0] - nll[1]), weights * lengths
    score = above.sum(axis=1) / words.sum(axis=1)
    influence = (above - score[:, None] * words) / words.sum(axis=1)[:, None]
    above, words, influence, shares = (
        np.stack([each[:, documents == number].sum(axis=1) for number in range(12)])
        for each in (above, words, influence, weights / weights.sum(axis=1, keepdims=True))
    )
    picks = np.random.default_rng(SEED).integers(12, size=(40, 12))
    found = [above[each].sum(axis=0) / words[each].sum(axis=0) for each in picks]
    largest = []
    for bits in np.random.default_rng(SEED).integers(2, size=(40, 12), dtype=np.int8):
        terms = influence * np.where(bits, 1, -1)[:, None]
        error = np.sqrt(12 / 11 * ((terms - shares * terms.sum(axis=0)) ** 2).sum(axis=0))
        largest.append(np.max(np.abs(terms.sum(axis=0)) / error))
    width = np.quantile(largest, 0.95) * np.std(found, axis=0, ddof=1) * (12 / 11) ** 0.5
    np.testing.assert_allclose(band, [score - width, score + width], rtol=1e-5)


def constructed(*seeds, apart=0.0, influence):
    """Returns a curve of one length; the resamples of a seed differ from its score by ±1 and ±`apart`."""
    of = Kernel(np.array([10.0]), np.ones((1, len(influence))), np.array([40.0]))
    shared, own = np.array([1, 1, -1, -1] * 25), apart * np.array([1, -1] * 50)
    signs = (1, 0, -1)[: len(seeds)] if len(seeds) > 1 else (0,)
    samples = [np.r_[seed, seed + shared + s * own] for seed, s in zip(seeds, signs, strict=True)]
    return Curve(of, [np.stack(samples)[:, :, None]], influence=lambda: np.c_[influence])


def half_width(curve, *scores):
    """Returns half the width of the band of the difference to a system that has these scores on all sentences."""
    samples = np.repeat(np.reshape(scores or (0.0, 0.0, 0.0), (3, 1, 1)), 101, axis=1)
    fixed = replace(curve, samples=[samples], influence=lambda: 0 * curve.influence())
    low, high = difference(curve, fixed).band
    return (high[0] - low[0]) / 2


def test_a_curve_gives_the_estimate_of_each_length():
    curve = constructed(3.0, influence=np.zeros(4))
    of = Kernel(np.array([10.0, 11]), np.ones((2, 4)), np.array([40.0, 40]))
    both = np.concatenate([curve.samples[0], 2 * curve.samples[0]], axis=2)
    curve = replace(curve, kernel=of, samples=[both])
    for _ in range(2):
        assert [curve.at(length).score for length in (10, 11)] == pytest.approx([3, 6])


def test_band_over_seeds_adds_two_variances():
    influence = 0.05 * np.array([1.0, 2, 3, -1, -2, -3, 4, -4])
    alone = half_width(constructed(0, influence=influence))
    assert alone > 1.96
    # The values of the seeds differ no more than what they make of single sentences.
    for seeds, apart in (((0, 0, 0), 0.3), ((7, 10, 13), 3)):
        equal = half_width(constructed(*seeds, apart=apart, influence=influence))
        assert equal == pytest.approx(alone)
    # The seeds have the variance 1. What they make of sentences has the variance (own² + 0 + own²) / 2.
    curve = constructed(-1, 0, 1, apart=0.3, influence=influence)
    own = 0.09 * 100 / 99
    of_seeds = half_width(curve) ** 2 - alone**2
    assert of_seeds == pytest.approx(stats.t.ppf(0.975, 2) ** 2 * (1 - own) / 3)
    # The seeds of the other group have the variance 1/4. Welch's degrees of freedom are 50/17.
    of_seeds = half_width(curve, -0.5, 0, 0.5) ** 2 - alone**2
    assert of_seeds == pytest.approx(stats.t.ppf(0.975, 50 / 17) ** 2 * (5 / 4 - own) / 3)


def test_band_over_seeds_is_at_least_as_wide_as_the_interval():
    """The scores vary over the seeds of one group only, so the interval has two degrees of freedom."""
    curve = constructed(-1, 0, 1, influence=np.zeros(8))
    fixed = replace(curve, samples=[curve.samples[0] - curve.samples[0].mean(axis=0)])
    assert half_width(fixed) == pytest.approx(stats.t.ppf(0.975, 2) / 3**0.5)


def test_band_over_seeds_fits_the_variance_to_all_lengths():
    """Three seeds differ by 1 where the score is 10, and by chance only by 0.1 where it is 20.

    The variances of their mean are 1/3 and 0.01/3. The resamples have 4 times the variance at the second length, so
    the best fit k of k * 10^2 and k * 20^2 to 1/3 and 0.01/3 solves k * (10^4 + (20^2 / 4)^2) = 100/3 + 4/3 / 16.
    The variance is then 400 k at the second length, and still 1/3 at the first.
    """
    influence = 0.05 * np.array([1.0, 2, 3, -1, -2, -3, 4, -4])
    parts = [constructed(*seeds, influence=influence) for seeds in ((9, 10, 11), (19.9, 20, 20.1))]
    of = Kernel(np.array([10.0, 11]), np.ones((2, len(influence))), np.array([40.0, 40]))
    [first], [second] = parts[0].samples, parts[1].samples
    second[:, 1:] += second[:, 1:] - second[:, :1]
    both = replace(
        parts[0],
        kernel=of,
        samples=[np.concatenate([first, second], axis=2)],
        influence=lambda: np.c_[influence, influence],
    )
    widths = []
    for curve in (both, replace(both, samples=[both.samples[0].mean(axis=0, keepdims=True)])):
        fixed = replace(
            curve, samples=[0 * curve.samples[0]], influence=lambda: 0 * both.influence()
        )
        low, high = difference(curve, fixed).band
        widths.append((high - low) / 2)
    of_seeds = widths[0] ** 2 - widths[1] ** 2
    fitted = 400 * (100 / 3 + 4 / 3 / 16) / (10**4 + 100**2)
    assert of_seeds == pytest.approx(stats.t.ppf(0.975, 2) ** 2 * np.array([1 / 3, fitted]))


def test_band_of_three_documents_that_differ_in_size():
    """The terms 1, 1 and 2 of the same sign sum to 4, of which the documents' shares are 0.8, 1.2 and 2."""
    curve = constructed(0, influence=np.array([1.0, 1, -2]))
    curve = replace(curve, documents=3, shares=np.array([[0.2], [0.3], [0.5]]))
    variance = (1 - 0.8) ** 2 + (1 - 1.2) ** 2 + (2 - 2) ** 2
    of_resamples = 100 / 99  # 50 resamples are higher by 1, and 50 are lower
    fixed = replace(curve, samples=[np.zeros((1, 101, 1))], influence=lambda: np.zeros((3, 1)))
    low, high = difference(curve, fixed).band
    assert (high - low) / 2 == pytest.approx((4**2 / variance * of_resamples) ** 0.5)


def test_shares_of_documents_are_those_of_the_weights():
    of = Kernel(np.array([10.0, 20]), np.array([[1.0, 1, 2], [3, 5, 0]]), np.array([40.0, 40]))
    np.testing.assert_allclose(of.shares(np.array([1, 0, 1])), [[1 / 4, 5 / 8], [3 / 4, 3 / 8]])
    assert of.shares(None) is None


@pytest.mark.parametrize("documents", [1, 2])
def test_one_or_two_documents_have_no_band(documents):
    curve = constructed(0, influence=np.array([1.0, -1.0])[:documents])
    shares = np.array([[0.6], [0.4]])[:documents]
    assert np.isnan(half_width(replace(curve, documents=documents, shares=shares)))


def of_seeds(*shares):
    """Returns the curve of three seeds that hit `share(length)` of the words; the scores do not vary over sentences."""
    lengths = np.repeat(np.arange(4, 100), 20)
    tables = (words_and_hits(lengths, np.where(lengths < 25, *ends)) for ends in shares)
    return curve_of(lengths, *tables, resamples=50)


def test_each_seed_is_compared_with_its_own_simulated_system():
    """The retention differs by 0.1 between each seed and its simulated system, so the difference does not vary."""
    models = of_seeds((1, 0.5), (1, 0.4), (1, 0.3))
    simulated = of_seeds((1, 0.4), (1, 0.3), (1, 0.2))
    found = excess_retention(models, simulated).at(LONG)
    assert found.score == pytest.approx(0.1, abs=1e-4)
    assert found.error == pytest.approx(0, abs=1e-4)


def test_curves_use_common_sentences():
    draw = np.random.default_rng(3)
    lengths = natural(400)

    def measured(wrong, ids):
        records = []
        for number in ids:
            reference = [f"w{(number + place) % 50}" for place in range(lengths[number])]
            bad = draw.random(len(reference)) < wrong
            written = ["x" if b else word for word, b in zip(reference, bad, strict=True)]
            row = {"id": number, "length": int(lengths[number]), "reference": reference}
            records.append(row | {"bleu_stats": sentence_statistics(written, reference)})
        return Measured(records, choose_scores(["brevity_penalty", "bleu_precisions"]), 50)

    groups = {"a": [measured(0.1, range(400))], "b": [measured(0.3, range(100, 400))] * 2}
    keys = ("bleu", "brevity_penalty", "bleu_precisions", "bleu_no_unk")
    curves = length_curves(groups, keys)
    assert list(curves) == list(keys[:3])
    bleu = curves["bleu"]
    assert bleu["a"].kernel is bleu["b"].kernel
    assert bleu["a"].kernel.weights.shape[1] == 300
    assert bleu["b"].samples[0].shape == (2, 51, len(bleu["a"].lengths))
    product = curves["brevity_penalty"]["a"].score * curves["bleu_precisions"]["a"].score
    np.testing.assert_allclose(bleu["a"].score, product)
