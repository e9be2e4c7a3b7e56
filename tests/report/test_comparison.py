"""Comparisons of several runs: common sentences, buckets, significance and external systems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt.evaluation.scores import choose_scores
from nmt.report import notes, set_comparison
from nmt.report.comparison import Comparison, compare_finished
from nmt.report.runs import FinishedRun, find_runs, read_run
from tests.helpers.bleu import bleu_by_hand
from tests.helpers.run_folders import make_run


def bleu_of(
    comparison: Comparison, run: str, subset: str = "all", first: int | None = None
) -> float:
    frame = comparison.scores.query("set == 'newstest'")
    bucket = frame["from"].isna() if first is None else frame["from"] == first
    rows = frame[bucket & (frame["run"] == run) & (frame["score"] == "bleu")]
    return float(rows[rows["subset"] == subset]["value"].item())


def narrow(run: FinishedRun, step: int) -> FinishedRun:
    """Returns a copy of the run with a shortlist that lacks words of every `step`-th sentence."""
    rows = [dict(row) for row in run.translations("newstest")]
    for row in rows[::step]:
        row |= {"no_unk": False, "bleu_stats_no_unk": None}
    return replace(run, label=f"narrow {step}", records={"newstest": rows})


def test_the_frame_has_the_scores_of_every_run(comparison: Comparison, runs: list) -> None:
    assert comparison.sets == ["newstest", "mine"]
    for run in runs:
        statistics = np.array([row["bleu_stats"] for row in run.translations("newstest")])
        assert bleu_of(comparison, run.label) == pytest.approx(bleu_by_hand(statistics.sum(0)))
    assert set(comparison.scores["run"]) == {run.label for run in runs}


def test_no_unk_scores_use_common_sentences(tmp_path: Path) -> None:
    wide = read_run(make_run(tmp_path / "wide", pairs=90, kept=2))
    found = compare_finished([wide, narrow(wide, 2), narrow(wide, 5)], resamples=0)
    rows = [
        row
        for n, row in enumerate(wide.translations("newstest"))
        if row["no_unk"] and n % 2 and n % 5
    ]
    wanted = bleu_by_hand(np.sum([row["bleu_stats_no_unk"] for row in rows], axis=0))
    for run in found.runs:
        assert bleu_of(found, run.label, "no_unk") == pytest.approx(wanted)
    assert f"No UNK: {len(rows)} sentences covered by the shortlists" in found.notes["newstest"][0]


def test_pairs_are_tested_on_common_sentences(comparison: Comparison, runs: list) -> None:
    frame = comparison.differences.query("set == 'newstest'")
    tests = frame.query("score == 'bleu' and bucket == 'all'").set_index(["a", "b"])
    assert len(tests) == 6
    first = runs[0].label
    second = runs[2].label
    row = tests.loc[first, second]
    assert row["delta"] == pytest.approx(bleu_of(comparison, first) - bleu_of(comparison, second))
    assert row["low"] < row["delta"] < row["high"] < 0
    assert row["p"] < 0.05
    assert set(frame.query("score == 'alignment_error_rate'")["a"]) == {second}


@pytest.mark.slow
def test_missing_scores_are_computed_on_request(tmp_path: Path) -> None:
    make_run(tmp_path / "0", seed=1, pairs=20, kept=2)
    make_run(tmp_path / "1", seed=2, pairs=20, kept=2)
    runs = find_runs([tmp_path])
    found = compare_finished(runs, choose_scores(["bleu", "ter"]), resamples=10)
    assert set(found.differences["score"]) == {"bleu", "ter"}
    assert len(found.whole("newstest").query("score == 'ter'")) == 2


@pytest.mark.slow
def test_only_the_best_of_many_runs_are_compared_in_pairs(
    runs: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (set_comparison, notes):
        monkeypatch.setattr(module, "MAX_PAIRED", 2)
    found = compare_finished(runs, resamples=10)
    assert {run.results["model"] for run in found.paired("newstest")} == {"RNNsearch"}
    assert (
        len(found.differences.query("set == 'newstest' and bucket == 'all' and score == 'bleu'"))
        == 1
    )
    assert any("Of 4 runs, the 2" in note for note in found.notes["newstest"])


def test_the_set_with_the_fullest_buckets_comes_first(runs: list) -> None:
    table = runs[0].scores.copy()
    table.loc[(table["set"] == "mine"), "sentences"] *= 10
    assert compare_finished([replace(runs[0], scores=table)], resamples=0).sets == [
        "mine",
        "newstest",
    ]


def test_runs_with_other_buckets_keep_their_own(tmp_path: Path) -> None:
    """The table has the buckets of both runs, but each run has scores only in its own buckets."""
    wide = read_run(make_run(tmp_path / "run", pairs=90, kept=2))
    frame = wide.scores[wide.scores["from"].isna() | (wide.scores["from"] < 11)]
    other = replace(wide, label="other", scores=frame)
    buckets = compare_finished([wide, other], resamples=0).by_length("newstest")
    counts = buckets.groupby(["run", "key", "bucket"]).size()
    assert (counts == 1).all()
    assert set(counts["other", "bleu"].index) == {"1-10"}
