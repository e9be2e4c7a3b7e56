"""The run folder of a command is its own, and keeps what stood in it before a refusal."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import socket
from pathlib import Path
from typing import Any

import hydra
import pytest
from omegaconf import OmegaConf

from nmt.cli import claim
from nmt.cli.claim import ClaimFolder, NotClaimed, claims
from nmt.cli.composition import conf_folder, register_configs
from nmt.utils.errors import InputError
from nmt.utils.locks import FolderLock
from tests.helpers.processes import TINY, run
from tests.helpers.run_folders import make_run

FORK = multiprocessing.get_context("fork")


def config(folder: str) -> Any:
    return OmegaConf.create({"hydra": {"run": {"dir": folder}}, "resume": None})


def start_at_noon(start: Any, pipe: Any) -> None:
    """A start of a command whose folder is named after the time of the start."""
    register_configs(["train"])
    OmegaConf.register_new_resolver("run_folder", lambda: "outputs/12-00-00", replace=True)
    start.wait()
    begun = config("${run_folder:}")
    ClaimFolder("train").on_run_start(begun)
    pipe.send(begun.hydra.run.dir)
    signal.pause()


def test_runs_of_one_second_get_a_folder_each(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    here, there = FORK.Pipe()
    start = FORK.Barrier(5)
    processes = [FORK.Process(target=start_at_noon, args=(start, there)) for _ in range(4)]
    for process in processes:
        process.start()
    start.wait()
    folders = sorted(here.recv() for _ in processes)
    for process in processes:
        process.kill()
        process.join()
    assert folders == ["outputs/12-00-00", *(f"outputs/12-00-00-{n}" for n in (1, 2, 3))]


def test_a_folder_that_was_typed_is_claimed_as_it_is(tmp_path):
    with claims():
        ClaimFolder("train").on_run_start(config(str(tmp_path / "mine")))
        assert [path.name for path in (tmp_path / "mine").iterdir()] == [".lock"]
    assert not list((tmp_path / "mine").iterdir())


def test_what_cannot_be_claimed_is_said(tmp_path):
    """By the key that names the folder."""
    (tmp_path / "file").touch()
    (tmp_path / "ring").symlink_to("ring")
    for name in ("file", "file/x", "ring", "ring/x", "x" * 300, "/proc/x"):
        said = re.escape(f"hydra.run.dir={tmp_path / name}: cannot be ")
        with pytest.raises(InputError, match=said), claims():
            ClaimFolder("train").on_run_start(config(str(tmp_path / name)))
    with pytest.raises(NotClaimed):
        ClaimFolder("train").on_run_start(config(str(tmp_path / "file/x")))


def test_a_folder_without_a_name_is_refused(program):
    """What a shell makes of an unset variable; the working folder would be filled."""
    (program.folder / "a_run").mkdir()  # of no sweep
    for typed in (["hydra.run.dir="], ["resume="], ["-m", "hydra.sweep.dir=", "seed=1,2"]):
        before = set(program.folder.iterdir())
        ended = program("train", *typed)
        key = next(word for word in typed if word.endswith("="))
        assert (ended.code, ended.err) == (2, f"nmt: {key}: names no folder\n")
        assert set(program.folder.iterdir()) == before
    (program.folder / "a_run").rmdir()


def test_a_sweeps_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "ring").symlink_to("ring")
    no_utf8 = os.fsdecode(b"\xff")
    for name in ("file", "file/x", "ring", "x" * 300, "/proc/x", no_utf8):
        with pytest.raises(InputError, match=re.escape(f"hydra.sweep.dir={tmp_path / name}: ")):
            sweep_into(tmp_path / name)
    assert len(list(tmp_path.iterdir())) == 2
    sweep_into(tmp_path / "new/one")
    assert (tmp_path / "new/one").is_dir()


def sweep_into(folder: Path) -> None:
    with hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"), claims():
        typed = {"task": ["seed=1,2"]}
        made = OmegaConf.create({"hydra": {"sweep": {"dir": str(folder)}, "overrides": typed}})
        ClaimFolder("train").on_multirun_start(made)


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        ("train", (*TINY, "hydra.run.dir=mine")),
        ("train", ("resume=mine",)),
        ("evaluate", ("checkpoint=mine/checkpoints/best.ckpt", "hydra.run.dir=mine")),
        ("baseline", ("hydra.run.dir=mine",)),
        ("compare", ("runs=[run]", "output=mine")),
    ],
)
def test_a_folder_that_a_process_works_in_is_refused(tmp_path, command, typed):
    """Before anything is written there."""
    (tmp_path / "mine/.hydra").mkdir(parents=True)
    (tmp_path / "mine/.hydra/config.yaml").write_text("seed: 1\n")
    make_run(tmp_path / "run", pairs=12, kept=2)
    before = content(tmp_path / "mine")
    lock = FolderLock.take(tmp_path / "mine")
    ended = run(command, *typed, cwd=tmp_path)
    lock.release()
    assert ended.code == 2
    said = f"nmt: mine: process {os.getpid()} on {socket.gethostname()} works there; wait until"
    assert ended.err.startswith(said)
    assert ended.err.count("\n") == 1
    assert content(tmp_path / "mine") == before


@pytest.mark.parametrize("whole", [False, True])
def test_a_refused_start_removes_nothing_that_stood_there(tmp_path, whole):
    """Neither a log nor a configuration, whole or not; and leaves nothing of its own."""
    mine = tmp_path / "mine"
    (mine / ".hydra").mkdir(parents=True)
    for name in ("train.log", ".hydra/overrides.yaml", *[".hydra/config.yaml"] * whole):
        (mine / name).write_text(f"{name} of mine\n")
    before = content(mine)
    typed = ("data=text", "data.train.source=no.en", "data.train.target=no.fr")
    for refused in (("trainer.max_steps=0",), typed):
        ended = run("train", *refused, "hydra.run.dir=mine", cwd=tmp_path)
        assert ended.code == 2, ended.err
        assert content(mine) == before
        assert re.search("^nmt: ", ended.err, re.MULTILINE)


@pytest.mark.parametrize("typed", [(), ("hydra.run.dir=of/mine",)])
def test_a_refused_start_leaves_no_folder(tmp_path, typed):
    ended = run("train", "trainer.max_steps=0", *typed, cwd=tmp_path)
    assert ended.code == 2, ended.err
    assert not list(tmp_path.iterdir())


def test_folders_that_hold_another_run_stay_where_a_start_is_refused(tmp_path):
    (tmp_path / "day").mkdir()
    with claims():
        ClaimFolder("train").on_run_start(config(str(tmp_path / "day/morning/run")))
        (tmp_path / "day/morning/other").mkdir()
        claim._claims[0].undo("train")
    assert [path.name for path in (tmp_path / "day/morning").iterdir()] == ["other"]
    with claims():
        ClaimFolder("train").on_run_start(config(str(tmp_path / "day/evening/run")))
        claim._claims[0].undo("train")
    assert [path.name for path in (tmp_path / "day").iterdir()] == ["morning"]


@pytest.mark.parametrize(
    "typed", ["hydra.output_subdir=../x", "hydra.output_subdir=/x", "hydra.job.name=../x"]
)
def test_nothing_is_written_outside_of_the_run_folder(program, typed):
    before = set(program.folder.rglob("*"))
    ended = program("train", *TINY, "hydra.run.dir=mine", typed)
    assert ended.code == 2
    assert ended.err.startswith(f"nmt: {typed}: ")
    assert set(program.folder.rglob("*")) == before


@pytest.mark.parametrize("typed", ["output_subdir=a/b", "output_subdir=.", "job.name=mine"])
def test_a_refused_start_leaves_nothing_under_other_names(program, typed):
    before = set(program.folder.rglob("*"))
    refused = program("train", "trainer.max_steps=0", "hydra.run.dir=mine", f"hydra.{typed}")
    assert refused.code == 2
    assert set(program.folder.rglob("*")) == before
