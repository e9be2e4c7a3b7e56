"""Run folders as frames: the numbers are those of results.json and of the comparison."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import nmt
from nmt.evaluation.buckets import bucket_name
from nmt.report.finding import find_runs
from tests.helpers.run_folders import make_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "search", pairs=40, kept=2)
    make_run(folder / "encdec", model="RNNencdec", pairs=40, kept=2)
    return folder


def test_every_score_of_a_run_has_a_row(runs):
    content = json.loads((runs / "search/results.json").read_text())["test"]["newstest"]
    frame = nmt.read_results(runs / "search")
    assert set(frame["run"]) == {"RNNsearch-50"}
    whole = frame[frame["from"].isna()].set_index("score")
    assert whole.loc["bleu", "value"] == content["bleu"]["all"]["score"]
    assert whole.loc["bleu", "high"] == content["bleu"]["all"]["high"]
    assert whole.loc["bleu", "sentences"] == 40
    assert whole.loc["bleu_no_unk", "sentences"] == content["bleu"]["no_unk"]["sentences"]
    rate = content["alignment"]["alignment_error_rate"]["score"]
    assert whole.loc["alignment_error_rate", "value"] == rate
    buckets = frame[(frame["score"] == "bleu") & frame["from"].notna()]
    expected = content["by_length"]
    assert buckets["from"].tolist() == [row["from"] for row in expected]
    assert buckets["value"].tolist() == [row["score"] for row in expected]
    assert buckets["sentences"].tolist() == [row["sentences"] for row in expected]
    assert buckets["bucket"].tolist() == [bucket_name(row) for row in expected]
    assert set(whole["bucket"]) == {"all"}
    assert buckets["to"].isna().tolist() == [row["to"] is None for row in expected]


def test_runs_are_compared_in_one_frame(runs):
    frame = nmt.compare_runs([runs / "search", runs / "encdec"], resamples=10)
    assert list(frame.columns) == list(nmt.read_results(runs / "search").columns)
    table = frame[frame["from"].isna()].pivot(index="run", columns="score", values="value")
    for run in find_runs([str(runs / "*")]).runs:
        bleu = run.results["test"]["newstest"]["bleu"]["all"]["score"]
        assert table.loc[run.label, "bleu"] == bleu
    shared = frame[(frame["score"] == "bleu_no_unk") & frame["from"].isna()]
    assert shared["sentences"].nunique() == 1
    assert "alignment_error_rate" in table
    assert pd.isna(table.loc["RNNencdec-50", "alignment_error_rate"])


def test_differences_are_tested(runs):
    frame = nmt.differences([str(runs / "*")], resamples=np.int64(20), scores=["bleu"])
    whole = frame[frame["bucket"] == "all"]
    assert whole[["a", "b", "score"]].to_numpy().tolist() == [
        ["RNNencdec-50", "RNNsearch-50", "bleu"]
    ]
    delta = (
        nmt.read_results(runs / "encdec")["value"][0]
        - nmt.read_results(runs / "search")["value"][0]
    )
    assert whole["delta"].item() == pytest.approx(delta)
    assert whole["low"].item() < whole["delta"].item() < whole["high"].item()
    assert 0 < whole["p"].item() < 1
    of_one = nmt.differences([runs / "search"], resamples=20)
    assert of_one.empty
    assert list(of_one.columns) == list(frame.columns)


def test_differences_say_which_of_many_runs_they_are_of(runs, monkeypatch):
    monkeypatch.setattr("nmt.report.groups.MOST_PAIRED", 1)
    with pytest.warns(UserWarning, match="newstest: Of the 2 runs these are the 1 of the highest"):
        assert nmt.differences([str(runs / "*")], resamples=20).empty


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(nmt.InputError, match=r"no results\.json"):
        nmt.read_results(tmp_path)
    with pytest.raises(nmt.InputError, match="nothing matches"):
        nmt.compare_runs([tmp_path / "no*"])
    with pytest.raises(TypeError, match="runs: a list is expected"):
        nmt.compare_runs(str(tmp_path))
    with pytest.raises(nmt.InputError, match="resamples=1000000: must be at most 100000"):
        nmt.differences([tmp_path], resamples=1_000_000)
