"""Promise 4: a finished run is never damaged.

Files are replaced atomically, `results.json` is written last, and two commands never share a folder.
"""

from __future__ import annotations

import signal
import time

import pytest

from tests.helpers.processes import TINY
from tests.helpers.produced import files

TYPED = (*TINY, "trainer.max_steps=2", "trainer.val_check_interval=2")
OWN = (".lock", "train.log", "evaluate.log")  # files that even a refused command opens


def contents(folder):
    return {name: (folder / name).read_bytes() for name in files(folder) if name not in OWN}


@pytest.mark.parametrize(
    "typed",
    [
        ("train", "regime=tiny"),
        ("train", "regime=tiny", "seed=9"),
        ("evaluate", "checkpoint=rnnsearch"),
    ],
)
def test_refuses_to_write_into_a_finished_run(program, rnnsearch, typed):
    before = contents(rnnsearch)
    logged = {file: file.read_text() for file in rnnsearch.glob("*.log")}
    command, *words = typed
    ended = program(command, *words, "hydra.run.dir=rnnsearch")
    assert ended.code == 2, ended.err
    assert "rnnsearch" in ended.err
    assert contents(rnnsearch) == before
    assert {file: file.read_text() for file in logged} == logged


@pytest.mark.slow
def test_refuses_a_second_command_in_a_run_folder(program):
    hook = "import time\nbefore('nmt.training.fit:build_model', 1, lambda: time.sleep(100))"
    first = program.start("nmt.train", *TYPED, "hydra.run.dir=shared", hook=hook)
    lock = program.folder / "shared/.lock"
    while not lock.exists():
        time.sleep(0.05)
    second = program("train", *TYPED, "hydra.run.dir=shared")
    assert second.code == 2
    assert second.err == (
        "nmt: hydra.run.dir=shared: another command works in this folder; wait until it ends, or "
        "name another folder\n"
    ).replace("hydra.run.dir=shared", f"hydra.run.dir={program.folder}/shared")
    first.send_signal(signal.SIGKILL)
    assert first.wait().code == -signal.SIGKILL
    # The kill of the first command has released its lock.
    third = program("train", *TYPED, "hydra.run.dir=shared", figures=False)
    assert third.code == 0, third.err


@pytest.mark.slow
def test_results_json_is_written_last(program):
    """If a run is killed before its last write, only results.json is missing."""
    typed = (*TYPED, "hydra.run.dir=cut")
    hook = "kill('nmt.training.outcome:write_json', 1)"
    killed = program("train", *typed, hook=hook, figures=False)
    assert killed.code == -signal.SIGKILL
    folder = program.folder / "cut"
    assert not (folder / "results.json").exists()
    assert (folder / "scores.csv").exists()
    ended = program("train", *typed, "resume=auto", figures=False)
    assert ended.code == 0, ended.err
    written = {name: (folder / name).stat().st_mtime for name in contents(folder)}
    assert max(written, key=written.__getitem__) == "results.json"
