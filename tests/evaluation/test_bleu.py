import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.evaluation.scores.bleu import bleu, brevity_penalty, sentence_statistics
from tests.helpers.bleu import bleu_by_hand, corpus, sacrebleu


@pytest.mark.parametrize("seed", range(3))
def test_corpus_bleu_equals_sacrebleu(seed):
    pairs = corpus(60, seed=seed)
    expected = sacrebleu(pairs)
    sums = sum(sentence_statistics(*pair) for pair in pairs)
    lengths = expected.sys_len, expected.ref_len
    assert sums.tolist() == [*expected.counts, *expected.totals, *lengths]
    assert bleu(sums) == pytest.approx(expected.score, abs=1e-9)
    assert brevity_penalty(sums) == pytest.approx(expected.bp, abs=1e-12)


WORDS = st.lists(st.sampled_from("abcd"), max_size=9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS.filter(bool)), min_size=1, max_size=4))
def test_corpus_bleu_equals_sacrebleu_on_random_corpora(pairs):
    sums = sum(sentence_statistics(*pair) for pair in pairs)
    assert bleu(sums) == pytest.approx(sacrebleu(pairs).score, abs=1e-9)


@pytest.mark.parametrize("effective_order", [False, True])
def test_bleu_of_many_sums(effective_order):
    rows = np.stack([sentence_statistics(*pair) for pair in corpus(300, longest=9)])
    sums = np.concatenate([rows, np.cumsum(rows, axis=0)]).reshape(3, 200, 10)
    options = {"effective_order": effective_order}
    expected = np.array([[bleu_by_hand(row, **options) for row in block] for block in sums])
    assert (expected == 0).any()
    assert (expected > 0).mean() > 0.5
    np.testing.assert_allclose(bleu(sums, **options), expected, rtol=0, atol=1e-9)


def test_unicode_space_inside_a_token():
    reference = ["10\u00a0000", "euros", "\u2009", "net", "x\u3000y"]
    exact = sentence_statistics(reference, reference)
    assert exact.tolist() == [5, 4, 3, 2, 5, 4, 3, 2, 5, 5]
    split = sentence_statistics(["10", "000", "euros"], reference)
    assert split.tolist() == [1, 0, 0, 0, 3, 2, 1, 0, 3, 5]


def test_identical_texts_score_100():
    assert bleu([40, 32, 24, 16, 40, 32, 24, 16, 40, 40]) == 100.0
