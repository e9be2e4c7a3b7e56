"""Sweeps of a small Hydra application with `hydra/launcher=process`, started from the command line."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf, open_dict

from hydra_plugins.nmt_process_launcher.launcher import text_has_changed
from nmt.config.loading import load
from nmt.data.preparation import prepare
from nmt.utils.errors import describe_exit
from tests.helpers.processes import (
    LONGEST_S,
    TINY,
    Ended,
    Process,
    descendants,
    run,
    start,
    wait_until_gone,
)

APP = """
import json, os, sys, time
from pathlib import Path
import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf
from nmt.utils.environment import swept_overrides
from nmt.utils.startup import PARENT, end_with_parent

@hydra.main(version_base=None, config_path="conf", config_name="app")
def main(cfg):
    folder = Path(HydraConfig.get().runtime.output_dir)
    began = time.time()
    print("hello from", cfg.seed, flush=True)
    if cfg.exit:
        sys.exit(cfg.exit)
    (folder / "started").write_text(str(os.getpid()))
    time.sleep(cfg.sleep)
    result = {
        "config": OmegaConf.to_container(cfg, resolve=True),
        "began": began,
        "ended": time.time(),
        "num": HydraConfig.get().job.num,
        "argv": sys.argv[1:],
        "environment": dict(os.environ),
        "mode": HydraConfig.get().mode.name,
        "swept": swept_overrides(),
        "objective": cfg.seed,
    }
    (folder / "results.json").write_text(json.dumps(result))

if __name__ == "__main__":
    if parent := os.environ.pop(PARENT, ""):
        end_with_parent(int(parent))
    main()
"""
CONFIG = """
defaults: [_self_, {override hydra/launcher: process}]
seed: 1
text: plain
list: [1]
dict: {a: 1}
resume: null
exit: 0
sleep: 0.0
folder: ${hydra:sweep.dir}
trainer: {devices: 1, accelerator: auto}
"""
SWEEP = "hydra.sweep.dir=s"
SEARCH = "hparams_search=mine"


class App:
    """A small Hydra application in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "small/conf"
        self.conf.mkdir(parents=True)
        (folder / "small/__init__.py").touch()
        (folder / "small/app.py").write_text(APP)
        (self.conf / "app.yaml").write_text(CONFIG)

    def start(self, *arguments: str, **environ: str) -> Process:
        """Starts a sweep, whose jobs are new interpreters."""
        environ = {"PYTHONPATH": str(self.folder), **environ}
        return start("small.app", "-m", *arguments, cwd=self.folder, env=environ)

    def sweep(self, *arguments: str, **environ: str) -> tuple[int, str]:
        """Runs a sweep, and returns its exit status and output."""
        return outcome(self.start(*arguments, **environ).wait())

    def results(self, sweep: str = "s") -> dict[str, dict[str, Any]]:
        """Returns the results of the finished jobs, by folder."""
        files = sorted((self.folder / sweep).glob("**/results.json"))
        names = [str(file.parent.relative_to(self.folder / sweep)) for file in files]
        return {name: json.loads(file.read_text()) for name, file in zip(names, files, strict=True)}

    def wait_for(self, path: str) -> None:
        end = time.monotonic() + 20
        while not (self.folder / path).exists():
            assert time.monotonic() < end, f"{path} does not appear"
            time.sleep(0.05)


def outcome(ended: Ended) -> tuple[int, str]:
    return ended.code, ended.out + ended.err


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(tmp_path)


@pytest.mark.slow
def test_jobs_run_in_order(app):
    code, output = app.sweep(SWEEP, "seed=3,1", "text=a", SLURM_NTASKS="4", SLURM_PROCID="0")
    assert code == 0, output
    first, second = app.results().values()
    assert (first["config"]["seed"], second["config"]["seed"]) == (3, 1)
    assert first["ended"] <= second["began"]
    for number, result in enumerate((first, second)):
        assert (result["num"], result["mode"]) == (number, "RUN")
        assert not {"-m", "--multirun"} & set(result["argv"])
        assert not {"SLURM_NTASKS", "SLURM_PROCID"} & set(result["environment"])
    assert output.index("hello from 3") < output.index("hello from 1")
    assert "2 of 2 jobs finished, in s" in output
    advice = "to go on after an interruption, type:\n  python -m small.app -m seed=3,1 text=a"
    assert f"{advice} hydra.sweep.dir=s\n" in output


@pytest.mark.slow
def test_values_reach_the_jobs_as_typed(app):
    awkward = "a, b='c' \"d\" \\e {f} [g] $h #i é : ( % ;"
    quoted = "'" + awkward.replace("'", "\\'") + "'"
    typed = (f"text={quoted},null,'1',a b", "list=[1,two,'3,4']", "+dict={b:'x y'}", "++seed=7")
    more = ("hydra.sweep.dir='odd, name'", "+new.deep=1e-3", "~trainer.accelerator")
    code, output = app.sweep(*typed, *more)
    assert code == 0, output
    configs = [result["config"] for result in app.results("odd, name").values()]
    assert [config["text"] for config in configs] == [awkward, None, "1", "a b"]
    for config in configs:
        assert config["list"] == [1, "two", "3,4"]
        assert config["dict"] == {"a": 1, "b": "x y"}
        assert config["new"] == {"deep": 0.001}
        assert (config["seed"], config["trainer"]) == (7, {"devices": 1})
        assert config["folder"] == "odd, name"


@pytest.mark.slow
def test_hydras_own_options_reach_the_jobs(app):
    (app.folder / "other").mkdir()
    (app.folder / "other/second.yaml").write_text("defaults: [app, _self_]\nseed: 40\n")
    code, output = app.sweep(
        "--config-dir", "other", "--config-name", "second", SWEEP, "sleep=0,0.01",
        "hydra.job.name=named", "hydra/job_logging=default", "hydra.sweep.subdir='deep/${sleep}'",
    )  # fmt: skip
    assert code == 0, output
    results = app.results().values()
    assert [result["config"]["seed"] for result in results] == [40, 40]
    assert [result["swept"] for result in results] == [["sleep=0"], ["sleep=0.01"]]
    assert (app.folder / "s/deep/0.01/named.log").exists()


@pytest.mark.slow
def test_failed_and_refused_jobs_do_not_stop_others(app):
    code, output = app.sweep(SWEEP, "exit=3,0,2", "seed=5")
    assert code == 1
    assert sorted(app.results()) == ["1"]
    assert "  0  failed (exit code 3)   exit=3 seed=5" in output
    assert "  2  refused (exit code 2)  exit=2 seed=5" in output
    assert "1 of 3 jobs finished" in output
    assert "to run the other jobs again, type:\n  python -m small.app -m" in output
    assert "Traceback" not in output
    assert [describe_exit(code) for code in (-9, 143)] == [
        "stopped by SIGKILL",
        "stopped by SIGTERM",
    ]


@pytest.mark.slow
def test_search_continues_after_a_failed_trial(app):
    """The search goes on; the command is not printed, since it would start another search."""
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="extra optuna is missing")
    grid = ("hydra/sweeper=optuna", "hydra/sweeper/sampler=grid", "hydra.sweeper.n_jobs=1")
    code, output = app.sweep(SWEEP, *grid, "hydra.sweeper.n_trials=2", "exit=choice(0,3)")
    assert code == 1
    assert output.count("failed (exit code 3)  exit=3") == 1
    assert "python -m" not in output
    best = yaml.safe_load((app.folder / "s/optimization_results.yaml").read_text())
    assert (best["best_params"], best["best_value"]) == ({"exit": 0}, 1.0)


@pytest.mark.slow
def test_repeated_sweep_skips_finished_jobs_and_resumes_others(app):
    assert app.sweep(SWEEP, "seed=1", "exit=0,3")[0] == 1
    before = app.results()
    assert sorted(before) == ["0"]
    # Jobs keep their folders if the order changes and a seed is added. Failed jobs run again.
    code, output = app.sweep(SWEEP, "exit=3,0", "seed=9,1")
    assert code == 1
    assert "finished before" in output
    after = app.results()
    assert sorted(after) == ["0", "3"]
    assert after["0"] == before["0"]
    assert after["3"]["config"]["seed"] == 9
    files = [app.folder / f"s/{n}/.hydra/overrides.yaml" for n in "12"]
    assert [set(yaml.safe_load(file.read_text())) for file in files] == [
        {"seed=1", "exit=3", "resume=auto"},
        {"seed=9", "exit=3"},
    ]


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("seed=1,2", ["seed=1"]),
        (SEARCH, [SEARCH, "data.batch_size=20", "data.batch_tokens=null"]),
    ],
)
@pytest.mark.parametrize("file", ["results.json", "checkpoints/last.ckpt"])
def test_refuses_a_job_with_another_configuration(composer, tmp_path, file, typed, stored):
    """The whole sweep ends before a job runs. A job without results and checkpoints may change."""
    search = tmp_path / "conf/hparams_search/mine.yaml"
    search.parent.mkdir(parents=True)
    search.write_text(
        "# @package _global_\nhydra: {sweeper: {params: {data.batch_size: '20,40'}}}\n"
    )
    job = tmp_path / "s/0"
    for path in (job / ".hydra/overrides.yaml", job / file):
        path.parent.mkdir(parents=True, exist_ok=True)
    (job / ".hydra/overrides.yaml").write_text(json.dumps(["regime=tiny", *stored]))
    words = [word for word in stored if word != SEARCH]
    ran = composer("regime=tiny", *words, "model.dropout=0.3")
    OmegaConf.save(ran, job / ".hydra/config.yaml")
    (job / file).write_text("{}")
    ended = run("train", "-m", "--config-dir=conf", "regime=tiny", typed, SWEEP, cwd=tmp_path)
    assert (ended.code, ended.err) == (
        2,
        "nmt: model.dropout=0.0: the job in s/0 ran with model.dropout=0.3; name another "
        "hydra.sweep.dir, or delete the folder to run the job again\n",
    )
    assert not (tmp_path / "s/1").exists()


def test_text_has_changed_by_content(composer, tmp_path):
    """An evaluation reads no training text, and its results name none."""
    names = {part: tmp_path / part for part in ("train", "valid")}
    for name, file in names.items():
        for side in ("en", "fr"):
            file.with_suffix(f".{side}").write_text(f"a b {name}\nc d\n")
    typed = [f"data.{part}.files=[{part}]" for part in names]
    typed += ["data=text", f"data.root={tmp_path}", f"data.cache={tmp_path}/cache"]
    config = composer(*typed)
    with open_dict(config):
        config.hydra = {}
    training = load(composer(*typed))
    read = prepare(training.data, training.tokenizer).identified()
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"text": read}))
    assert not text_has_changed(config, results)
    names["valid"].with_suffix(".fr").write_text("a b\nc e\n")
    assert text_has_changed(config, results)
    results.write_text(json.dumps({"text": None}))
    assert not text_has_changed(config, results)
    results.write_text(json.dumps({"text": read}))
    names["valid"].with_suffix(".fr").unlink()
    assert not text_has_changed(config, results)  # a missing file is not a change


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        *(
            pytest.param(number, marks=pytest.mark.slow)
            for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL)
        ),
    ],
)
def test_job_ends_with_its_sweep(app, number):
    """A signal that only the sweep receives ends both. Another sweep may then use the folder."""
    process = app.start(SWEEP, "sleep=60")
    app.wait_for("s/0/started")
    assert "another command works in this folder" in app.sweep(SWEEP, "seed=1,2")[1]
    job = int((app.folder / "s/0/started").read_text())
    process.send_signal(number)
    process.wait()
    wait_until_gone([job], 3)
    assert app.results() == {}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_parallel_jobs_end_with_their_sweep(tmp_path, number):
    """The launcher joblib runs jobs in processes of its own, which would train on without the sweep."""
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason="extra sweeps is missing")
    sweep = (
        "-m",
        "hydra/launcher=joblib",
        "hydra.launcher.n_jobs=2",
        "hydra.sweep.dir=s",
        "seed=1,2",
    )
    typed = ("+experiment=rnnsearch50", *TINY, "trainer.max_steps=100000")
    process = start("nmt.train", *sweep, *typed, cwd=tmp_path)
    checkpoints = [tmp_path / f"s/{n}/checkpoints/last.ckpt" for n in (0, 1)]
    end = time.monotonic() + LONGEST_S
    while not all(path.exists() for path in checkpoints):
        assert time.monotonic() < end, "the jobs do not train"
        time.sleep(0.1)
    pids = [*process.pids, *descendants(process.pids[0])]
    assert len(pids) > 2
    process.send_signal(number)
    assert process.wait().code == -number
    wait_until_gone(pids, 3)


@pytest.mark.slow
def test_sweep_over_devices_starts_each_rank_once(tmp_path):
    """To start the other ranks of a job, Lightning runs its command line again."""
    devices = ("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=1,2")
    typed = ("+experiment=rnnsearch50", *TINY, *devices, "hydra.sweep.dir='an odd, name'")
    ended = run("train", "-m", *typed, cwd=tmp_path)
    assert ended.code == 0, ended.err
    files = sorted((tmp_path / "an odd, name").glob("*/results.json"))
    one, two = (json.loads(file.read_text()) for file in files)
    assert [each["train"]["devices"] for each in (one, two)] == [1, 2]
    assert one["objective"] == pytest.approx(two["objective"], rel=1e-3)
    assert not (tmp_path / "multirun").exists()
    assert not (tmp_path / "outputs").exists()
