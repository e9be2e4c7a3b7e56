"""The W&B run of a logger: what it is told of W&B's own environment variables, its name, how it ends."""

from __future__ import annotations

import doctest
import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf

from nmt.config.overrides import apply_typed
from nmt.config.schema import to_containers
from nmt.config.validation import load
from nmt.run.start import _typed_for
from nmt.training import loggers, wandb_logger
from nmt.training.lightning import wandb_settings
from nmt.training.loggers import check_logger, logging_to, make_logger
from nmt.training.wandb_logger import ResumableWandbLogger, run_name
from nmt.utils.errors import InputError
from tests.run.test_resume import records

pytest.importorskip("wandb")

VARIABLES = {
    "WANDB_MODE": "disabled",
    "WANDB_PROJECT": "lengths",
    "WANDB_ENTITY": "team",
    "WANDB_NAME": "mine",
    "WANDB_RUN_GROUP": "first",
    "WANDB_TAGS": "v1.0, laptop",
    "WANDB_NOTES": 'a "note", and: more',
}


@pytest.fixture(autouse=True)
def without_wandbs_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def set_variables(monkeypatch):
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


def options(config):
    found = to_containers(load(config))["logger"]
    return {key: value for key, value in found.items() if key not in ("name", "log_checkpoints")}


def begun(folder: Path) -> tuple[dict[str, Any], list[int]]:
    """The one W&B run that a folder holds, and the exit codes that it ended with."""
    [file] = folder.glob("wandb/offline-run-*/run-*.wandb")
    found = records(file)
    [run] = [each["run"] for each in found if each["type"] == "run"]
    return run, [each["exit"]["exit_code"] for each in found if each["type"] == "exit"]


def test_without_variables_the_defaults_are_the_projects(composer):
    assert options(composer()) == {
        **{"mode": "offline", "project": "nmt", "entity": None, "run_name": None},
        **{"group": None, "tags": [], "notes": None},
    }


def test_variables_stand_for_keys_that_are_not_typed(composer, set_variables):
    assert options(composer()) == {
        **{"mode": "disabled", "project": "lengths", "entity": "team", "run_name": "mine"},
        **{"group": "first", "tags": ["v1.0", "laptop"], "notes": 'a "note", and: more'},
    }
    typed = {
        **{"mode": "online", "project": "p", "entity": "e", "run_name": "r", "group": "g"},
        **{"tags": ["t"], "notes": "n"},
    }
    words = [f"logger.{key}={value}" for key, value in typed.items() if key != "tags"]
    assert options(composer(*words, "logger.tags=[t]")) == typed
    assert make_logger(load(composer()), Path("unused")) is None  # WANDB_MODE=disabled


def test_a_resumed_run_keeps_what_it_was_started_with(composer, set_variables, monkeypatch):
    stored = OmegaConf.structured(load(composer()))  # as a checkpoint has it
    monkeypatch.setenv("WANDB_PROJECT", "other")
    typed = ["logger.mode=offline"]
    resumed = apply_typed(stored, composer(*typed), typed)
    assert (resumed.logger.project, resumed.logger.mode) == ("lengths", "offline")


@pytest.mark.parametrize(("value", "mode"), [("dryrun", "offline"), ("run", "online")])
def test_modes_of_earlier_versions_are_understood(composer, monkeypatch, value, mode):
    monkeypatch.setenv("WANDB_MODE", value)
    assert options(composer())["mode"] == mode


def test_other_modes_are_refused(check, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "loud")
    assert check() == (2, "nmt: logger.mode=loud: must be one of offline, online, disabled\n")


def test_an_empty_tag_is_refused_as_wandb_does(composer, monkeypatch):
    monkeypatch.setenv("WANDB_TAGS", "a,")
    with pytest.raises(InputError, match=r"logger\.tags=: must have 1 to 64 characters each"):
        check_logger(load(composer()).logger)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("logger.project=a/b", "logger.project=a/b: must have 1 to 128 characters, none of"),
        ("logger.project=''", "logger.project=: must have 1 to 128 characters, none of"),
        (f"logger.tags=[a,{'b' * 65}]", f"{'b' * 65}: must have 1 to 64 characters each"),
        (f"logger.run_name={'r' * 129}", "must have at most 128 characters"),
        (f"logger.group={'g' * 129}", "must have at most 128 characters"),
    ],
)
def test_names_that_wandb_refuses_are_refused_here(composer, typed, says):
    with pytest.raises(InputError) as refused:
        check_logger(load(composer(typed)).logger)
    assert says in str(refused.value)
    assert str(refused.value).startswith(typed.partition("=")[0])


def test_the_run_has_what_the_variables_say(composer, tmp_path, set_variables, monkeypatch):
    monkeypatch.setenv("WANDB_DIR", str(tmp_path / "elsewhere"))
    with logging_to(load(composer("logger.mode=offline")), tmp_path) as logger:
        assert isinstance(logger, ResumableWandbLogger)
        number = logger.experiment.id
        assert logger.identity() == {"entity": "team", "project": "lengths", "run": number}
    run, exit_codes = begun(tmp_path)  # and not in WANDB_DIR
    named = [run[key] for key in ("entity", "project", "display_name", "run_group", "notes")]
    assert named == ["team", "lengths", "mine", "first", 'a "note", and: more']
    assert run["tags"] == ["v1.0", "laptop", "custom", "laptop"]
    assert exit_codes == [0]


def test_a_typed_mode_beats_the_variable_and_none_is_set(composer, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    config = load(composer("logger.mode=online"))
    online = ResumableWandbLogger(config, tmp_path / "online", config.logger.mode)
    assert wandb_settings(online)["mode"] == "online"
    monkeypatch.setenv("WANDB_MODE", "online")
    with logging_to(load(composer("logger.mode=offline")), tmp_path) as logger:
        assert logger.experiment.offline
        assert os.environ["WANDB_MODE"] == "online"


def test_what_was_edited_of_a_run_stays_when_it_is_resumed(composer, tmp_path):
    def described(mode, *typed):
        logger = ResumableWandbLogger(load(composer(*typed)), tmp_path, mode)
        return [logger._wandb_init[key] for key in ("name", "tags", "notes")]

    first = ["RNNsearch-50, seed 1", ["custom", "laptop"], None]
    assert described("online") == first
    offline = tmp_path / "wandb" / "offline-run-20261124_100000-1a2b" / "run-1a2b.wandb"
    offline.parent.mkdir(parents=True)
    offline.touch()
    assert described("online") == first  # the server has not seen it
    online = tmp_path / "wandb" / "run-20261124_110000-1a2b" / "run-1a2b.wandb"
    online.parent.mkdir()
    online.touch()
    assert described("online") == [None, None, None]
    chosen = ("logger.run_name=mine", "logger.tags=[long]", "logger.notes=why")
    assert described("online", *chosen) == ["mine", ["long", "custom", "laptop"], "why"]


def test_a_sweep_and_an_experiment_of_long_names_are_logged_as_wandb_takes_them(
    composer, tmp_path, monkeypatch
):
    sweep = f"/{'f' * 200}/2026-11-24/10-00-00"
    monkeypatch.setattr(wandb_logger, "sweep_folder", lambda: sweep)
    config = load(composer())
    config.experiment = "e" * 65
    with logging_to(config, tmp_path) as logger:
        assert isinstance(logger, ResumableWandbLogger)
    run, _ = begun(tmp_path)
    assert len(run["run_group"]) == 128
    assert run["run_group"].endswith("f/2026-11-24/10-00-00")
    assert run["tags"] == ["e" * 63 + "…", "laptop"]


def test_the_address_of_a_run_is_the_one_that_wandb_gave_it(composer, tmp_path):
    """Without `logger.entity` it is the server that knows."""
    logger = ResumableWandbLogger(load(composer()), tmp_path, "online")
    for entity, known in (("me", "me"), ("", None)):
        logger._experiment = SimpleNamespace(entity=entity, project="nmt", id="1a2b")
        assert logger.identity() == {"entity": known, "project": "nmt", "run": "1a2b"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_run_that_was_broken_off_is_not_shown_as_finished(composer, tmp_path, error):
    with pytest.raises(error), logging_to(load(composer()), tmp_path):
        raise error
    assert begun(tmp_path)[1] == [1]


def test_where_a_run_can_be_watched_is_said(composer, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    run = SimpleNamespace(
        offline=False, url="https://wandb.ai/me/nmt/runs/1a2b", define_metric=lambda *_, **__: None
    )
    made = lambda *_: SimpleNamespace(experiment=run)  # noqa: E731
    monkeypatch.setattr(loggers, "ResumableWandbLogger", made)
    with caplog.at_level(logging.INFO):
        make_logger(load(composer("logger.mode=online")), tmp_path)
    assert "W&B: https://wandb.ai/me/nmt/runs/1a2b" in caplog.messages


class TestNames:
    def test_of_the_jobs_of_a_sweep(self, composer):
        shared = ["+experiment=rnnsearch30", "regime=tiny", "trainer=cpu", "seed=2", "logger=wandb"]
        names = [
            run_name(load(composer(*typed)), typed)
            for lr in ("0.1", "0.01")
            for typed in [[*shared, "data.cache=c", f"optimizer.lr={lr}"]]
        ]
        assert names == ["RNNsearch-30, seed 2 (lr 0.1)", "RNNsearch-30, seed 2 (lr 0.01)"]

    def test_of_ones_own_with_what_it_does_not_tell(self, composer):
        typed = ["name=mine", "+experiment=rnnsearch30", "scoring=dot", "~data.test.by_length"]
        found = run_name(load(composer(*typed)), typed)
        assert found == "mine, seed 1 (experiment rnnsearch30, scoring dot)"

    def test_are_as_long_as_wandb_takes_them(self, composer):
        typed = [f"data.train.source={'d' * 200}"]
        name = run_name(load(composer()), typed)
        assert len(name) == 128
        assert name.startswith("RNNsearch-50, seed 1 (source ddd")
        assert name.endswith("d…")

    def test_of_an_evaluation_tell_what_its_model_was_trained_with(self):
        model = SimpleNamespace(typed=["optimizer.lr=0.1"])
        run = SimpleNamespace(checkpoint=model, typed=["search=greedy"], others=[], trains=False)
        assert _typed_for(run) == ["optimizer.lr=0.1", "search=greedy"]
        run.others = [model]  # of an ensemble the one does not speak for the other
        assert _typed_for(run) == ["search=greedy"]
        run.others, run.trains = [], True  # a training that is resumed has it all
        assert _typed_for(run) == ["search=greedy"]

    def test_doctests(self):
        assert doctest.testmod(wandb_logger).failed == 0
