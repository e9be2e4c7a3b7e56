"""The sweeps of W&B that are ready to be started: what an agent would run, as W&B itself makes it."""

from __future__ import annotations

import itertools

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser

from nmt.config.validation import load
from nmt.evaluation.scores import REGISTERED
from nmt.report.loggers import summary_of
from nmt.report.runs import FinishedRun
from tests.helpers import ROOT

FILES = sorted((ROOT / "sweeps").glob("*.yaml"))


def commands(sweep):
    """The command line of every run of a grid, by W&B's own rules for its agents."""
    utils = pytest.importorskip("wandb.sdk.launch.sweeps.utils")
    names = list(sweep["parameters"])
    for values in itertools.product(*(each["values"] for each in sweep["parameters"].values())):
        args = {name: {"value": value} for name, value in zip(names, values, strict=True)}
        macros = utils.create_sweep_command_args({"args": args})
        macros |= {"env": ["/usr/bin/env"], "interpreter": ["python"]}
        words = []
        for word in utils.create_sweep_command(list(sweep["command"])):
            whole = word.startswith("${") and word.endswith("}")
            words += macros[word[2:-1]] if whole else [word]
        yield dict(zip(names, values, strict=True)), words


def test_there_are_some():
    assert "lengths" in {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_run_can_be_composed_and_is_another_one(file, composer, monkeypatch):
    monkeypatch.setenv("WANDB_RUN_ID", "1a2b")
    sweep = yaml.safe_load(file.read_text())
    assert sweep["method"] == "grid"
    assert (ROOT / sweep["program"]).is_file()
    seen = []
    for values, words in commands(sweep):
        assert words[:4] == ["/usr/bin/env", "python", "-m", "nmt.train"]
        typed = words[4:]
        for override in OverridesParser.create().parse_overrides(typed):
            assert not override.is_sweep_override()
        assert "hydra.run.dir=outputs/wandb/${oc.env:WANDB_RUN_ID}" in typed
        config = load(composer(*(word for word in typed if not word.startswith("hydra."))))
        assert config.resume == "auto"
        assert config.experiment == values["+experiment"]
        assert config.seed == values["seed"]
        seen.append((config.model._target_, config.data.max_length, config.seed))
    assert len(seen) == len(set(seen)) == 12
    assert {length for _, length, _ in seen} == {30, 50}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_metric_is_a_number_in_the_summary(file):
    """And the goal is the way in which the score is better."""

    metric = yaml.safe_load(file.read_text())["metric"]
    valid = {"update": 12.0, "bleu": 20.5, "nll_per_word": 1.5}
    assert summary_of(FinishedRun("a", {"valid": valid}))[metric["name"]] == 20.5
    score = REGISTERED[metric["name"].partition("/")[2]]
    assert metric["goal"] == ("maximize" if score.higher_is_better else "minimize")
