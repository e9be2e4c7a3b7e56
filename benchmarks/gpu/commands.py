"""Checks of the commands: the speed of training, DDP, and a run that is killed and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch

from benchmarks.gpu.setting import Findings, Setting


class Clock(pl.Callback):
    """Writes to `file` how many updates run per second before, and after, the first log entry."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)
        self.ends: list[float] = []

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        self.ends.append(time.perf_counter())

    def on_train_end(self, trainer: pl.Trainer, *_: Any) -> None:
        log = trainer.log_every_n_steps  # type: ignore[attr-defined]
        spans = {
            "before_log": self.ends[log // 4 : log - 1],
            "after_log": self.ends[log : 2 * log - 1],
        }
        rates = {name: (len(ends) - 1) / (ends[-1] - ends[0]) for name, ends in spans.items()}
        self.file.write_text(json.dumps(rates))


def command(setting: Setting, run: str, *overrides: str) -> list[str]:
    """Returns a command that trains on the built-in corpus in the folder `run` and draws no figures."""
    return [
        sys.executable, "-m", "nmt.train", "+experiment=rnnsearch50", "logger=csv",
        f"data={'grammar_tiny' if setting.rehearse else 'grammar'}",
        "trainer.enable_progress_bar=false", "report.figures=[]",
        "evaluation.resamples=0", f"trainer={'cpu' if setting.rehearse else 'gpu'}", *overrides,
        f"hydra.run.dir={setting.folder / run}",
    ]  # fmt: skip


def short(setting: Setting, run: str, *overrides: str) -> list[str]:
    """Returns the command of a short training in bf16 with dropout, Triton kernels and CUDA graphs."""
    size = ["trainer.max_steps=12", "trainer.val_check_interval=4"]
    if not setting.rehearse:
        size = ["trainer.max_steps=60", "trainer.val_check_interval=20", "size=laptop"]
    return command(
        setting, run, "regime=tiny", *size, "model.dropout=0.2", "trainer.precision=bf16-mixed",
        "model.kernels=true", "model.graphs=true", *overrides,
    )  # fmt: skip


def train(setting: Setting, findings: Findings) -> None:
    """Measures the updates per second of `nmt.train` at paper sizes, with its default kernels and graphs."""
    clock = setting.folder / "clock.json"
    size = ["regime=tiny", "trainer.max_steps=8", "trainer.log_every_n_steps=4"]
    if not setting.rehearse:
        size = ["regime=paper", "trainer.max_steps=2000", "trainer.log_every_n_steps=1000"]
    overrides = f"+callbacks.clock={{_target_:benchmarks.gpu.commands.Clock,file:{clock}}}"
    last = f"trainer.val_check_interval={size[1].partition('=')[2]}"
    subprocess.run(command(setting, "run", *size, last, overrides), check=True)
    content = json.loads((setting.folder / "run/results.json").read_text())
    findings.note(train=content["train"], updates_per_s=json.loads(clock.read_text()))


def ddp(setting: Setting, findings: Findings) -> None:
    """Checks that DDP with one rank (NCCL on a GPU) gives the same bits as training without DDP.

    The check does not use `trainer=ddp`, which makes the gradients views of DDP's buckets. The rounding of the
    gradient norm would then depend on where the views begin. With `--rehearse` (on a CPU), DDP rounds some updates
    differently, so the check allows a tolerance.
    """
    strategies = {"alone": "auto", "ddp": "ddp_find_unused_parameters_false"}
    started = [
        subprocess.Popen(short(setting, run, f"trainer.strategy={name}"))
        for run, name in strategies.items()
    ]
    findings.check("exit codes", [each.wait() for each in started], equals=[0, 0])
    check_equal(setting, findings, *strategies, tolerance=0.01 * setting.rehearse)


def resume(setting: Setting, findings: Findings) -> None:
    """Checks that a killed and resumed run equals an uninterrupted run bit by bit, and can translate."""
    straight = subprocess.Popen(short(setting, "straight"))
    process = subprocess.Popen(short(setting, "killed"))
    killed = setting.folder / "killed"
    while process.poll() is None and not (killed / "checkpoints/last.ckpt").exists():
        time.sleep(0.01)
    process.kill()
    findings.check("exit code of the killed run", process.wait(), equals=-signal.SIGKILL)
    subprocess.run([sys.executable, "-m", "nmt.train", f"resume={killed}"], check=True)
    findings.check("exit code of the other run", straight.wait(), equals=0)
    check_equal(setting, findings, "straight", "killed")
    translate = [sys.executable, "-m", "nmt.translate", f"checkpoint={killed}"]
    source = "the house is small .\nwe know that the old woman sees the dog .\n"
    out = subprocess.run(translate, input=source, stdout=subprocess.PIPE, text=True, check=True)
    findings.check("lines translated", out.stdout.count("\n"), equals=2)


def check_equal(setting: Setting, findings: Findings, *runs: str, tolerance: float = 0) -> None:
    """Checks that the weights of two runs differ by at most `tolerance`; if it is 0, also compares scores."""
    folders = [setting.folder / run for run in runs]
    files = [folder / "checkpoints/last.ckpt" for folder in folders]
    one, other = (
        torch.load(file, map_location="cpu", weights_only=True)["state_dict"] for file in files
    )
    apart = max(float((value - other[name]).abs().max()) for name, value in one.items())
    findings.check("largest difference of a weight", apart, at_most=tolerance)
    if not tolerance:
        scores = [(folder / "scores.csv").read_text() for folder in folders]
        findings.check("scores are equal", scores[0] == scores[1], equals=True)
