"""W&B gets every logged value from Lightning's logger, even if the run is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.processes import TINY, descendants, run, start, wait_until_gone

CALLBACKS = """
import pytorch_lightning as pl

class Own(pl.Callback):
    def __init__(self, name):
        self.name = name

    def on_train_batch_end(self, trainer, pl_module, *_):
        pl_module.log(self.name, float(trainer.global_step))

class Direct(pl.Callback):
    def on_train_batch_end(self, trainer, *_):
        for logger in trainer.loggers:
            logger.log_metrics({"test/own": 2.0 * trainer.global_step}, step=trainer.global_step)
"""


def rows(folder: Path) -> list[dict]:
    """Returns the rows that were logged to the offline W&B files of a run folder, in order."""
    tool = str(Path(sys.executable).with_name("wandb"))
    found = []
    for file in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        command = [tool, "leet", "inspect", "--json", str(file)]
        said = subprocess.run(command, capture_output=True, check=True).stdout
        records = [json.loads(line) for line in said.splitlines()]
        found += [record["history"]["item"] for record in records if record["type"] == "history"]
    return found


@pytest.mark.slow
def test_wandb_keeps_all_rows_of_user_callbacks_after_a_kill(tmp_path):
    (tmp_path / "own.py").write_text(CALLBACKS)
    typed = (
        "+experiment=rnnsearch50",
        *TINY,
        "logger=wandb",
        "hydra.run.dir=run",
        "resume=auto",
        "trainer.max_steps=8",
        "trainer.val_check_interval=4",
        "trainer.log_every_n_steps=1",
        "+callbacks.a._target_=own.Own",
        "+callbacks.a.name=train/own",
        "trust=[own]",
        "+callbacks.b._target_=own.Own",
        "+callbacks.b.name=mine/own",
        "+callbacks.c._target_=own.Direct",
    )
    place = "nmt.training.callbacks:Seeds.on_train_batch_start"
    ended = run("train", *typed, cwd=tmp_path, hook=f"kill({place!r}, 6)")
    assert ended.code == -signal.SIGKILL, ended.err
    ended = run("train", *typed, cwd=tmp_path)
    assert ended.code == 0, ended.err
    found = rows(tmp_path / "run")
    for name, factor in (("train/own", 1), ("mine/own", 1), ("test/own", 2)):
        values = {row[name] for row in found if name in row}
        assert values == {factor * float(update) for update in range(1, 9)}, name
    for name in ("train/nll_per_word", "valid/nll_per_word", "length/by_length/bleu"):
        assert any(name in row for row in found), name
    assert len({row["trainer/global_step"] for row in found if "train/nll_per_word" in row}) == 8


@pytest.mark.parametrize("everyone", [False, True])
@pytest.mark.slow
def test_the_log_of_a_stopped_run_can_be_read(tmp_path, everyone):
    """SIGTERM ends the run; under SLURM, W&B's service gets it, too. The log ends early, but is not damaged."""
    typed = ("+experiment=rnnsearch50", *TINY, "logger=wandb", "trainer.log_every_n_steps=1")
    typed += ("trainer.max_steps=100000", "hydra.run.dir=run")
    process = start("nmt.train", *typed, cwd=tmp_path)
    while not (tmp_path / "run/checkpoints/last.ckpt").exists():
        time.sleep(0.05)
    [first] = process.pids
    service = descendants(first)
    assert service
    for pid in (first, *service) if everyone else (first,):
        os.kill(pid, signal.SIGTERM)
    wait_until_gone([first, *service], 10)
    assert process.wait().code == -signal.SIGTERM
    assert any("train/nll_per_word" in row for row in rows(tmp_path / "run"))
