"""Sweeps of a small Hydra application with `hydra/launcher=process`, started from the command line."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import open_dict

from hydra_plugins.nmt_process_launcher.launcher import (
    text_has_changed,
    visible_gpus,
)
from nmt.config.loading import load
from nmt.data.preparation import prepare
from nmt.utils.errors import describe_exit
from tests.helpers.processes import TINY, Ended, Process, run, start

APP = """
import json, os, signal, sys, time
from pathlib import Path
import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

@hydra.main(version_base=None, config_path="conf", config_name="app")
def main(cfg):
    folder = Path(HydraConfig.get().runtime.output_dir)
    began = time.time()
    print("hello from", cfg.seed, flush=True)
    if cfg.exit:
        sys.exit(cfg.exit)
    def stop(number, frame):
        (folder / "checkpoint").write_text(str(number))
        sys.exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN if cfg.stubborn else stop)
    (folder / "started").touch()
    while time.time() < began + cfg.sleep and not (folder / "enough").exists():
        time.sleep(0.02)
    result = {
        "config": OmegaConf.to_container(cfg, resolve=True),
        "began": began,
        "ended": time.time(),
        "num": HydraConfig.get().job.num,
        "argv": sys.argv[1:],
        "environment": dict(os.environ),
        "mode": HydraConfig.get().mode.name,
    }
    (folder / "results.json").write_text(json.dumps(result))

if __name__ == "__main__":
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
stubborn: false
sleep: 0.0
folder: ${hydra:sweep.dir}
trainer: {devices: 1, accelerator: auto}
"""
SWEEP = "hydra.sweep.dir=s"


class App:
    """A small Hydra application in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "small/conf"
        self.conf.mkdir(parents=True)
        (folder / "small/__init__.py").touch()
        (folder / "small/app.py").write_text(APP)
        (self.conf / "app.yaml").write_text(CONFIG)

    def start(self, *arguments: str, hook: str = "fork_jobs()", **environ: str) -> Process:
        """Starts a sweep, whose jobs are forked to save time or, with an empty `hook`, are new interpreters."""
        return start("small.app", "-m", *arguments, cwd=self.folder, hook=hook, env=environ)

    def sweep(self, *arguments: str, **options: str) -> tuple[int, str]:
        """Runs a sweep, and returns its exit status and output; `options` are passed to `start`."""
        return outcome(self.start(*arguments, **options).wait())

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


def test_jobs_run_one_after_the_other_in_order(app):
    """Here each job is a new interpreter, whereas the other tests fork jobs to save time."""
    code, output = app.sweep(SWEEP, "seed=3,1", hook="", SLURM_NTASKS="4", SLURM_PROCID="0")
    assert code == 0, output
    first, second = app.results().values()
    assert (first["config"]["seed"], second["config"]["seed"]) == (3, 1)
    assert first["ended"] <= second["began"]
    for number, result in enumerate((first, second)):
        assert (result["num"], result["mode"]) == (number, "RUN")
        assert not {"-m", "--multirun"} & set(result["argv"])
        assert not {"SLURM_NTASKS", "SLURM_PROCID"} & set(result["environment"])
    assert "hello from 3" in output  # jobs that run one by one show their output
    assert "hello from 1" in (app.folder / "s/1/console.log").read_text()
    assert "2 of 2 jobs finished, in s" in output


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


def test_hydras_own_options_reach_the_jobs(app):
    (app.folder / "other").mkdir()
    (app.folder / "other/second.yaml").write_text("defaults: [app, _self_]\nseed: 40\n")
    code, output = app.sweep(
        "--config-dir", "other", "--config-name", "second", SWEEP, "sleep=0,0.01",
        "hydra.job.name=named", "hydra.launcher.n_jobs=2", "hydra/job_logging=default",
        "hydra.sweep.subdir='deep/${sleep}'",
    )  # fmt: skip
    assert code == 0, output
    assert [result["config"]["seed"] for result in app.results().values()] == [40, 40]
    assert (app.folder / "s/deep/0.01/named.log").exists()


def test_failed_and_refused_jobs_leave_the_others_alone(app):
    code, output = app.sweep(SWEEP, "exit=3,0,2", "seed=5")
    assert code == 1
    assert sorted(app.results()) == ["1"]
    assert "job 0 failed (exit code 3), its output: s/0/console.log" in output
    assert "job 2 refused (exit code 2), its output: s/2/console.log" in output
    assert "1 of 3 jobs finished" in output
    assert "Traceback" not in output
    assert [describe_exit(code) for code in (-9, 143)] == [
        "stopped by SIGKILL",
        "stopped by SIGTERM",
    ]


def test_two_at_a_time(app):
    code, output = app.sweep(SWEEP, "seed=1,2,3", "sleep=0.5", "hydra.launcher.n_jobs=2")
    assert code == 0, output
    first, second, third = app.results().values()
    assert second["began"] < first["ended"]
    assert third["began"] >= min(first["ended"], second["ended"])
    assert "hello" not in output  # jobs that run in parallel do not show theirs


def test_gpus_and_threads_are_shared_out(app):
    code, output = app.sweep(
        SWEEP, "trainer.devices=2,1", "seed=1,2", "sleep=0.5", "hydra.launcher.n_jobs=3",
        hook="fork_jobs()\nfrom nmt.utils import startup\nstartup.physical_cores = lambda: 25",
        CUDA_VISIBLE_DEVICES="4,GPU-b,6", OMP_NUM_THREADS="",
    )  # fmt: skip
    assert code == 0, output
    results = [app.results()[n] for n in "0123"]
    given = [set(result["environment"]["CUDA_VISIBLE_DEVICES"].split(",")) for result in results]
    assert [len(gpus) for gpus in given] == [2, 2, 1, 1]
    assert given[0] == {"4", "GPU-b"}
    threads = [int(result["environment"]["OMP_NUM_THREADS"]) for result in results]
    assert threads == [4, 4, 8, 8]  # 25 // 3 cores per job, divided by its GPUs
    for i, one in enumerate(results):
        for j, other in enumerate(results[:i]):
            if one["began"] < other["ended"] and other["began"] < one["ended"]:
                assert not given[i] & given[j]


@pytest.mark.parametrize(
    ("listed", "names"), [("0,2", ["0", "2"]), ("", []), ("MIG-a, GPU-b", ["MIG-a", "GPU-b"])]
)
def test_visible_gpus_are_those_the_variable_names(monkeypatch, listed, names):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert visible_gpus() == names


def test_a_sweep_started_again_skips_and_resumes(app):
    assert app.sweep(SWEEP, "seed=1,2", "exit=0,3")[0] == 1
    before = app.results()
    assert sorted(before) == ["0", "2"]
    # Jobs keep their folders if the order changes and a seed is added. Failed jobs run again.
    code, output = app.sweep(SWEEP, "exit=3,0", "seed=9,2,1")
    assert code == 1
    assert "finished before" in output
    after = app.results()
    assert sorted(after) == ["0", "2", "5"]
    assert {n: after[n] for n in before} == before
    assert after["5"]["config"]["seed"] == 9
    files = [app.folder / f"s/{n}/.hydra/overrides.yaml" for n in "134"]
    assert [set(yaml.safe_load(file.read_text())) for file in files] == [
        {"seed=1", "exit=3", "resume=auto"},
        {"seed=2", "exit=3", "resume=auto"},
        {"seed=9", "exit=3"},
    ]
    # A third start finds the folder of seed=1, since the saved override resume=auto is ignored.
    app.sweep(SWEEP, "exit=3", "seed=1")
    assert sorted(p.name for p in (app.folder / "s").iterdir() if p.is_dir()) == list("012345")


def test_a_job_whose_configuration_has_changed_is_run_again(app):
    nested = (SWEEP, "hydra.sweep.subdir='deep/${seed}'")
    assert app.sweep(*nested, "seed=1,2")[0] == 0
    (app.conf / "app.yaml").write_text(CONFIG.replace("text: plain", "text: other"))
    code, output = app.sweep(*nested, "seed=1,2,3")
    assert code == 0, output
    assert "#1: text has changed since the job ran; it runs again" in output
    assert [result["config"]["text"] for result in app.results().values()] == ["other"] * 3
    aside = app.results("s.earlier").items()
    assert [(name[:7], result["config"]["text"]) for name, result in aside] == [
        ("deep/1-", "plain"),
        ("deep/2-", "plain"),
    ]


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_a_finished_job_knows_another_text(composer, tmp_path, command):
    """A training job runs again if its text has changed, but an evaluation, which reads no training text, does not."""
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
    results.write_text(json.dumps({"text": read if command == "train" else None}))
    assert not text_has_changed(config, results)
    names["valid"].with_suffix(".fr").write_text("a b\nc e\n")
    assert text_has_changed(config, results) == (command == "train")
    names["valid"].with_suffix(".fr").unlink()
    assert not text_has_changed(config, results)  # a missing file is not a change
    assert not text_has_changed(config, tmp_path / "unfinished.json")
    config.initial_checkpoint = "deleted.ckpt"
    assert not text_has_changed(config, results)


def test_ctrl_c_stops_the_jobs_and_says_how_to_go_on(app):
    process = app.start(SWEEP, "sleep=0,30,31")
    app.wait_for("s/1/started")
    process.send_signal(signal.SIGINT)
    code, output = outcome(process.wait())
    assert code == 130
    assert (app.folder / "s/1/checkpoint").read_text() == str(int(signal.SIGINT))
    assert "1 of 3 jobs finished" in output
    assert "job 1 stopped by SIGINT, its output: s/1/console.log" in output
    assert "  2  not started" in output
    assert "python -m small.app -m sleep=0,30,31 hydra.sweep.dir=s\n" in output
    assert not (app.folder / "s/2").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_all_running_jobs_as_sigterm(app, number):
    """SIGHUP, which a closed terminal sends, would end a job without a checkpoint."""
    process = app.start(SWEEP, "sleep=30,31", "hydra.launcher.n_jobs=2")
    for n in "01":
        app.wait_for(f"s/{n}/started")
    process.send_signal(number)
    code, output = outcome(process.wait())
    assert code == 128 + number, output
    assert [(app.folder / f"s/{n}/checkpoint").read_text() for n in "01"] == ["15", "15"]


def test_a_second_sweep_in_the_folder_is_refused_and_a_second_ctrl_c_kills(app):
    process = app.start(SWEEP, "sleep=60", "stubborn=true")
    app.wait_for("s/0/started")
    code, output = app.sweep(SWEEP, "seed=1,2")
    assert code == 1
    assert "hydra.sweep.dir=s: another command works in this folder" in output
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    code, output = outcome(process.wait())
    assert code == 130
    assert "job 0 stopped by SIGKILL" in output
    assert app.results() == {}


@pytest.mark.slow
def test_a_sweep_over_devices_starts_each_rank_once(tmp_path):
    """To start the other ranks of a job, Lightning runs its command line again."""
    devices = ("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=1,2")
    typed = ("+experiment=rnnsearch50", *TINY, *devices, "hydra.sweep.dir='an odd, name'")
    ended = run("train", "-m", *typed, cwd=tmp_path, hook="fork_jobs()")
    assert ended.code == 0, ended.err
    files = sorted((tmp_path / "an odd, name").glob("*/results.json"))
    one, two = (json.loads(file.read_text()) for file in files)
    assert [each["train"]["devices"] for each in (one, two)] == [1, 2]
    assert one["objective"] == pytest.approx(two["objective"], rel=1e-3)
    assert not (tmp_path / "multirun").exists()
    assert not (tmp_path / "outputs").exists()
