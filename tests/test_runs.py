"""Run folders as frames, and their comparison."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import nmt
from nmt.evaluation.table import COLUMNS
from tests.helpers.run_folders import make_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "search", pairs=40, kept=2)
    make_run(folder / "encdec", model="RNNencdec", pairs=40, kept=2)
    return folder


def test_the_scores_of_runs_are_one_frame(runs: Path) -> None:
    frame = nmt.scores([runs])
    assert list(frame) == ["run", *COLUMNS]
    written = pd.read_csv(runs / "search/scores.csv")
    assert frame[frame["run"] == "RNNsearch-50"]["value"].tolist() == written["value"].tolist()


def test_differences_are_tested(runs: Path) -> None:
    found = nmt.compare([str(runs / "*")], resamples=20, scores=["bleu"])
    figure = nmt.plot_by_length(found, "newstest")
    assert figure.axes[0].get_ylabel() == "BLEU"
    whole = found.differences.query("bucket == 'all'")
    assert whole[["a", "b", "score"]].to_numpy().tolist() == [
        ["RNNencdec-50", "RNNsearch-50", "bleu"]
    ]
    table = found.whole("newstest").query("key == 'bleu'").set_index("run")["value"]
    assert whole["delta"].item() == pytest.approx(table["RNNencdec-50"] - table["RNNsearch-50"])
    assert nmt.compare([runs / "search"], resamples=20).differences.empty


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(nmt.InputError, match="no finished run"):
        nmt.scores([tmp_path])
    with pytest.raises(nmt.InputError, match="no finished run"):
        nmt.compare(str(tmp_path))
