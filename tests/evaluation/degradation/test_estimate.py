import math

import numpy as np
import pytest

from nmt.evaluation.degradation import Group, compare_degradation, curves, estimate
from nmt.evaluation.degradation.estimate import combined
from nmt.evaluation.resampling import SEED
from nmt.evaluation.scores import REGISTERED
from nmt.evaluation.student import t_probability, t_quantile
from tests.evaluation.degradation.simulated import simulated_run

BLEU, NLL = REGISTERED["bleu"], REGISTERED["nll_per_word"]
R = 200


@pytest.fixture(scope="module")
def runs():
    """Three seeds of two systems on 900 sentences of 3 to 70 words; the second falls beyond 50."""
    flat = {f"flat {seed}": simulated_run(900, seed=seed) for seed in (1, 2, 3)}
    falls = {f"falls {seed}": simulated_run(900, seed=seed, fall=0.005) for seed in (4, 5, 6)}
    return flat | falls


def test_slope_is_that_of_the_scores_of_resampled_corpora(runs):
    """One resample by hand: drawn, cut into buckets, summed, scored, fitted."""
    rows = runs["falls 4"]
    found = estimate(Group([curves({"a": rows}, [BLEU], resamples=R)["bleu"]["a"]], 50), "slope")
    lengths = np.array([row["length"] for row in rows])
    statistics = np.array([row["bleu_stats"] for row in rows])
    drawn = np.random.default_rng(SEED).integers(900, size=(R, 900))
    for picks, slope in [(np.arange(900), found.score), (drawn[17], found.resampled[17])]:
        x, y, w = [], [], []
        for first in range(1, 70, 5):
            inside = [n for n in picks if first <= lengths[n] <= first + 4]
            x.append(lengths[inside].mean())
            y.append(BLEU.combine(statistics[inside].sum(0)))
            w.append(len(inside))
        assert slope == pytest.approx(10 * np.polyfit(x, y, 1, w=np.sqrt(w))[0])
    assert found.sentences == 900


def test_of_two_runs_the_same_sentences_are_drawn(runs):
    both = curves({"a": runs["flat 1"], "b": runs["falls 4"]}, [BLEU, NLL], resamples=R)["bleu"]
    a, b = (Group([both[name]], 50) for name in "ab")
    for what, part in [("slope", "all"), ("slope", "beyond_cap"), ("score", "to_cap")]:
        difference = estimate(a, what, part, against=b)
        one, other = estimate(a, what, part), estimate(b, what, part)
        np.testing.assert_allclose(difference.resampled, one.resampled - other.resampled)
        assert difference.score == pytest.approx(one.score - other.score)
    assert estimate(a, "slope", "beyond_cap", against=b).p() == 2 / (R + 1)
    with pytest.raises(ValueError, match="different sentences"):
        estimate(a, "slope", against=Group([curves({"b": runs["falls 4"]}, [BLEU])["bleu"]["b"]]))


def test_a_corpus_score_of_a_range_is_that_of_its_sentences(runs):
    rows = runs["flat 2"]
    run = Group([curves({"a": rows}, [BLEU], resamples=0)["bleu"]["a"]], 45)
    for part, inside in [("all", lambda n: True), ("to_cap", lambda n: n <= 45)]:
        statistics = np.array([row["bleu_stats"] for row in rows if inside(row["length"])])
        found = estimate(run, "score", part)
        assert found.score == pytest.approx(float(BLEU.combine(statistics.sum(0))))
        assert found.interval() == (None, None)
        assert found.p() is None


def test_caps_that_differ_leave_what_both_or_neither_have_seen(runs):
    both = curves({"a": runs["flat 1"], "b": runs["falls 4"]}, [BLEU], resamples=R)["bleu"]
    a, b = Group([both["a"]], 30), Group([both["b"]], 50)
    for part, cap in [("to_cap", 30), ("beyond_cap", 50)]:
        same = estimate(Group([both["a"]], cap), "slope", part, against=Group([both["b"]], cap))
        assert estimate(a, "slope", part, against=b).score == pytest.approx(same.score)
    assert estimate(a, "slope", "to_cap", against=Group([both["b"]])) is None


def test_seeds_enter_by_a_t_interval():
    """Seeds that differ where sentences do not: the textbook's interval of a mean of 4."""
    values = np.array([3.0, 5.0, 4.0, 8.0])
    found = combined([np.repeat(values[:, None], 51, axis=1)], 100)
    width = 3.182446 * values.std(ddof=1) / 2
    assert found.interval() == pytest.approx((5 - width, 5 + width), abs=1e-5)
    assert (found.of, found.seeds, found.df) == ("seeds", 4, 3)
    assert found.p(5 - width) == pytest.approx(0.05, abs=1e-5)
    assert combined([np.repeat(values[:2, None], 51, axis=1)], 100).of == "runs"


def test_the_same_models_are_compared_one_by_one(runs):
    """What seeds differ by cancels where both groups are of the same trained models."""
    found = curves(runs, [BLEU], resamples=R)["bleu"]
    seeds = [found[f"{name} 1"] for name in ("flat",)] + [found["falls 4"], found["falls 5"]]
    a = Group(seeds, 50, ["x", "y", "z"])
    b = Group([seeds[2], seeds[0], seeds[1]], 50, ["z", "x", "y"])
    same = estimate(a, "score", against=b)
    assert (same.score, same.error, same.seeds, same.of) == (pytest.approx(0), 0.0, 3, "seeds")
    for models in ([], ["z", "x", "w"], ["z", "x", "x"], ["z", "x", None]):
        assert estimate(a, "score", against=Group(b.curves, 50, models)).error > 1


def test_what_a_seed_makes_of_a_sentence_counts_once():
    """Runs whose errors are their own: the variance of the mean is that between the runs."""
    draw = np.random.default_rng(8)
    own = draw.normal(0, 1, (5, 1))
    found = combined([np.concatenate([own, own + draw.normal(0, 1, (5, 4000))], axis=1)], 100)
    assert found.error == pytest.approx(own.std(ddof=1) / math.sqrt(5), rel=0.05)
    shared = combined([np.concatenate([own, own + draw.normal(0, 3, 4000)], axis=1)], 100)
    assert shared.error == pytest.approx(math.sqrt(own.var(ddof=1) / 5 + 9), rel=0.05)
    assert shared.df > 100


def test_equivalence_is_two_tests_and_no_fall_one():
    draw = np.random.default_rng(9)
    found = combined([np.concatenate([[0.2], draw.normal(0.2, 0.1, 5000)])[None]], 100)
    low, high = found.interval(0.9)
    assert found.equivalence(high + 0.01)["equivalent"]
    assert not found.equivalence(high - 0.01)["equivalent"]
    assert found.no_fall(0.05)["holds"]
    assert not found.no_fall(0.3, higher_is_better=False)["holds"]
    assert found.equivalence(0.5)["low"] == low
    assert found.p(0.2) > 0.9 > found.p()


def test_equivalence_of_single_runs_takes_the_more_careful_of_two_tests(runs):
    """The share of resamples beyond a margin, and the t test of their standard error."""
    draw = np.random.default_rng(10)
    values = np.concatenate([[0.2], draw.normal(0.2, 0.1, 5000)])[None]
    margin = 0.2 + 1.66 * values[0, 1:].std(ddof=1)
    many, few = combined([values], 10_000), combined([values], 10_000, 21)
    for found, df in ((many, 9_999), (few, 20)):
        error = found.resampled.std(ddof=1)
        share = ((found.resampled >= margin).sum() + 1) / 5001
        p = max(share, t_probability((0.2 - margin) / error, df))
        assert found.equivalence(margin)["p"] == pytest.approx(p)
        assert found.no_fall(margin, higher_is_better=False)["p"] == pytest.approx(p)
        assert found.p(margin) == pytest.approx(2 * share)
    assert many.equivalence(margin)["equivalent"]
    assert not few.equivalence(margin)["equivalent"]
    run = Group([curves({"a": runs["flat 1"]}, [BLEU], resamples=R)["bleu"]["a"]])
    smallest = run.curves[0].text.sentences[run.curves[0].text.fitted].min()
    assert estimate(run, "slope").df == smallest - 1
    assert estimate(run, "score").df == estimate(run, "score").sentences - 1


def test_t_distribution_has_the_values_of_the_tables():
    for df, probability, value in [
        (1, 0.975, 12.7062),
        (2, 0.95, 2.9200),
        (2, 0.975, 4.3027),
        (9, 0.975, 2.2622),
        (30, 0.995, 2.7500),
        (120, 0.975, 1.9799),
    ]:
        assert t_quantile(probability, df) == pytest.approx(value, abs=5e-5)
        assert t_probability(-value, df) == pytest.approx(1 - probability, abs=1e-5)


def test_a_quantile_has_its_probability_and_is_that_of_bisection():
    for probability, df in [(0.975, 2.0), (0.95, 3.7), (0.995, 41.5), (0.1, 900.0), (0.975, 1.0)]:
        low, high = -1.0, 1.0
        while t_probability(low, df) > probability:
            low *= 2
        while t_probability(high, df) < probability:
            high *= 2
        while high - low > 1e-9 * max(1.0, abs(high)):
            middle = (low + high) / 2
            low, high = (middle, high) if t_probability(middle, df) < probability else (low, middle)
        quantile = t_quantile(probability, df)
        assert t_probability(quantile, df) == pytest.approx(probability, rel=0, abs=1e-12)
        assert quantile == pytest.approx((low + high) / 2, rel=1e-9)  # which is no nearer


def test_scores_that_memory_does_not_hold_at_once_are_the_same(runs, monkeypatch):
    scores = [BLEU, REGISTERED["length_ratio"], REGISTERED["brevity_penalty"]]
    together = curves(runs, scores, resamples=20)
    monkeypatch.setattr("nmt.evaluation.degradation.curve.MOST_SUMS", 1)
    apart = curves(runs, scores, resamples=20)
    assert list(apart) == list(together) == [score.key for score in scores]
    for key, by_run in together.items():
        for label, curve in by_run.items():
            np.testing.assert_array_equal(apart[key][label].sums, curve.sums)
            assert apart[key][label].text is apart["bleu"][label].text


def test_groups_differ_where_one_falls(runs):
    measured = curves(runs, [BLEU], resamples=R)["bleu"]
    flat, falls = (
        Group([curve for name, curve in measured.items() if name.startswith(kind)], 50)
        for kind in ("flat", "falls")
    )
    found = compare_degradation(flat, falls)
    assert found["beyond_cap"]["slope"]["p"] < 0.01 < found["to_cap"]["slope"]["p"]
    assert found["beyond_cap"]["slope"]["of"] == "seeds"
