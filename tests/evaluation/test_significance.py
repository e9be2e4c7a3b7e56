import itertools

import numpy as np
import pytest
from scipy import stats

from nmt.evaluation.resampling import SEED
from nmt.evaluation.scores.base import quotient
from nmt.evaluation.scores.bleu import bleu, sentence_statistics
from nmt.evaluation.significance import holm, paired_differences
from tests.helpers.bleu import bleu_by_hand, corpus, sacrebleu

EDGES = [15, 40]


@pytest.fixture
def systems():
    """Returns texts and statistics of three systems (two similar, one worse), and the sentence lengths."""
    texts = {
        name: corpus(90, seed=2, quality=q) for name, q in zip("abc", (0.8, 0.79, 0.5), strict=True)
    }
    tables = {
        name: np.stack([sentence_statistics(*pair) for pair in pairs])
        for name, pairs in texts.items()
    }
    return texts, tables, np.array([len(reference) for _, reference in texts["a"]])


def rows_of(tables, lengths, resamples=300, combine=bleu, documents=None):
    lengths = np.array(lengths)
    return list(paired_differences(tables, combine, lengths, EDGES, resamples, documents))


def p_by_hand(a, b, trials):
    """Computes the interval and p of a paired bootstrap in a loop over resamples."""
    picks = np.random.default_rng(SEED).integers(len(a), size=(trials, len(a)))
    deltas = [bleu_by_hand(a[pick].sum(0)) - bleu_by_hand(b[pick].sum(0)) for pick in picks]
    observed = abs(bleu_by_hand(a.sum(0)) - bleu_by_hand(b.sum(0)))
    beyond = np.sum(np.abs(deltas - np.mean(deltas)) >= observed)
    return np.quantile(deltas, [0.025, 0.975]), (beyond + 1) / (trials + 1)


@pytest.mark.parametrize("pair", ["ab", "ac", "bc"])
def test_differences_computed_by_hand(systems, pair):
    texts, tables, lengths = systems
    rows = rows_of({name: tables[name] for name in pair}, lengths)
    assert [row["bucket"] for row in rows] == ["all", "1-15", "16-40", "41+"]
    assert [(row["from"], row["to"]) for row in rows[1:]] == [(1, 15), (16, 40), (41, None)]
    for row, inside in ((rows[0], lengths > 0), (rows[3], lengths > 40)):
        assert (row["a"], row["b"], row["sentences"]) == (*pair, inside.sum())
        for side, name in zip(("score_a", "score_b"), pair, strict=True):
            text = [texts[name][place] for place in np.flatnonzero(inside)]
            assert row[side] == pytest.approx(sacrebleu(text).score, abs=1e-9)
        assert row["delta"] == row["score_a"] - row["score_b"]
        ends, p = p_by_hand(*(tables[name][inside] for name in pair), 300)
        assert [row["low"], row["high"]] == pytest.approx(ends.tolist(), abs=1e-9)
        assert row["p"] == pytest.approx(p, abs=1e-12)
    assert rows[0]["p_corrected"] == rows[0]["p"]
    assert [row["p_corrected"] for row in rows[1:]] == holm([row["p"] for row in rows[1:]])


def test_one_document_has_no_interval(systems):
    """The last bucket has only one document, so documents cannot be resampled."""
    _, tables, lengths = systems
    documents = np.where(lengths > 40, 0, np.arange(len(lengths)))
    [*_, last] = rows_of({name: tables[name] for name in "ab"}, lengths, documents=documents)
    assert (last["low"], last["interval"], last["p"]) == (None, "", None)


def test_p_over_few_documents_is_widened_as_an_interval():
    """The deviations of the resamples are widened by √(D / (D - 1)), and by Student's t with D - 1 degrees."""
    gains = np.array([1.0, 2.0, 3.0, -1.0, 1.5])  # of a over b in each sentence of five documents
    documents = np.repeat(np.arange(5), 8)
    tables = {
        name: np.stack([values[documents], np.ones(40)], axis=1)
        for name, values in {"a": gains, "b": np.zeros(5)}.items()
    }
    rows = rows_of(
        tables, [5] * 40, 400, lambda sums: quotient(sums[..., 0], sums[..., 1]), documents
    )
    drawn = gains[np.random.default_rng(SEED).integers(5, size=(400, 5))].mean(axis=1)
    factor = (5 / 4) ** 0.5 * stats.t.ppf(0.975, 4) / stats.norm.ppf(0.975)
    beyond = factor * np.abs(drawn - drawn.mean()) >= gains.mean()
    assert rows[0]["p"] == pytest.approx((beyond.sum() + 1) / 401)


def test_many_systems_equal_single_pairs(systems):
    _, tables, lengths = systems
    tables["empty"] = np.full_like(tables["a"], np.nan, dtype=float)
    together = rows_of(tables, lengths)
    alone = [
        row
        for a, b in itertools.combinations("abc", 2)
        for row in rows_of({a: tables[a], b: tables[b]}, lengths)
    ]
    assert [row for row in together if "empty" not in (row["a"], row["b"])] == alone


def test_false_positive_rate_is_five_percent(systems):
    _, tables, _ = systems
    generator = np.random.default_rng(0)
    found = []
    for _ in range(400):
        kept = generator.integers(2, size=(90, 1), dtype=bool)
        pair = [np.where(swap, tables["a"], tables["b"]) for swap in (kept, ~kept)]
        whole, *_ = rows_of(dict(zip("xy", pair, strict=True)), [5] * 90, 200)
        found.append(whole["p"] < 0.05)
    assert 0.02 < np.mean(found) < 0.08  # 0.05 ± 3 standard errors


def test_few_sentences_give_no_p(systems):
    _, tables, _ = systems
    rows = rows_of({name: tables[name] for name in "ac"}, [5] * 29 + [20] * 30 + [50] * 31)
    assert [row["sentences"] for row in rows] == [90, 29, 30, 31]
    assert [row["p"] is None for row in rows] == [False, True, False, False]
    assert rows[1]["low"] < rows[1]["delta"] < rows[1]["high"]


def test_equal_outputs_do_not_differ(systems):
    _, tables, lengths = systems
    for row in rows_of({"a": tables["a"], "b": tables["a"]}, lengths):
        assert row["delta"] == 0.0
        assert row["p"] in (None, 1.0)


def test_bucket_without_a_defined_score_is_left_out():
    """The score is a ratio whose denominator is 0 in the shortest bucket."""
    generator = np.random.default_rng(3)
    systems = {}
    for name in "ab":
        systems[name] = np.stack([generator.integers(5, size=12), np.full(12, 2)], axis=1)
        systems[name][:4, 1] = 0
    rows = rows_of(
        systems, [5] * 4 + [20] * 8, combine=lambda sums: quotient(sums[..., 0], sums[..., 1])
    )
    assert [row["bucket"] for row in rows] == ["all", "16-40"]
    above, below = systems["a"][4:].sum(axis=0)
    assert rows[1]["score_a"] == above / below


def test_holms_correction_by_hand():
    assert holm([0.01, 0.02, 0.03, 0.005]) == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([None, 0.01, None, 0.02]) == [None, 0.02, None, 0.02]
    assert holm([]) == []
