"""Sweeps under `hydra/launcher=process`, run as a user runs them."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
import yaml

from nmt.utils.threads import physical_cores
from tests.launcher.conftest import said

SWEEP = "hydra.sweep.dir=s"


def wait_for(path: Path, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} does not appear"
        time.sleep(0.05)


def test_jobs_run_one_after_the_other_in_order(app):
    """Each in a new interpreter; in the tests that follow, a fork of the sweep."""
    code, output = app.sweep(SWEEP, "seed=3,1,2", "sleep=0.2", hook="")
    assert code == 0, output
    results = app.results()
    assert [results[n]["config"]["seed"] for n in "012"] == [3, 1, 2]
    assert [results[n]["num"] for n in "012"] == [0, 1, 2]
    assert results["0"]["ended"] <= results["1"]["began"]
    assert results["1"]["ended"] <= results["2"]["began"]
    assert len({result["pid"] for result in results.values()}) == 3
    assert {result["mode"] for result in results.values()} == {"RUN"}
    assert "hello from 3" in output  # one at a time: the output is shown as it comes
    assert "hello from 1" in (app.folder / "s/1/console.log").read_text()
    assert "3 of 3 jobs finished, in s" in output


def test_values_reach_the_jobs_as_typed(app):
    awkward = "a, b='c' \"d\" \\e {f} [g] $h #i é : ( % ;"
    quoted = "'" + awkward.replace("'", "\\'") + "'"
    code, output = app.sweep(
        "hydra.sweep.dir='odd, name'",
        f"text={quoted},null,'1',a b",
        "list=[1,two,'3,4']",
        "+dict={b:'x y'}",
        "+new.deep=1e-3",
        "++seed=7",
        "~trainer.accelerator",
    )
    assert code == 0, output
    configs = [result["config"] for result in app.results("odd, name").values()]
    assert [config["text"] for config in configs] == [
        awkward.replace("\\e", "\\e"),
        None,
        "1",
        "a b",
    ]
    for config in configs:
        assert config["list"] == [1, "two", "3,4"]
        assert config["dict"] == {"a": 1, "b": "x y"}
        assert config["new"] == {"deep": 0.001}
        assert config["seed"] == 7
        assert config["trainer"] == {"devices": 1}
        assert config["folder"] == "odd, name"


def test_hydras_own_options_reach_the_jobs(app):
    other = app.folder / "other"
    other.mkdir()
    (other / "second.yaml").write_text("defaults: [app, _self_]\nseed: 40\ntext: second\n")
    code, output = app.sweep(
        "--config-dir", "other", "--config-name", "second", SWEEP, "sleep=0,0.01",
        "hydra.job.name=named", "hydra.launcher.n_jobs=2", "hydra/job_logging=default",
    )  # fmt: skip
    assert code == 0, output
    assert [r["config"]["seed"] for r in app.results().values()] == [40, 40]
    assert (app.folder / "s/1/named.log").exists()


def test_failed_and_refused_jobs_leave_the_others_alone(app):
    code, output = app.sweep(SWEEP, "exit=3,0,2", "seed=5")
    assert code == 1
    assert sorted(app.results()) == ["1"]
    assert "job 0 failed (exit code 3), its output: s/0/console.log" in output
    assert "job 2 refused (exit code 2), its output: s/2/console.log" in output
    assert "1 of 3 jobs finished" in output
    assert "Traceback" not in output


def test_two_at_a_time(app):
    code, output = app.sweep(SWEEP, "seed=1,2,3", "sleep=1", "hydra.launcher.n_jobs=2")
    assert code == 0, output
    first, second, third = app.results().values()
    assert second["began"] < first["ended"]
    assert third["began"] >= min(first["ended"], second["ended"])
    assert "hello" not in output  # outputs of several jobs are not mixed on the terminal


def test_gpus_and_threads_are_shared_out(app):
    code, output = app.sweep(
        SWEEP, "trainer.devices=2,1", "seed=1,2", "sleep=0.5", "hydra.launcher.n_jobs=3",
        CUDA_VISIBLE_DEVICES="4,GPU-b,6", OMP_NUM_THREADS="",
    )  # fmt: skip
    assert code == 0, output
    results = app.results()
    given = [set(results[n]["gpus"].split(",")) for n in "0123"]
    assert [len(gpus) for gpus in given] == [2, 2, 1, 1]
    assert given[0] == {"4", "GPU-b"}
    threads = [int(results[n]["threads"]) for n in "0123"]
    assert threads == [max(1, physical_cores() // (3 * devices)) for devices in (2, 2, 1, 1)]
    overlapping = [
        (i, j)
        for i in range(4)
        for j in range(i)
        if results[str(i)]["began"] < results[str(j)]["ended"]
        and results[str(j)]["began"] < results[str(i)]["ended"]
    ]
    assert all(not given[i] & given[j] for i, j in overlapping)


@pytest.mark.slow
def test_a_job_is_no_rank_of_the_sweep(app):
    code, output = app.sweep(
        SWEEP, "trainer.devices=1,2", LOCAL_RANK="0", MASTER_PORT="1", PL_GLOBAL_SEED="3"
    )
    assert code == 0, output
    for result in app.results().values():
        assert result["ranks"] == []
        assert "-m" not in result["argv"]
        assert "--multirun" not in result["argv"]


def test_a_sweep_started_again_skips_and_resumes(app):
    assert app.sweep(SWEEP, "seed=1,2", "exit=0,3")[0] == 1
    assert sorted(app.results()) == ["0", "2"]
    before = app.results()
    # Other order, one job more, and what failed still fails: jobs keep their folders.
    code, output = app.sweep(SWEEP, "exit=3,0", "seed=9,2,1")
    assert code == 1
    after = app.results()
    assert sorted(after) == ["0", "2", "5"]
    assert {n: after[n] for n in before} == before
    assert after["5"]["config"]["seed"] == 9
    overrides = {
        n: set(yaml.safe_load((app.folder / f"s/{n}/.hydra/overrides.yaml").read_text()))
        for n in "134"
    }
    assert overrides["1"] == {"seed=1", "exit=3", "resume=auto"}
    assert overrides["3"] == {"seed=2", "exit=3", "resume=auto"}
    assert overrides["4"] == {"seed=9", "exit=3"}
    assert "finished before" in output
    # Once more: resume=auto in the saved overrides does not make it another job.
    code, output = app.sweep(SWEEP, "exit=3", "seed=1")
    assert sorted(p.name for p in (app.folder / "s").iterdir() if p.is_dir()) == list("012345")


def test_ctrl_c_stops_the_jobs_and_says_how_to_go_on(app):
    process = app.start(SWEEP, "sleep=0,30,31")
    wait_for(app.folder / "s/1/started")
    process.send_signal(signal.SIGINT)
    code, output = said(process.wait())
    assert code == 130
    assert (app.folder / "s/1/checkpoint").read_text() == str(int(signal.SIGINT))
    assert "1 of 3 jobs finished" in output
    assert "job 1 stopped by SIGINT, its output: s/1/console.log" in output
    assert "  2  not started" in output
    assert "python -m small.app -m sleep=0,30,31 hydra.sweep.dir=s\n" in output
    assert not (app.folder / "s/2").exists()


def test_sigterm_is_passed_on_to_all_running_jobs(app):
    process = app.start(SWEEP, "sleep=30,31", "hydra.launcher.n_jobs=2")
    for n in "01":
        wait_for(app.folder / f"s/{n}/started")
    process.send_signal(signal.SIGTERM)
    code, output = said(process.wait())
    assert code == 143, output
    assert [(app.folder / f"s/{n}/checkpoint").read_text() for n in "01"] == ["15", "15"]


def test_a_job_that_does_not_end_is_killed(app):
    process = app.start(SWEEP, "sleep=60", "stubborn=true", "hydra.launcher.grace_seconds=0.5")
    wait_for(app.folder / "s/0/started")
    process.send_signal(signal.SIGINT)
    code, output = said(process.wait())
    assert code == 130
    assert "job 0 stopped by SIGKILL" in output


def test_two_sweeps_in_one_folder_are_refused(app):
    process = app.start(SWEEP, "sleep=60")
    wait_for(app.folder / "s/0/started")
    code, output = app.sweep(SWEEP, "seed=1,2")
    assert code == 1
    assert "hydra.sweep.dir=s: another command works in this folder" in output
    (app.folder / "s/0/enough").touch()
    assert process.wait().code == 0
    assert sorted(app.results()) == ["0"]


def test_a_job_whose_configuration_has_changed_is_run_again(app):
    assert app.sweep(SWEEP, "seed=1,2")[0] == 0
    before = app.results()
    config = app.folder / "small/conf/app.yaml"
    config.write_text(config.read_text().replace("text: plain", "text: other"))
    code, output = app.sweep(SWEEP, "seed=1,2,3", hook="")
    assert code == 0, output
    assert "#0: text has changed since the job ran; it runs again" in output
    assert [result["config"]["text"] for result in app.results().values()] == ["other"] * 3
    aside = sorted((app.folder / "s.earlier").iterdir())
    assert [path.name.partition("-")[0] for path in aside] == ["0", "1"]
    assert [(path / "results.json").is_file() for path in aside] == [True, True]
    assert {result["config"]["text"] for result in before.values()} == {"plain"}
