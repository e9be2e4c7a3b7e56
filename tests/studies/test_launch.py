"""The sweep that trains what is missing, and when it is started again."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmt.config import TextConfig
from nmt.studies import launch
from nmt.studies.existing import RUNS, find_existing
from nmt.studies.launch import (
    JOBS,
    check_models,
    check_texts,
    check_trainings,
    make_missing,
    sweep_command,
)
from nmt.utils.errors import InputError, Interrupted
from tests.studies.conftest import TEXT, TINY, composed, make, planned


def test_the_sweep_is_one_of_the_command_with_what_was_typed(monkeypatch):
    typed = ("hydra.launcher.n_jobs=2", "hydra.searchpath=[file://mine]", "hydra.run.dir=x")
    monkeypatch.setattr(sys, "argv", ["study", "+study=tiny", "--config-dir", "a folder"])
    with composed("+study=tiny", *typed):
        words = sweep_command("train", Path("x/jobs.json"), Path("x/runs"))
    assert words[1:] == [
        *("-m", "nmt.train", "-m", "--config-dir", "a folder"),
        *("hydra.launcher.n_jobs=2", "hydra.searchpath=[file://mine]"),
        *("hydra/sweeper=listed", "hydra.sweeper.jobs=x/jobs.json", "hydra.sweep.dir=x/runs"),
        "~hydra.callbacks.comparison",
    ]


def test_a_signal_stops_the_sweep_and_then_the_study(tiny, tmp_path, monkeypatch):
    received = []

    class Process:
        def __init__(self, words, **_):
            assert (tmp_path / JOBS).is_file()

        def send_signal(self, number):
            received.append(number)

        def wait(self):
            os.kill(os.getpid(), signal.SIGTERM)
            while not received:
                time.sleep(0.01)
            return 128 + signal.SIGTERM

    monkeypatch.setattr(launch.subprocess, "Popen", Process)
    monkeypatch.setattr(launch, "sweep_command", lambda command, jobs, where: [])
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted) as stopped:
        launch.make_runs(tiny.groups["rnnencdec50"].runs, tmp_path)
    assert stopped.value.signal == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
    assert received == [signal.SIGTERM]


def test_a_run_of_an_earlier_start_is_waited_for(tiny, tmp_path, monkeypatch):
    """Its job holds `console.log` from its start on, and the folder itself a little later."""
    monkeypatch.setattr(launch, "PATIENCE", 0.0)
    folder = tmp_path / "run"
    assert not launch._is_busy(folder)
    folder.mkdir()
    assert not launch._is_busy(folder)
    with (folder / "console.log").open("ab") as console:
        fcntl.flock(console, fcntl.LOCK_EX)
        assert launch._is_busy(folder)
        launch._await(folder)  # not for ever
    assert not launch._is_busy(folder)
    holder = "from pathlib import Path; from nmt.utils.locks import FolderLock; import sys;"
    holder += "FolderLock.take(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    pipe = subprocess.PIPE
    words = [sys.executable, "-c", holder, str(folder)]
    with subprocess.Popen(words, stdin=pipe, stdout=pipe) as process:
        assert process.stdout.readline() == b"held\n"
        assert launch._is_busy(folder)
        process.stdin.close()
        process.wait()
    assert not launch._is_busy(folder)


def training(monkeypatch, study, fails=()):
    """In place of the sweep: makes the runs of jobs.json, but for seeds that fail; lists the jobs."""
    planned = {}
    for group in study.groups.values():
        runs = [point.run for point in group.points]
        runs += [run for point in group.points for run in point.runs] + list(group.runs)
        planned |= {run.folder_name: run for run in runs}
    started: list[list[str]] = []

    class Process:
        def __init__(self, words, **_):
            (jobs,) = (word for word in words if word.startswith("hydra.sweeper.jobs="))
            self.jobs = json.loads(Path(jobs.partition("=")[2].strip("'")).read_text())

        def wait(self):
            for job in self.jobs:
                run = planned[job[-1].removeprefix("hydra.sweep.subdir=")]
                assert job[:-2] == list(run.overrides)
                assert job[-2] == "resume=auto"
                if run.seed not in fails:
                    score = abs(run.config.optimizer.lr - 0.002) + run.seed
                    make(study, self.folder, run, valid={"nll_per_word": score}, pairs=20)
            started.append([job[-1] for job in self.jobs])
            return int(any(planned[job[-1][19:]].seed in fails for job in self.jobs))

    monkeypatch.setattr(launch.subprocess, "Popen", Process)
    monkeypatch.setattr(
        launch,
        "sweep_command",
        lambda command, jobs, where: [command, f"hydra.sweeper.jobs={jobs}"],
    )
    monkeypatch.setattr(
        launch, "find_existing", lambda study, folder: find_existing(study, folder, lambda _: TEXT)
    )
    return Process, started


def test_the_best_point_is_trained_when_the_sweep_has_ended(swept, tmp_path, look, monkeypatch):
    process, started = training(monkeypatch, swept)
    process.folder = tmp_path
    found = make_missing(look(swept, tmp_path), tmp_path)
    assert [len(jobs) for jobs in started] == [
        5,
        1,
    ]  # three points and the other group, then seed 2
    assert found.missing() == []
    assert found.chosen(swept.groups["fixed"]).values == {"optimizer.lr": 0.002}
    assert not (tmp_path / JOBS).exists()


def test_what_fails_is_tried_once(tiny, tmp_path, look, monkeypatch):
    process, started = training(monkeypatch, tiny, fails=[2])
    process.folder = tmp_path
    found = make_missing(look(tiny, tmp_path), tmp_path)
    assert len(started) == 1
    assert [run.seed for run in found.missing()] == [2, 2]
    make_missing(found, tmp_path)
    assert [len(jobs) for jobs in started] == [4, 2]
    assert len(list((tmp_path / RUNS).iterdir())) == 2


def test_a_text_that_cannot_be_had_is_refused_before_any_run(tiny, tmp_path):
    run = tiny.groups["rnnsearch50"].runs[0]
    check_texts([run])
    train = TextConfig(files=["train"])
    data = dataclasses.replace(run.config.data, root=str(tmp_path), train=train)
    other = dataclasses.replace(run, config=dataclasses.replace(run.config, data=data))
    with pytest.raises(InputError, match=r"data\.train\.files: train\.en is not in"):
        check_texts([run, other])


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("callbacks=[ema,swa]", "callbacks.swa: averages weights, as callbacks.ema does; take one"),
        (
            "+optimizer.options.no=1",
            "optimizer.options.no: torch.optim.Adam takes no such argument",
        ),
        ("+trainer.lightning.no=1", "trainer.lightning.no: no argument of Lightning's Trainer"),
        (
            "+trainer.lightning.fast_dev_run=true",
            "trainer.lightning.fast_dev_run: a trial, of which",
        ),
        ("initial_checkpoint=nowhere", "initial_checkpoint=nowhere: no such file"),
    ],
)
def test_what_a_training_would_refuse_is_refused_before_any_run(word, said):
    study = planned("study.only=[no-magic]", overrides=[*TINY, word])
    with pytest.raises(InputError) as refused:
        check_trainings(study.groups["rnnencdec50"].runs)
    assert str(refused.value).startswith(f"study.runs.rnnencdec50: {said}")


def test_a_device_that_another_machine_may_have_is_not_looked_for(tiny):
    run = tiny.groups["rnnencdec50"].runs[0]
    trainer = dataclasses.replace(run.config.trainer, accelerator="gpu")
    check_trainings(
        [dataclasses.replace(run, config=dataclasses.replace(run.config, trainer=trainer))]
    )


def test_a_model_without_a_checkpoint_is_not_evaluated(evaluated, tmp_path, look):
    """Of a run that was kept for its scores the checkpoint is gone."""
    for group in evaluated.groups.values():
        for run in group.runs:
            make(evaluated, tmp_path, run, pairs=20)
    missing = look(evaluated, tmp_path).missing()
    assert {run.made_by for run in missing} == {"evaluate"}
    with pytest.raises(
        InputError, match=r"^study\.runs\.\w+: .* has no checkpoint to evaluate; delete"
    ):
        check_models(missing)
    for run in missing:
        for checkpoint in run.models:
            checkpoint.parent.mkdir(exist_ok=True)
            checkpoint.touch()
    check_models(missing)
    gone = {tmp_path / "back" / "checkpoints" / "best.ckpt": "the other way"}
    with pytest.raises(InputError, match=r"back has no checkpoint to evaluate"):
        check_models([dataclasses.replace(missing[0], reverse=gone)])


def test_models_are_trained_before_they_are_evaluated(evaluated, tmp_path, look, monkeypatch):
    made: list[tuple[str, list[list[str]]]] = []

    class Process:
        def __init__(self, words, **_):
            self.command = words[0]
            self.jobs = json.loads((tmp_path / JOBS).read_text())

        def wait(self):
            made.append((self.command, [job[:-1] for job in self.jobs]))
            names = [job[-1].removeprefix("hydra.sweep.subdir=") for job in self.jobs]
            there = look(evaluated, tmp_path)
            for group in evaluated.groups.values():
                for run in there.final(group):
                    if run.folder_name in names:
                        folder = make(evaluated, tmp_path, run, pairs=20)
                        if run.made_by == "evaluate":
                            mark_as_evaluation(folder)
            return 0

    monkeypatch.setattr(launch.subprocess, "Popen", Process)
    monkeypatch.setattr(launch, "sweep_command", lambda command, jobs, where: [command])
    monkeypatch.setattr(launch, "find_existing", lambda study, folder: look(study, folder))
    found = make_missing(look(evaluated, tmp_path), tmp_path)
    assert found.missing() == []
    assert [(command, len(jobs)) for command, jobs in made] == [
        ("train", 2),
        ("baseline", 1),
        ("evaluate", 3),
    ]
    assert all(job[-1] == "resume=auto" for job in made[0][1])
    best = [found.of(run).checkpoint for run in evaluated.groups["search"].runs]
    assert [job[0] for job in made[2][1]] == [
        f"checkpoint={best[0]}",
        f"checkpoint={best[1]}",
        f"checkpoint=[{best[0]},{best[1]}]",
    ]


def mark_as_evaluation(folder: Path) -> None:
    file = folder / "results.json"
    content = json.loads(file.read_text()) | {"sources": {"checkpoint": "x"}}
    file.write_text(json.dumps(content))
