import numpy as np
import pytest

from nmt.evaluation.alignment import (
    Gold,
    attended_words,
    attention_entropy,
    eos_weight,
    format_links,
    hard_links,
    parse_links,
    sentence_counts,
    word_weights,
)
from nmt.evaluation.scores import REGISTERED
from nmt.utils.errors import InputError

# Attention weights of three target words and </s> (rows) to four source words and </s> (columns).
WEIGHTS = np.array(
    [
        [0.60, 0.10, 0.10, 0.10, 0.10],
        [0.05, 0.15, 0.30, 0.10, 0.40],  # largest weight at </s>, but below the limit 0.5
        [0.10, 0.10, 0.10, 0.15, 0.55],  # weight of </s> above the limit
        [0.00, 0.00, 0.00, 0.00, 1.00],
    ]
)


def all_scores(counts):
    """Computes the alignment scores from counts that are summed over sentences."""
    keys = ("alignment_error_rate", "precision", "recall", "eos_share")
    return {key: float(REGISTERED[key].combine(np.array(counts))) for key in keys}


def test_hard_links_of_attention():
    assert hard_links(WEIGHTS) == [(0, 0), (2, 1)]
    assert attended_words(WEIGHTS).tolist() == [0, 2, 3, 0]


def test_source_without_words_has_no_links():
    assert hard_links(np.array([[1.0], [1.0]])) == []
    assert attended_words(np.array([[1.0], [1.0]])).tolist() == [-1, -1]


def test_counts_and_error_by_hand():
    gold = Gold(frozenset({(0, 0), (3, 2)}), frozenset({(0, 0), (3, 2), (2, 1), (1, 1)}))
    # Links: predicted A = {0-0, 2-1}, sure S, possible P. So A ∩ S = {0-0}, and A ∩ P = A.
    counts = sentence_counts(WEIGHTS, gold)
    assert counts == [2, 2, 1, 2, 2, 3]
    scores = all_scores(counts)
    assert scores["alignment_error_rate"] == pytest.approx(1 - (1 + 2) / (2 + 2))
    assert scores["precision"] == 1.0
    assert scores["recall"] == 0.5
    assert scores["eos_share"] == pytest.approx(2 / 3)
    assert eos_weight(WEIGHTS) == pytest.approx((0.10 + 0.40 + 0.55) / 3)
    assert eos_weight(WEIGHTS[-1:]) is None


def test_error_rate_of_a_set_uses_summed_counts():
    counts = np.array([[2, 2, 1, 2, 2, 3], [5, 4, 4, 5, 0, 6], [0, 0, 0, 0, 1, 1]])
    error = REGISTERED["alignment_error_rate"].combine
    assert error(counts.sum(axis=0)) == pytest.approx(1 - (5 + 7) / (7 + 6))
    np.testing.assert_allclose(error(counts), [0.25, 0.0, np.nan])
    assert [key for key, value in all_scores(counts[2]).items() if np.isnan(value)] == [
        "alignment_error_rate",
        "precision",
        "recall",
    ]


def test_attention_entropy_is_in_nats():
    weights = np.array([[0.25, 0.25, 0.25, 0.25, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(attention_entropy(weights), [np.log(4), 0.0], atol=1e-12)
    three = np.array([[[0.7, 0.2, 0.1]]])
    by_hand = -(0.7 * np.log(0.7) + 0.2 * np.log(0.2) + 0.1 * np.log(0.1))
    assert attention_entropy(three).shape == (1, 1)
    assert attention_entropy(three)[0, 0] == pytest.approx(by_hand)


def test_subwords_become_words():
    weights = np.random.default_rng(0).dirichlet(np.ones(6), size=5)  # (T, S)
    words = word_weights(weights, source_words=[0, 1, 1, 1, 2, 3], target_words=[0, 0, 1, 2, 3])
    assert words.shape == (4, 4)
    np.testing.assert_allclose(words.sum(axis=1), 1.0)
    assert words[0, 1] == pytest.approx(weights[:2, 1:4].sum() / 2)
    assert words[1, 0] == pytest.approx(weights[2, 0])
    assert words[2, 3] == pytest.approx(weights[3, 5])
    assert words[3, 3] == pytest.approx(weights[4, 5])
    np.testing.assert_array_equal(word_weights(weights, range(6), range(5)), weights)


def test_pharaoh_format_round_trips():
    gold = parse_links("0-0 2-1 3p1  1-2")
    assert gold.sure == {(0, 0), (2, 1), (1, 2)}
    assert gold.possible == gold.sure | {(3, 1)}
    assert format_links(gold.sure) == "0-0 1-2 2-1"
    assert parse_links(format_links(gold.sure)).sure == gold.sure
    assert parse_links("") == Gold(frozenset(), frozenset())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0-0 1:1", "f.align:7: '1:1' is not a link"),
        ("0-", "f.align:7: '0-' is not a link"),
        ("-1-2", "f.align:7: '-1-2' is not a link"),
        ("٣-1", "f.align:7: '٣-1' is not a link"),
        ("0-3", "f.align:7: '0-3' lies outside the sentence of 2 source and 3 target"),
    ],
)
def test_refuses_malformed_links(line, message):
    with pytest.raises(InputError) as refusal:
        parse_links(line, where="f.align:7", lengths=(2, 3))
    assert str(refusal.value).startswith(message)
