"""Searches over configurations with Optuna, and with the agents of W&B sweeps."""

from __future__ import annotations

import itertools
import json
from importlib.util import find_spec

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

from nmt.config.loading import load
from nmt.evaluation.scores import REGISTERED
from nmt.report.comparison import compare_finished
from nmt.report.logged_values import summary_of
from nmt.report.runs import FinishedRun
from tests.helpers import ROOT
from tests.helpers.processes import TINY, run

SWEEP = yaml.safe_load((ROOT / "sweeps/lengths.yaml").read_text())


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
    scores = [content["valid"]["nll_per_word"] for content in results]
    assert best["best_value"] == pytest.approx(min(scores))
    rate = results[scores.index(min(scores))]["config"]["optimizer"]["lr"]
    assert best["best_params"]["optimizer.lr"] == pytest.approx(rate)
    assert (tmp_path / "sweep/comparison.html").is_file()
    assert "to go on" not in ended.err  # the command would start another search


@pytest.mark.slow
def test_wandb_agent_resumes_a_finished_run(tmp_path):
    """Starts the same run of sweeps/lengths.yaml twice, offline; at the second start it is already finished."""
    chosen = [f"{key}={entry['values'][0]}" for key, entry in SWEEP["parameters"].items()]
    typed = [word for word in SWEEP["command"] if "=" in word and "offline" not in word]
    env = {"WANDB_SWEEP_ID": "s", "WANDB_RUN_ID": "abc"}
    for _ in range(2):
        ended = run("train", *typed, *chosen, *TINY, cwd=tmp_path, env=env)
        assert ended.code == 0, ended.err
    content = json.loads((tmp_path / "outputs/wandb/abc/results.json").read_text())
    assert content["experiment"] == SWEEP["parameters"]["+experiment"]["values"][0]


def agent_commands():
    """Yields the values and the command line of every run in the grid, as a W&B agent builds them."""
    utils = pytest.importorskip("wandb.sdk.launch.sweeps.utils")
    names = list(SWEEP["parameters"])
    for values in itertools.product(*(each["values"] for each in SWEEP["parameters"].values())):
        args = {name: {"value": value} for name, value in zip(names, values, strict=True)}
        macros = utils.create_sweep_command_args({"args": args})
        macros |= {"env": ["/usr/bin/env"], "interpreter": ["python"]}
        words = []
        for word in utils.create_sweep_command(list(SWEEP["command"])):
            whole = word.startswith("${") and word.endswith("}")
            words += macros[word[2:-1]] if whole else [word]
        yield values, words


@pytest.mark.slow
def test_sweep_runs_compose_and_differ(composer, monkeypatch):
    monkeypatch.setenv("WANDB_RUN_ID", "1a2b")
    assert SWEEP["method"] == "grid"
    assert (ROOT / SWEEP["program"]).is_file()
    first = SWEEP["parameters"]["seed"]["values"][0]
    seen = set()
    typed_words = set()
    for (experiment, seed), words in agent_commands():
        assert words[:4] == ["/usr/bin/env", "python", "-m", "nmt.train"]
        typed = words[4:]
        for override in OverridesParser.create().parse_overrides(typed):
            assert not override.is_sweep_override()
        assert "hydra.run.dir=outputs/wandb/${oc.env:WANDB_RUN_ID}" in typed
        assert f"seed={seed}" in typed
        typed_words.add(tuple(typed))
        if seed == first:
            config = load(composer(*(word for word in typed if not word.startswith("hydra."))))
            assert (config.resume, config.experiment, config.seed) == ("auto", experiment, seed)
            seen.add((config.model._target_, config.data.max_length))
    assert (len(typed_words), len(seen)) == (12, 4)
    assert {length for _, length in seen} == {30, 50}


def test_sweep_metric_is_in_the_summary():
    metric = SWEEP["metric"]
    valid = {"update": 12.0, "bleu": 20.5, "nll_per_word": 1.5}
    assert (
        summary_of(compare_finished([FinishedRun("a", {"valid": valid})]))[metric["name"]] == 20.5
    )
    score = REGISTERED[metric["name"].partition("/")[2]]
    assert metric["goal"] == ("maximize" if score.higher_is_better else "minimize")
