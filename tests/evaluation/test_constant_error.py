"""Simulated systems with constant error rates: their BLEU statistics, scores and length curves."""

import numpy as np
import pytest

from benchmarks.coverage import damaged
from nmt.evaluation import constant_error
from nmt.evaluation.constant_error import (
    DRAWS,
    Rates,
    References,
    measure_constant_error,
    simulated_systems,
)
from nmt.evaluation.length_curve import excess_retention, length_curves
from nmt.evaluation.measured import Measured
from nmt.evaluation.records import system_record
from nmt.evaluation.scores import NO_UNK, REGISTERED, Score, choose_scores
from nmt.evaluation.scores.bleu import bleu, sentence_statistics


class Words(Score):
    """A user's score: the number of words."""

    key = title = "words"

    def statistics(self, record):
        return [len(record.get("hypothesis", ()))]

    def combine(self, sums):
        return sums[..., 0]


@pytest.fixture(scope="module")
def references():
    draw = np.random.default_rng(0)
    share = 1 / np.arange(1, 2001)
    lengths = np.clip(draw.lognormal(np.log(20), 0.6, 700).round(), 1, 90).astype(int)
    return [
        [f"w{word}" for word in draw.choice(2000, length, p=share / share.sum())]
        for length in lengths
    ]


def records_of(given, draws):
    """The records of simulated systems."""
    return [build() for _, build in simulated_systems(given, draws)]


@pytest.mark.parametrize(
    "rates", [Rates(0.3, 0.4, 0.3, -0.1), Rates(0.1, 0.05, -0.2, 0.1), Rates(0.5, 0.5, 0.9, 0.0)]
)
def test_matches_equal_those_of_single_sentences(references, rates):
    several = [[words, words[::-1], words[1:] + words[:3]] for words in references[:200]]
    for texts in (several, [each[:1] for each in several]):
        made = References(texts)
        made.draw(1)
        words, sentence = made.hypotheses(rates)
        found = [
            sentence_statistics([made.vocabulary[w] for w in words[sentence == number]], *each)
            for number, each in enumerate(texts)
        ]
        np.testing.assert_array_equal(made.statistics(words, sentence), found)


def test_swapped_words_stay_in_their_sentence(references):
    made = References([[words] for words in references])
    made.draw(1)
    words, sentence = made.hypotheses(Rates(1e-9, 0.05, -0.3, 0.0))
    for number, reference in enumerate(references):
        written = [made.vocabulary[word] for word in words[sentence == number]]
        assert sorted(written) == sorted(reference)
    moved = np.mean(words != made.words)
    assert 0.3 < moved < 0.6  # each swap moves two words


@pytest.mark.parametrize(("added", "copies"), [(1.0, 2), (-1.0, 0), (0.0, 1)])
def test_words_are_repeated_or_dropped_by_the_sign_of_the_rate(added, copies):
    made = References([[["a", "b", "c"]], [["d"]]])
    made.draw(1)
    words, sentence = made.hypotheses(Rates(1e-9, 0.05, 0.0, added))
    assert [made.vocabulary[word] for word in words] == [*np.repeat([*"abcd"], copies)]
    assert sentence.tolist() == [*np.repeat([0, 0, 0, 1], copies)]


def test_errors_of_neighbouring_sentences_are_independent(references):
    """Errors of neighbouring words are correlated within a sentence, but not across its end."""
    made = References([[words] for words in references])
    made.draw(1)
    words, _ = made.hypotheses(Rates(0.5, 0.05, 0.9, 0.0))
    wrong = words != made.words
    first = np.flatnonzero(made.starts)[1:]
    inside = np.flatnonzero(~made.starts)
    assert np.corrcoef(wrong[inside], wrong[inside - 1])[0, 1] > 0.7
    assert abs(np.corrcoef(wrong[first], wrong[first - 1])[0, 1]) < 0.15


@pytest.mark.parametrize(
    "moved", [0.2, *(pytest.param(rate, marks=pytest.mark.slow) for rate in (0.0, 0.03, 0.5))]
)
def test_whole_set_keeps_its_score(references, moved):
    """Both systems have the same BLEU, even if the given one moves words far; the simulated one swaps neighbours."""
    draw = np.random.default_rng(1)
    given = []
    for number, reference in enumerate(references):
        kept = [word for word in reference if draw.random() < 0.95]
        words = [word if draw.random() < 0.8 else "wrong" for word in kept]
        for _ in range(draw.binomial(len(words), moved)):
            words.insert(draw.integers(len(words)), words.pop(draw.integers(len(words))))
        record = {"id": number, "reference": reference, "length": 1, "raw_reference": "a text"}
        counts = sentence_statistics(words, reference).tolist()
        given.append(system_record(record, words, "", counts))
    [twins] = records_of(given, draws=1)
    assert [twins] == records_of(given, draws=1)
    # Errors are made in tokens, so there is no detokenised text to score.
    assert twins[0]["raw_reference"] is None
    wanted, got = (np.sum([row["bleu_stats"] for row in rows], axis=0) for rows in (given, twins))
    assert bleu(got) == pytest.approx(bleu(wanted), abs=0.15)
    assert got[8] / got[9] == pytest.approx(wanted[8] / wanted[9], abs=1e-4)
    if not moved:
        np.testing.assert_allclose(got[:4] / got[4:8], wanted[:4] / wanted[4:8], atol=0.01)


def test_simulated_systems_of_a_run_make_different_errors(references):
    rows = zip(range(100), references, strict=False)
    given = [
        {"id": n, "reference": words, "bleu_stats": sentence_statistics(words[1:], words)}
        for n, words in rows
    ]
    first, second = records_of(given, draws=2)
    same = [a["hypothesis"] == b["hypothesis"] for a, b in zip(first, second, strict=True)]
    assert sum(same) < 50


@pytest.mark.parametrize(
    ("rate", "falls"), [(lambda _: 0.3, False), (lambda words: min(0.6, 0.02 * words), True)]
)
def test_rising_error_rate_differs_from_a_constant_rate(references, rate, falls):
    rates = np.array([rate(len(words)) for words in references])
    given = damaged(references, rates, np.random.default_rng(2))
    own = [Measured(given, choose_scores([]), resamples=300)]
    measured = {"given": own, "constant": measure_constant_error([given], own)}
    curves = length_curves(measured, ["bleu"])["bleu"]
    apart = excess_retention(curves["given"], curves["constant"]).at(50)
    kept = [curves[name].relative.at(50).score for name in measured]
    assert apart.score == pytest.approx(kept[0] - kept[1])
    assert (apart.interval()[1] < 0) is falls


@pytest.mark.slow
def test_parts_of_a_large_set_are_simulated_like_the_whole_set(references, monkeypatch):
    """Each row belongs to its sentence, and the simulated system has the BLEU of the given one."""
    draw = np.random.default_rng(3)
    given = damaged(references, draw.choice([0.05, 0.6], len(references)), draw)
    runs = [given[::-1], given[:500]]
    own = [Measured(rows, choose_scores([]), resamples=0) for rows in runs]
    whole = measure_constant_error(runs, own)
    monkeypatch.setattr(constant_error, "MOST", 333)
    parts = measure_constant_error(runs, own)
    for rows, one, several in zip(own, whole, parts, strict=True):
        lengths = [len(references[number]) for number in rows.ids]
        np.testing.assert_array_equal(several.tables["bleu"][:, 9], lengths)
        assert several.overall("bleu") == pytest.approx(rows.overall("bleu"), abs=2)
        assert not np.array_equal(several.tables["bleu"], one.tables["bleu"])
        assert np.corrcoef(several.tables["bleu"][:, 0], one.tables["bleu"][:, 0])[0, 1] > 0.9
    # Neighbouring sentences, which are in different parts, have independent errors.
    correct = parts[0].tables["bleu"][:, 0] / list(map(len, references))
    assert abs(np.corrcoef(correct[:-1], correct[1:])[0, 1]) < 0.1


def test_simulated_systems_have_the_statistics_of_their_records(references):
    """Scores of tokens have the mean statistics of the simulated records; scores of text and models have none."""
    draw = np.random.default_rng(4)
    given = damaged(references[:60], np.full(60, 0.3), draw)
    scores = [*choose_scores([*REGISTERED]), Words()]
    [found] = measure_constant_error([given], [Measured(given, scores, resamples=0)])
    simulated = records_of(given, DRAWS)
    for score in (*scores, NO_UNK):
        tables = [score.table(rows, compute=not score.slow) for rows in simulated]
        np.testing.assert_array_equal(found.tables[score.key], np.mean(tables, axis=0))
    assert np.isfinite(found.tables["words"]).all()
    assert np.isnan(found.tables["chrf"]).all()


def test_a_part_without_references_has_no_matches(references, monkeypatch):
    """Every second sentence has no reference, so one of two parts has none at all."""
    some = [words if n % 2 else [] for n, words in enumerate(references[:400])]
    given = damaged(some, np.full(400, 0.3), np.random.default_rng(5))
    own = [Measured(given, choose_scores([]), resamples=0)]
    monkeypatch.setattr(constant_error, "MOST", 200)
    [found] = measure_constant_error([given], own)
    assert not found.tables["bleu"][::2].any()
    assert found.overall("bleu") == pytest.approx(own[0].overall("bleu"), abs=3)
