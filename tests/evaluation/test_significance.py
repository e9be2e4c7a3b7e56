import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from nmt.evaluation import resampling
from nmt.evaluation.bleu import bleu, bleu_scores, sentence_statistics
from nmt.evaluation.resampling import SEED, interval
from nmt.evaluation.scores.base import quotient
from nmt.evaluation.significance import compare, holm

EDGES = [15, 40]
PS = ("p", "p_corrected", "p_randomised", "p_randomised_corrected")


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


def paired_test(references, a, b, kind, trials):
    """Scores of both by sacrebleu, and its p-value."""
    lines = [[" ".join(tokens) for tokens in side] for side in (a, b, references)]
    _, scores = PairedTest(
        [("a", lines[0]), ("b", lines[1])],
        {"BLEU": BLEU(tokenize="none", force=True)},
        [lines[2]],
        test_type=kind,
        n_samples=trials,
    )()
    first, second = scores["BLEU"]
    return first.score, second.score, second.p_value


def transcribed_p(a, b, trials):
    """The paired bootstrap, one resample at a time."""
    picks = np.random.default_rng(SEED).integers(len(a), size=(trials, len(a)))
    deltas = np.array([bleu(a[pick].sum(axis=0)) - bleu(b[pick].sum(axis=0)) for pick in picks])
    by_chance = np.abs(deltas - deltas.mean())
    observed = abs(bleu(a.sum(axis=0)) - bleu(b.sum(axis=0)))
    return (np.sum(by_chance >= observed) + 1) / (trials + 1)


def pair_rows(a, b, lengths, **settings):
    """The rows of two systems by BLEU."""
    systems = {"a": {"bleu": a}, "b": {"bleu": b}}
    return compare(systems, {"bleu": bleu_scores}, lengths, EDGES, **settings)["bleu"]


@pytest.mark.parametrize("chunk", [1 << 22, 64 * 90])
@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_scores_and_randomised_p_values_are_sacrebleus(systems, monkeypatch, pair, chunk):
    monkeypatch.setattr(resampling, "CHUNK", chunk)
    references, outputs = systems
    (a, statistics_a), (b, statistics_b) = (outputs[system] for system in pair)
    lengths = [len(reference) for reference in references]
    rows = pair_rows(statistics_a, statistics_b, lengths, resamples=300)
    inside = [number for number, length in enumerate(lengths) if 15 < length <= 40]
    assert (rows[2]["bucket"], rows[2]["sentences"]) == ("16-40", len(inside))
    for row, numbers in ((rows[0], range(90)), (rows[2], inside)):
        part = [[side[number] for number in numbers] for side in (references, a, b)]
        expected = paired_test(*part, "ar", 300)
        found = row["score_a"], row["score_b"], row["p_randomised"]
        assert found == pytest.approx(expected, abs=1e-12)


def test_many_systems_have_the_figures_of_each_pair_alone(systems):
    references, outputs = systems
    lengths = [len(reference) for reference in references]
    tables = {name: {"bleu": table} for name, (_, table) in zip("abc", outputs, strict=True)}
    tables["empty"] = {"bleu": np.full_like(outputs[0][1], np.nan, dtype=float)}
    settings = {"combine": {"bleu": bleu_scores}, "lengths": lengths, "edges": EDGES}
    together = compare(tables, **settings, resamples=200)["bleu"]
    alone = [
        row
        for a, b in itertools.combinations("abc", 2)
        for row in compare({a: tables[a], b: tables[b]}, **settings, resamples=200)["bleu"]
    ]
    assert [row for row in together if "empty" not in (row["a"], row["b"])] == alone


@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2)])
def test_bootstrapped_p_values_are_of_centred_differences(systems, pair):
    references, outputs = systems
    (_, a), (_, b) = (outputs[system] for system in pair)
    lengths = np.array([len(reference) for reference in references])
    rows = pair_rows(a, b, lengths, resamples=300)
    assert rows[0]["p"] == pytest.approx(transcribed_p(a, b, 300), abs=1e-12)
    inside = lengths > 40
    assert rows[3]["sentences"] == inside.sum()
    assert rows[3]["p"] == pytest.approx(transcribed_p(a[inside], b[inside], 300), abs=1e-12)


def test_bleus_numbers_are_those_on_record(corpus):
    """Three systems, resampled together: as two at a time were before each was resampled once."""
    record = json.loads((Path(__file__).parent / "bleu_significance.json").read_text())
    systems = {
        name: np.array([sentence_statistics(*pair) for pair in corpus(90, seed=1, quality=quality)])
        for name, quality in {"a": 0.8, "b": 0.72, "c": 0.79}.items()
    }
    lengths = [len(reference) for _, reference in corpus(90, seed=1)]
    for statistics, expected in zip(systems.values(), record["intervals"], strict=True):
        assert interval(statistics, bleu_scores, resamples=300) == pytest.approx(expected, abs=1e-9)
    words = {name: statistics[:, 8:] for name, statistics in systems.items()}
    found = compare(
        {name: {"bleu": systems[name], "words": words[name]} for name in systems},
        {"bleu": bleu_scores, "words": lambda sums: sums[..., 0] / sums[..., 1]},
        lengths,
        [20, 45],
        resamples=300,
    )
    for test, suffix in (("bootstrap", ""), ("randomisation", "_randomised")):
        for a, b in itertools.combinations("abc", 2):
            rows = [row for row in found["bleu"] if (row["a"], row["b"]) == (a, b)]
            p = {"p": f"p{suffix}", "p_corrected": f"p{suffix}_corrected"}
            columns = [p.get(column, column) for column in record["columns"]]
            expected = record["pairs"][f"{a} {b} {test}"]
            assert [row["bucket"] for row in rows] == [row[0] for row in expected]
            for row, numbers in zip(rows, expected, strict=True):
                measured = [row[column] for column in columns[1:]]
                assert measured == pytest.approx(numbers[1:], abs=1e-9)


@pytest.mark.parametrize("test", ["p", "p_randomised"])
def test_systems_that_differ_by_chance_differ_in_five_of_a_hundred(systems, test):
    _, [(_, a), (_, b), _] = systems
    generator = np.random.default_rng(0)
    found = []
    for _ in range(400):
        kept = generator.integers(2, size=(90, 1), dtype=bool)
        x, y = np.where(kept, a, b), np.where(kept, b, a)
        whole, *_ = pair_rows(x, y, [5] * 90, resamples=200)
        found.append(whole[test] < 0.05)
    assert 0.02 < np.mean(found) < 0.08  # three standard errors about 0.05


def test_shuffles_as_far_apart_as_the_outputs_count(systems):
    """Of 3 sentences there are 8 shuffles, of which the outputs themselves are two."""
    _, [(_, a), _, (_, b)] = systems
    for count, share in ((1, 1.0), (3, 0.25)):
        x, y = a[:count], b[:count]
        swaps = [np.array(swap)[:, None] for swap in itertools.product([True, False], repeat=count)]
        apart = [
            abs(bleu(np.where(s, x, y).sum(axis=0)) - bleu(np.where(s, y, x).sum(axis=0)))
            for s in swaps
        ]
        assert np.mean(np.array(apart) >= max(apart) - 1e-9) == share
        first = np.where(swaps[int(np.argmax(apart))], x, y)
        rows = pair_rows(first, x + y - first, [5] * count, resamples=10000)
        assert [row["p_randomised"] for row in rows] == pytest.approx([share] * 2, abs=0.02)


def test_a_bootstrap_of_few_sentences_has_no_p(systems):
    _, [(_, a), _, (_, b)] = systems
    lengths = [5] * 29 + [20] * 30 + [50] * 31
    rows = pair_rows(a, b, lengths, resamples=100)
    assert [row["sentences"] for row in rows] == [90, 29, 30, 31]
    assert [row["p"] is None for row in rows] == [False, True, False, False]
    assert [row["p_corrected"] for row in rows[1:]] == holm([row["p"] for row in rows[1:]])
    assert rows[1]["low"] < rows[1]["delta"] < rows[1]["high"]


def test_rows(systems):
    references, outputs = systems
    lengths = [len(reference) for reference in references]
    rows = pair_rows(outputs[0][1], outputs[2][1], lengths)
    assert [row["bucket"] for row in rows] == ["all", "1-15", "16-40", "41+"]
    assert [(row["from"], row["to"]) for row in rows[1:]] == [(1, 15), (16, 40), (41, None)]
    assert sum(row["sentences"] for row in rows[1:]) == rows[0]["sentences"] == 90
    for row in rows:
        assert row["low"] < row["delta"] < row["high"]
        assert row["delta"] == row["score_a"] - row["score_b"] > 0
        assert row["p"] is None or row["p_corrected"] >= row["p"]
        assert row["p_randomised_corrected"] >= row["p_randomised"]
    assert rows[0]["p"] == rows[0]["p_corrected"] == 1 / 1001


def test_equal_outputs_do_not_differ(systems):
    _, outputs = systems
    same = outputs[0][1]
    rows = pair_rows(same, same, [20] * len(same), resamples=100)
    ps = [(row["delta"], *(row[key] for key in PS)) for row in rows]
    assert ps == [(0.0, 1.0, 1.0, 1.0, 1.0)] * 2


def test_a_bucket_without_a_defined_score_is_left_out():
    """A ratio of 12 sentences, whose denominators are all 0 in the bucket of short ones."""
    generator = np.random.default_rng(3)
    systems = {}
    for name in "ab":
        rows = np.stack([generator.integers(5, size=12), np.full(12, 2)], axis=1)
        rows[:4, 1] = 0
        systems[name] = {"ratio": rows}
    ratio = {"ratio": lambda sums: quotient(sums[..., 0], sums[..., 1])}
    rows = compare(systems, ratio, [5] * 4 + [20] * 8, EDGES, resamples=50)["ratio"]
    assert [row["bucket"] for row in rows] == ["all", "16-40"]
    sums = {name: system["ratio"][4:].sum(axis=0) for name, system in systems.items()}
    assert rows[1]["score_a"] == sums["a"][0] / sums["a"][1]


def test_holms_correction_by_hand():
    assert holm([0.01, 0.02, 0.03, 0.005]) == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([None, 0.01, None, 0.02]) == [None, 0.02, None, 0.02]
    assert holm([]) == []
