from dataclasses import replace

import numpy as np
import pytest

from nmt.evaluation.bleu import bleu
from nmt.evaluation.scores import sacrebleu_score
from nmt.report.comparison import SetComparison, bucket_name, compare_set, measure_decay
from nmt.report.page.overview import overview
from nmt.report.runs import Run
from nmt.report.tables import lengths_table, significance_table


def bucket(first: int, last: int | None, score: float, sentences: int, mean: float) -> dict:
    return {"from": first, "to": last, "score": score, "sentences": sentences, "mean_length": mean}


def test_decay_is_a_weighted_line_through_the_buckets() -> None:
    rows = [bucket(1, 10, 30, 7, 6), bucket(11, 20, 34, 20, 15), bucket(21, None, 12, 3, 48)]
    decay = measure_decay(rows)
    assert (bucket_name(decay.best), bucket_name(decay.last)) == ("11–20", "21+")
    assert decay.drop == 22
    slope = np.polyfit([6, 15, 48], [30, 34, 12], 1, w=np.sqrt([7, 20, 3]))[0]
    assert decay.slope == pytest.approx(10 * slope)
    assert measure_decay(rows[:1]).slope is None


def test_significance_covers_every_pair_on_the_set_and_in_each_bucket(
    comparison: SetComparison,
) -> None:
    pairs = {(row["a"], row["b"]) for row in comparison.significance}
    assert len(pairs) == 6
    buckets = len(comparison.lengths["RNNsearch-50 seed 1"])
    assert len(comparison.significance) == 6 * (1 + buckets)
    between = [row for row in comparison.significance if row["bucket"] == "all"]
    models = {(row["a"], row["b"]): row["p_corrected"] for row in between}
    assert models["RNNencdec-50 seed 1", "RNNsearch-50 seed 1"] < 0.01
    randomised = {(row["a"], row["b"]): row["p_randomised"] for row in between}
    assert randomised["RNNencdec-50 seed 1", "RNNsearch-50 seed 1"] < 0.01
    inside = [row for row in comparison.significance if row["bucket"] != "all"]
    assert all(row["p_randomised"] <= row["p_randomised_corrected"] <= 1 for row in inside)
    assert any(row["p_randomised"] != row["p"] for row in comparison.significance)


def test_buckets_gain_mean_length_sacrebleu_and_error_rate(
    comparison: SetComparison, runs: list[Run]
) -> None:
    row = comparison.lengths["RNNsearch-50 seed 2"][1]
    inside = [r for r in runs[3].translations("newstest") if 11 <= r["length"] <= 20]
    assert row["mean_length"] == pytest.approx(np.mean([r["length"] for r in inside]))
    texts = [r["detokenised"] for r in inside], [r["raw_reference"] for r in inside]
    assert row["sacrebleu"] == pytest.approx(sacrebleu_score(*texts)["score"], abs=1e-9)
    assert row["error_rate"]["error_rate"] == pytest.approx(0.08 + 11 / 400)
    assert "error_rate" not in comparison.lengths["RNNencdec-50 seed 1"][1]


def test_equal_subsets_keep_the_measured_no_unk_scores(
    comparison: SetComparison, runs: list[Run]
) -> None:
    assert not comparison.no_unk_shared
    assert comparison.no_unk_pairs == 100
    measured = runs[0].results["test"]["newstest"]["bleu"]["no_unk"]
    assert comparison.scores[runs[0].label]["bleu"]["no_unk"] == measured


def test_other_subsets_are_compared_on_what_they_share(runs: list[Run]) -> None:
    rows = [dict(row) for row in runs[1].translations("newstest")]
    for row in rows:
        if row["id"] % 2:
            row["no_unk"] = False
            row.pop("hypothesis_no_unk", None)
            row.pop("bleu_stats_no_unk", None)
    narrow = replace(runs[1], lines={("translations", "newstest"): rows})
    both = compare_set([runs[0], narrow], "newstest", resamples=50)
    assert both.no_unk_shared
    assert both.no_unk_pairs == 50
    shared = [
        row["bleu_stats_no_unk"]
        for row in runs[0].translations("newstest")
        if row["id"] % 3 > 0 and row["id"] % 2 == 0
    ]
    score = both.scores[runs[0].label]["bleu"]["no_unk"]
    assert score["sentences"] == 50
    assert score["score"] == pytest.approx(bleu(np.sum(shared, axis=0)))
    assert score["low"] < score["score"] < score["high"]


def test_intervals_are_of_the_runs_own_confidence(runs: list[Run]) -> None:
    def saying(run: Run, confidence: float) -> Run:
        config = {**run.config, "evaluation": {"confidence": confidence}}
        return replace(run, results={**run.results, "config": config})

    rows = [dict(row) for row in runs[1].translations("newstest")]
    for row in rows[::2]:
        row |= {"no_unk": False, "bleu_stats_no_unk": None}
    narrow = replace(runs[1], lines={("translations", "newstest"): rows})
    wide = compare_set([runs[0], narrow], "newstest", resamples=200)
    both = [saying(runs[0], 0.5), saying(narrow, 0.8)]
    found = compare_set(both, "newstest", resamples=200)
    label = runs[0].label
    ends = [one.scores[label]["bleu"]["no_unk"] for one in (wide, found)]
    assert ends[0]["high"] - ends[0]["low"] > 2 * (ends[1]["high"] - ends[1]["low"])
    assert found.confidence == {label: 0.5, narrow.label: 0.8}
    assert "50 %/80 % interval" in lengths_table(found).notes[0]
    assert significance_table(found).notes[0].startswith("80 % intervals")
    widths = [one.significance[0]["high"] - one.significance[0]["low"] for one in (wide, found)]
    assert 1.3 < widths[0] / widths[1] < 1.8  # 1.96 and 1.28 standard errors either side
    page = overview(both, [found])["sets"]["newstest"]
    assert page["confidence"] == {label: "50 %", narrow.label: "80 %"}
    assert page["tested"] == "80 %"


def test_outside_systems_narrow_no_subset(runs: list[Run]) -> None:
    rows = [
        {key: value for key, value in row.items() if key != "no_unk"}
        for row in runs[1].translations("newstest")
    ]
    results = {"test": {"newstest": runs[1].results["test"]["newstest"]}}
    outside = Run("Moses", results, lines={("translations", "newstest"): rows})
    assert compare_set([runs[0], outside], "newstest", resamples=0).no_unk_pairs == 100


def test_runs_without_the_set_are_passed_over(runs: list[Run]) -> None:
    other = replace(runs[1], results={**runs[1].results, "test": {}})
    alone = compare_set([runs[0], other], "mine", resamples=10)
    assert [run.label for run in alone.runs] == ["RNNencdec-50 seed 1"]
    assert alone.significance == []
