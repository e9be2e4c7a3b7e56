"""`import nmt`: public names, configurations, and data frames of runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import nmt
from nmt.config.loading import load
from nmt.evaluation.scores_csv import COLUMNS
from tests.helpers import ROOT
from tests.helpers.run_folders import make_run


def test_all_names_can_be_imported():
    for name in nmt.__all__:
        assert callable(getattr(nmt, name)) or name == "__version__"
    with pytest.raises(AttributeError, match="'nmt' has no attribute 'translte'"):
        _ = nmt.translte


@pytest.mark.slow
def test_commands_do_not_hide_functions():
    code = "import nmt.compare, nmt; nmt.compare(['missing'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "InputError: runs: no finished run" in done.stderr, done.stderr


def test_import_nmt_loads_no_heavy_library():
    code = "import sys, nmt; print('pandas' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]


def test_compose_equals_the_command(composer, tmp_path):
    typed = ("+experiment=rnnsearch30", "regime=tiny", "optimizer.lr=0.002")
    config = nmt.configure(*typed)
    assert config == load(composer(*typed))
    assert (config.data.max_length, config.optimizer.lr) == (30, 0.002)
    with pytest.raises(nmt.InputError, match=r"optimiser\.lr: no such key"):
        nmt.configure("optimiser.lr=1")
    (tmp_path / "optimizer").mkdir()
    (tmp_path / "optimizer/slow.yaml").write_text("defaults:\n  - adam\n\nlr: 0.0001\n")
    config = nmt.configure("optimizer=slow", searchpath=[f"file://{tmp_path}"])
    assert config.optimizer.lr == 0.0001


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "search", pairs=40, kept=2)
    make_run(folder / "encdec", model="RNNencdec", pairs=40, kept=2)
    return folder


def test_scores_returns_one_frame(runs: Path) -> None:
    frame = nmt.scores([runs])
    assert list(frame) == ["run", *COLUMNS]
    written = pd.read_csv(runs / "search/scores.csv")
    assert frame[frame["run"] == "RNNsearch-50"]["value"].tolist() == written["value"].tolist()


def test_compare_tests_differences(runs: Path) -> None:
    comparison = nmt.compare([str(runs / "*")], resamples=20, scores=["bleu"])
    figure = nmt.plot_by_length(comparison, "newstest")
    assert figure.axes[0].get_title() == "BLEU, all"
    whole = comparison.differences.query("bucket == 'all'")
    assert whole[["a", "b", "score"]].to_numpy().tolist() == [
        ["RNNencdec-50", "RNNsearch-50", "bleu"]
    ]
    table = comparison.whole("newstest").query("key == 'bleu'").set_index("run")["value"]
    assert whole["delta"].item() == pytest.approx(table["RNNencdec-50"] - table["RNNsearch-50"])
    assert nmt.compare([runs / "search"], resamples=20).differences.empty


def test_refuses_folders_without_runs(tmp_path: Path) -> None:
    for function, folder in ((nmt.scores, [tmp_path]), (nmt.compare, str(tmp_path))):
        with pytest.raises(nmt.InputError, match="no finished run"):
            function(folder)
