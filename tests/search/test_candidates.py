import numpy as np
import pytest
import torch

from nmt.search import candidates
from nmt.search.candidates import best_continuations


def brute_force(logits, totals, widths, forbidden):
    """Returns the best continuations as sorted tuples (-total, word, parent), by computing all continuations."""
    log_p = logits.double().log_softmax(2).numpy()
    kept = []
    for b in range(len(log_p)):
        found = [
            (-(totals[b, k] + log_p[b, k, v]), v, k)
            for k in range(log_p.shape[1])
            for v in range(log_p.shape[2])
            if not (v in forbidden and forbidden[v][b]) and totals[b, k] > -np.inf
        ]
        kept.append(sorted(found)[: widths[b]])
    return kept


@pytest.mark.parametrize("vocabulary", [2, 5, 31, 256, 301])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", ["smooth", "steps", "flat", "shifted"])
def test_best_continuations_are_kept(vocabulary, dtype, shape):
    draw = torch.Generator().manual_seed(vocabulary)
    logits = torch.randn(3, 4, vocabulary, generator=draw) * 3
    if shape == "steps":  # many ties
        logits = logits.round()
    elif shape == "flat":
        logits = torch.zeros_like(logits)
    elif shape == "shifted":  # the same logits for all hypotheses of a sentence
        logits[:, 1:] = logits[:, :1]
    logits = logits.to(dtype)
    totals = np.array([[-1.0, -1.0, -2.5, -80.0], [-3.0, -3.0, -3.0, -np.inf], [-4.0] * 4])
    widths = np.array([2, 5, 3])
    forbidden = {0: np.array([True, False, False]), 1: np.array([True, True, True])}
    expected = brute_force(logits, totals, widths, forbidden)
    found = best_continuations(logits.clone(), totals, widths, forbidden)
    for b, best in enumerate(expected):
        kept = [
            (-total, word, parent)
            for parent, word, total in zip(*(array[b] for array in found), strict=True)
            if total > -np.inf
        ]
        assert [each[1:] for each in kept] == [each[1:] for each in best]
        np.testing.assert_allclose([each[0] for each in kept], [each[0] for each in best], 1e-6)


def test_overlapping_stripes_offer_a_word_once():
    """The 300 words are divided into 16 stripes of 19 words, so four words are in two stripes."""
    logits = torch.full((1, 1, 300), -30.0)
    logits[0, 0, 281:285] = torch.tensor([4.0, 3.0, 2.0, 1.0])
    found = best_continuations(logits, np.zeros((1, 1)), np.array([6]), {})
    assert found.words[0, :4].tolist() == [281, 282, 283, 284]
    assert sorted(set(found.words[0].tolist())) == sorted(found.words[0].tolist())


def test_log_probabilities_never_exceed_zero():
    logits = torch.zeros(1, 1, 5000)
    logits[0, 0, 7] = 200.0
    found = best_continuations(logits, np.zeros((1, 1)), np.array([1]), {})
    assert (found.words[0, 0], found.totals[0, 0]) == (7, 0.0)


@pytest.mark.parametrize("word", [0, 282])
def test_forbidden_word_needs_no_full_ranking(monkeypatch, word):
    """The maximum of a forbidden word's cell is taken over the cell's other words, without ranking all words."""
    monkeypatch.delattr(candidates, "_rank_all_words")
    logits = torch.randn(2, 3, 300, generator=torch.Generator().manual_seed(1))
    logits[:, :, word] = 20.0
    forbidden = {word: np.array([True, True])}
    expected = brute_force(logits, np.zeros((2, 3)), np.array([4, 2]), forbidden)
    found = best_continuations(logits, np.zeros((2, 3)), np.array([4, 2]), forbidden)
    for b, best in enumerate(expected):
        assert found.words[b, : len(best)].tolist() == [each for _, each, _ in best]


@pytest.mark.parametrize("word", [0, 282])
def test_forbidden_word_keeps_its_probability(word):
    """Word 282 is in two stripes. Other words get the log-probability -200, which must not overflow."""
    logits = torch.zeros(1, 2, 300)
    logits[:, :, word] = 200.0
    forbidden = {word: np.array([True])}
    found = best_continuations(logits, np.zeros((1, 2)), np.array([599]), forbidden)
    assert word not in found.words[found.totals > -np.inf]
    assert (found.totals > -np.inf).sum() == 2 * 299
    np.testing.assert_allclose(found.totals[found.totals > -np.inf], -200)
