"""The search for hyperparameters of docs/tuning.md, by Optuna, with trials of several devices too."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from tests.helpers import ROOT
from tests.helpers.documentation import commands
from tests.helpers.processes import TINY, run

needs_extra = pytest.mark.skipif(
    find_spec("hydra_plugins.hydra_optuna_sweeper") is None, reason="the extra 'optuna' is missing"
)


@pytest.mark.slow
@needs_extra
def test_what_the_page_shows_finds_the_best_trial_and_goes_on(tmp_path):
    import optuna

    [shown] = commands((ROOT / "docs/tuning.md").read_text())
    typed = [word for word in shown.words if "n_trials=" not in word]
    assert len(typed) == len(shown.words) - 1

    def tune(*more):
        return run("train", *typed, "hydra.sweeper.n_jobs=1", *TINY, *more, cwd=tmp_path)

    first = tune("hydra.sweeper.n_trials=2")
    assert first.code == 0, first.err
    ddp = ("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=2")
    again = tune("hydra.sweeper.n_trials=1", *ddp)
    assert again.code == 0, again.err
    study = optuna.load_study(study_name="lr", storage=f"sqlite:///{tmp_path}/lr.db")
    assert study.direction.name == "MINIMIZE"
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 3
    for number, trial in enumerate(study.trials):
        folder = tmp_path / "multirun/lr" / str(number)
        found = json.loads((folder / "results.json").read_text())
        assert found["valid"]["nll_per_word"] == pytest.approx(trial.value)
        assert json.loads((folder / ".hydra/return.json").read_text()) == trial.value
        assert found["config"]["optimizer"]["lr"] == pytest.approx(trial.params["optimizer.lr"])
        assert 1e-4 <= trial.params["optimizer.lr"] <= 1e-2
        assert found["config"]["model"]["dropout"] == pytest.approx(trial.params["model.dropout"])
        name = {"additive": "Additive", "dot": "Dot"}[trial.params["scoring"]]
        assert found["scoring"] == name
        assert found["train"]["devices"] == (2 if number == 2 else 1)
    assert len({trial.value for trial in study.trials}) == 3
    said = (tmp_path / "multirun/lr/optimization_results.yaml").read_text()
    assert f"best_value: {study.best_value}" in said
    assert (tmp_path / "multirun/lr/comparison.html").is_file()
