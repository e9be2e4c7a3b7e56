import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from nmt.evaluation import significance
from nmt.evaluation.bleu import sentence_statistics
from nmt.evaluation.significance import compare, holm

EDGES = [15, 40]


@pytest.fixture
def systems(corpus):
    """Three systems on the same references: two alike, one clearly worse."""
    good, also_good, bad = (corpus(90, seed=2, quality=q) for q in (0.8, 0.79, 0.5))
    references = [reference for _, reference in good]

    def of(pairs):
        hypotheses = [hypothesis for hypothesis, _ in pairs]
        rows = [sentence_statistics(h, r) for h, r in zip(hypotheses, references, strict=True)]
        return hypotheses, np.stack(rows)

    return references, [of(pairs) for pairs in (good, also_good, bad)]


def sacrebleu_p(references, a, b, kind, trials):
    lines = [[" ".join(tokens) for tokens in side] for side in (a, b, references)]
    _, scores = PairedTest(
        [("a", lines[0]), ("b", lines[1])],
        {"BLEU": BLEU(tokenize="none", force=True)},
        [lines[2]],
        test_type=kind,
        n_samples=trials,
    )()
    return scores["BLEU"][1].p_value


@pytest.mark.parametrize("chunk", [1 << 22, 64 * 90])
@pytest.mark.parametrize(("test", "kind"), [("bootstrap", "bs"), ("randomisation", "ar")])
@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_p_values_are_sacrebleus(systems, monkeypatch, test, kind, pair, chunk):
    monkeypatch.setattr(significance, "CHUNK", chunk)
    references, outputs = systems
    (a, statistics_a), (b, statistics_b) = (outputs[system] for system in pair)
    lengths = [len(reference) for reference in references]
    rows = compare("a", statistics_a, "b", statistics_b, lengths, EDGES, test=test, trials=300)
    expected = sacrebleu_p(references, a, b, kind, 300)
    assert rows[0]["p"] == pytest.approx(expected, abs=1e-12)
    inside = [number for number, length in enumerate(lengths) if 15 < length <= 40]
    part = [[side[number] for number in inside] for side in (references, a, b)]
    assert rows[2]["bucket"] == "16-40"
    assert rows[2]["sentences"] == len(inside)
    assert rows[2]["p"] == pytest.approx(sacrebleu_p(*part, kind, 300), abs=1e-12)


def test_ties_of_few_sentences_count_as_in_sacrebleu(systems):
    references, outputs = systems
    few = [slice(0, 3), slice(8, 13), slice(20, 22)]
    for part in few:
        rows = compare(
            "a",
            outputs[0][1][part],
            "b",
            outputs[2][1][part],
            [5] * (part.stop - part.start),
            EDGES,
            test="randomisation",
            trials=400,
        )
        if rows[0]["delta"]:
            expected = sacrebleu_p(
                references[part], outputs[0][0][part], outputs[2][0][part], "ar", 400
            )
            assert rows[0]["p"] == pytest.approx(expected, abs=1e-12)


def test_rows(systems):
    references, outputs = systems
    lengths = [len(reference) for reference in references]
    rows = compare("good", outputs[0][1], "bad", outputs[2][1], lengths, EDGES)
    assert [row["bucket"] for row in rows] == ["all", "1-15", "16-40", "41+"]
    assert [(row["from"], row["to"]) for row in rows[1:]] == [(1, 15), (16, 40), (41, None)]
    assert sum(row["sentences"] for row in rows[1:]) == rows[0]["sentences"] == 90
    for row in rows:
        assert row["low"] < row["delta"] < row["high"]
        assert row["delta"] == row["score_a"] - row["score_b"] > 0
        assert row["p_corrected"] >= row["p"]
    assert rows[0]["p"] == rows[0]["p_corrected"] == 1 / 1001


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_equal_outputs_do_not_differ(systems, test):
    _, outputs = systems
    same = outputs[0][1]
    rows = compare("a", same, "b", same, [20] * len(same), EDGES, test=test, trials=100)
    assert [(row["delta"], row["p"], row["p_corrected"]) for row in rows] == [(0.0, 1.0, 1.0)] * 2


def test_holms_correction_by_hand():
    assert holm([0.01, 0.02, 0.03, 0.005]) == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []
