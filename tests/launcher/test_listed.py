"""`hydra/sweeper=listed`: jobs of a file, each with overrides and a folder of its own."""

from __future__ import annotations

import json

import pytest

from tests.launcher.conftest import CONFIG

SWEEP = ("hydra/sweeper=listed", "hydra.sweeper.jobs=jobs.json", "hydra.sweep.dir=s")


def listed(app, jobs) -> None:
    (app.folder / "jobs.json").write_text(json.dumps(jobs))


@pytest.mark.parametrize("launcher", ["process", "basic"])
def test_each_job_has_its_own_overrides(app, launcher):
    config = CONFIG.replace("  launcher: {grace_seconds: 20}\n", "")  # which only one has
    (app.folder / "small/conf/app.yaml").write_text(config)
    listed(
        app,
        [
            ["seed=3", "hydra.sweep.subdir=one"],
            ["text='a, b'", "hydra.sweep.subdir=two"],
            ["+new=1", "seed=4", "hydra.sweep.subdir=three"],
        ],
    )
    code, output = app.sweep(*SWEEP, f"hydra/launcher={launcher}", "list=[2]")
    assert code == 0, output
    found = app.results()
    assert {name: run["config"]["seed"] for name, run in found.items()} == {
        "one": 3,
        "two": 1,
        "three": 4,
    }
    assert found["two"]["config"]["text"] == "a, b"
    assert found["three"]["config"]["new"] == 1
    assert all(run["config"]["list"] == [2] for run in found.values())  # typed for all


def test_a_job_that_fails_stays_alone(app):
    listed(app, [["crash=true", "hydra.sweep.subdir=a"], ["hydra.sweep.subdir=b"]])
    code, _ = app.sweep(*SWEEP)
    assert code == 1
    assert list(app.results()) == ["b"]


@pytest.mark.parametrize("content", ["no json", '{"a": 1}', '[["seed=1"], [2]]'])
def test_a_file_that_is_no_list_of_jobs(app, content):
    (app.folder / "jobs.json").write_text(content)
    code, output = app.sweep(*SWEEP)
    assert code == 1
    assert "hydra.sweeper.jobs=jobs.json: " in output
    assert not app.results()
