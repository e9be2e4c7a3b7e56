"""Length curves of single domains, and curves with the same mix of domains at all lengths."""

import numpy as np
import pytest

from nmt.evaluation.domains import (
    adjusted_kernel,
    comparable_domains,
    kernel_of_domain,
    known_lengths,
    shares_at,
)
from nmt.evaluation.length_curve import LengthScale
from nmt.evaluation.measured import CommonSentences

SCALE = LengthScale()


def mixed(count=4000, seed=1):
    """Makes sentences of 5 to 80 words. Most long sentences are news; captions are few and short."""
    draw = np.random.default_rng(seed)
    lengths = np.exp(draw.uniform(np.log(5), np.log(80), count)).round().astype(int)
    news = draw.random(count) < np.log(lengths / 4) / np.log(25)
    domains = np.where(news, "news", "social")
    domains[(lengths < 15) & (draw.random(count) < 0.1)] = "captions"
    return CommonSentences(np.arange(count), lengths, None, domains, [])


def score(of, sentences, values):
    """Returns the share of correct words at each length of the kernel `of`."""
    words = of.weights * sentences.lengths
    return words @ values / words.sum(axis=1)


def test_adjusted_curve_removes_differences_between_domains():
    """News is the hardest domain, at every length; only the curve without adjustment falls with length."""
    sentences = mixed()
    values = np.select(
        [sentences.domains == "news", sentences.domains == "social"], [0.3, 0.6], 0.9
    )
    plain = score(SCALE.weights(sentences), sentences, values)
    of = adjusted_kernel(SCALE, sentences)
    adjusted = score(of, sentences, values)
    assert plain[0] - plain[-1] > 0.1
    counts = {name: (sentences.domains == name).sum() for name in ("news", "social")}
    mix = counts["news"] / sum(counts.values())
    np.testing.assert_allclose(adjusted, 0.3 * mix + 0.6 * (1 - mix), atol=0.01)
    assert {10, 50} <= set(of.lengths.round(6))


def test_weights_equal_the_shares_of_domains():
    sentences = mixed()
    assert [*comparable_domains(SCALE, sentences)] == ["news", "social"]
    of = adjusted_kernel(SCALE, sentences)
    counted = np.isin(sentences.domains, ["news", "social"])
    assert not of.weights[:, ~counted].any()
    weights = of.weights / of.weights.sum(axis=1, keepdims=True)
    for domain in ("news", "social"):
        inside = sentences.domains == domain
        np.testing.assert_allclose(weights[:, inside].sum(axis=1), inside.sum() / counted.sum())
        alone = kernel_of_domain(SCALE, sentences, domain)
        assert not alone.weights[:, ~inside].any()
        at = np.isin(of.lengths.round(6), alone.lengths.round(6))
        own = weights[at][:, inside] / weights[at][:, inside].sum(axis=1, keepdims=True)
        expected = alone.weights[np.isin(alone.lengths.round(6), of.lengths.round(6))][:, inside]
        np.testing.assert_allclose(own, expected / expected.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(of.sentences, 1 / (weights**2).sum(axis=1))
    np.testing.assert_allclose(of.weights.sum(axis=1), of.sentences)


def test_share_of_a_domain_by_length():
    sentences = mixed()
    short, long = (shares_at(sentences, length) for length in (10, 50))
    near = (sentences.lengths >= 9) & (sentences.lengths <= 11)
    assert short["news"] == pytest.approx((sentences.domains[near] == "news").mean(), abs=0.04)
    assert sum(long.values()) == pytest.approx(1)
    assert long["news"] > short["news"] + 0.3


def test_adjusted_curve_has_gaps_without_sentences_of_a_domain():
    """Captions have about 10 or about 50 words, news any number."""
    lengths = np.concatenate([np.repeat([9, 10, 11, 45, 50, 55], 100), np.arange(600) % 80 + 1])
    domains = np.repeat(["captions", "news"], 600)
    sentences = CommonSentences(np.arange(1200), lengths, None, domains, [])
    found = adjusted_kernel(SCALE, sentences).lengths
    assert {10, 50} <= set(found.round(6))
    assert not np.any((found > 18) & (found < 28))
    assert np.any(kernel_of_domain(SCALE, sentences, "news").lengths.round() == 22)


def test_adjusted_curve_needs_thirty_sentences_in_all():
    """Each domain is half of the set. At 10 words, 6 and 60 sentences have the effective size 1 / (1/24 + 1/240)."""
    lengths = np.repeat([10, 50, 10, 50], [6, 94, 60, 40])
    domains = np.repeat(["captions", "news"], 100)
    sentences = CommonSentences(np.arange(200), lengths, None, domains, [])
    assert 10 in SCALE.weights(sentences).lengths.round(6)
    assert [*comparable_domains(SCALE, sentences)] == ["captions", "news"]
    found = adjusted_kernel(SCALE, sentences).lengths
    assert 50 in found.round(6)
    assert found.min() > 20


def test_single_domain_has_no_adjusted_curve():
    lengths = np.repeat([8, 10, 12, 45, 50, 55], 100)
    domains = np.where(lengths < 30, "social", "news")
    sentences = CommonSentences(np.arange(600), lengths, None, domains, [])
    assert not len(adjusted_kernel(SCALE, sentences).lengths)
    ends = {name: np.round(each) for name, each in known_lengths(SCALE, sentences).items()}
    assert ends["social"].tolist() == [8, 11]
    assert ends["news"].tolist() == [45, 50]


@pytest.mark.parametrize(("ending", "ends"), [((1, 24), (10, 22)), ((21, 80), (22, 50))])
def test_adjusted_curve_ends_where_a_domain_ends(ending, ends):
    """News have 1 to 80 words, and lectures have a part of these lengths."""
    first, last = ending
    lengths = np.concatenate([np.arange(800) % 80 + 1, np.arange(800) % (last - first + 1) + first])
    domains = np.repeat(["news", "lectures"], 800)
    sentences = CommonSentences(np.arange(1600), lengths, None, domains, [])
    found = adjusted_kernel(SCALE, sentences)
    inside = found.lengths[(found.lengths > 9.9) & (found.lengths < 50.1)]
    np.testing.assert_allclose(inside[[0, -1]], ends, rtol=0.06)
    assert found.short == pytest.approx(inside[0])
