import math

import numpy as np
import pytest
import sacrebleu

from nmt.evaluation.scores import chrf_score, perplexity, sacrebleu_score, spread

HYPOTHESES = ["Le chat est assis.", "Un chien court, vite", ""]
REFERENCES = ["Le chat était assis.", "Un chien court vite.", "Rien"]


def test_detokenised_scores_are_the_librarys_with_their_signatures():
    bleu = sacrebleu_score(HYPOTHESES, REFERENCES)
    assert bleu["score"] == pytest.approx(
        sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score, abs=1e-12
    )
    assert "tok:13a" in bleu["signature"]
    assert "case:mixed" in bleu["signature"]
    chrf = chrf_score(HYPOTHESES, REFERENCES)
    assert chrf["score"] == pytest.approx(
        sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score, abs=1e-12
    )
    assert "nc:6" in chrf["signature"]


def test_perplexity():
    assert perplexity(20 * math.log(7.5), 20) == pytest.approx(7.5)
    assert perplexity(1e6, 10) is None


def test_spread_is_entropy_in_nats():
    weights = np.array([[0.25, 0.25, 0.25, 0.25, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(spread(weights), [math.log(4), 0.0], atol=1e-12)
    three = np.array([[[0.7, 0.2, 0.1]]])
    by_hand = -(0.7 * math.log(0.7) + 0.2 * math.log(0.2) + 0.1 * math.log(0.1))
    assert spread(three).shape == (1, 1)
    assert spread(three)[0, 0] == pytest.approx(by_hand)
