"""Searches for hyperparameters: Optuna in process, and the arguments of an agent of W&B."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
import yaml

from tests.helpers import ROOT
from tests.helpers.processes import TINY, run


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("hydra_plugins.hydra_optuna_sweeper") is None, reason="the extra 'optuna' is missing"
)
def test_optuna_runs_each_trial_as_a_job(tmp_path):
    typed = ("hydra.sweeper.n_trials=2", "hydra.sweep.dir=sweep", "+experiment=rnnsearch50")
    ended = run("train", "-m", "hparams_search=optuna", *typed, *TINY, cwd=tmp_path)
    assert ended.code == 0, ended.err
    best = yaml.safe_load((tmp_path / "sweep/optimization_results.yaml").read_text())
    results = [json.loads((tmp_path / f"sweep/{n}/results.json").read_text()) for n in range(2)]
    scores = [found["valid"]["nll_per_word"] for found in results]
    assert best["best_value"] == pytest.approx(min(scores))
    rate = results[scores.index(min(scores))]["config"]["optimizer"]["lr"]
    assert best["best_params"]["optimizer.lr"] == pytest.approx(rate)
    assert (tmp_path / "sweep/comparison.html").is_file()


@pytest.mark.slow
def test_an_agent_of_wandb_runs_to_the_end_and_goes_on(tmp_path):
    """What an agent types for a run of sweeps/lengths.yaml, offline; handed out again, it is done."""
    sweep = yaml.safe_load((ROOT / "sweeps/lengths.yaml").read_text())
    chosen = [f"{key}={entry['values'][0]}" for key, entry in sweep["parameters"].items()]
    typed = [word for word in sweep["command"] if "=" in word and "offline" not in word]
    env = {"WANDB_SWEEP_ID": "s", "WANDB_RUN_ID": "abc"}
    for _ in range(2):
        ended = run("train", *typed, *chosen, *TINY, cwd=tmp_path, env=env)
        assert ended.code == 0, ended.err
    found = json.loads((tmp_path / "outputs/wandb/abc/results.json").read_text())
    assert found["experiment"] == sweep["parameters"]["+experiment"]["values"][0]
