"""Runs the commands like a user: speed of training, validation and checkpoints; kill and resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch

from benchmarks.gpu.setting import Findings, Setting


def training(setting: Setting, *typed: str) -> list[str]:
    """Returns the command of every training here: the built-in corpus, no figures."""
    return [
        sys.executable, "-m", "nmt.train", "+experiment=rnnsearch50", "logger=csv",
        f"data={'grammar_tiny' if setting.rehearse else 'grammar'}",
        "trainer.enable_progress_bar=false", "report.heatmaps=0", "report.figures=[]", "evaluation.resamples=0",
        f"trainer={'cpu' if setting.rehearse else 'gpu'}", *typed,
    ]  # fmt: skip


def train(setting: Setting, findings: Findings) -> None:
    """Measures updates per second of `nmt.train` at paper sizes."""
    run = setting.folder / "run"
    size = ["regime=tiny", "trainer.max_steps=8", "trainer.val_check_interval=4"]
    if not setting.rehearse:
        size = ["regime=paper", "trainer.max_steps=2000", "trainer.val_check_interval=1000"]
    subprocess.run(training(setting, *size, f"hydra.run.dir={run}"), check=True)
    content = json.loads((run / "results.json").read_text())
    rate = content["train"]["sentences_per_second"] / content["config"]["data"]["batch_size"]
    findings.note(train=content["train"], updates_per_s=rate)


def resume(setting: Setting, findings: Findings) -> None:
    """Checks that a killed and resumed run ends with the bits of one that was not; then uses it."""
    size = ["regime=tiny", "trainer.max_steps=16", "trainer.val_check_interval=4"]
    if not setting.rehearse:
        size = ["regime=tiny", "trainer.max_steps=60", "trainer.val_check_interval=20"]
        size += ["size=laptop", "data.batch_size=80"]
    typed = training(setting, *size, "model.dropout=0.2", "trainer.precision=bf16-mixed")
    straight, killed = setting.folder / "straight", setting.folder / "killed"
    subprocess.run([*typed, f"hydra.run.dir={straight}"], check=True)
    process = subprocess.Popen([*typed, f"hydra.run.dir={killed}"])
    while process.poll() is None and not (killed / "checkpoints/last.ckpt").exists():
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    findings.check("exit code of the killed run", process.wait(), equals=-signal.SIGKILL)
    subprocess.run([*typed[:3], f"resume={killed}"], check=True)
    one, other = weights(straight), weights(killed)
    different = [name for name, value in one.items() if not torch.equal(value, other[name])]
    findings.check("weights of other bits", different, equals=[])
    same = (killed / "scores.csv").read_text() == (straight / "scores.csv").read_text()
    findings.check("scores are equal", same, equals=True)
    source = setting.folder / "source.txt"
    source.write_text("the house is small .\nwe know that the old woman sees the dog .\n")
    command = [sys.executable, "-m", "nmt.translate", f"checkpoint={straight}"]
    with source.open() as lines:
        out = subprocess.run(command, stdin=lines, stdout=subprocess.PIPE, text=True, check=True)
    findings.check("lines translated", out.stdout.count("\n"), equals=2)


def weights(run: Path) -> dict[str, torch.Tensor]:
    """Reads the weights in a run's last checkpoint."""
    content = torch.load(run / "checkpoints/last.ckpt", map_location="cpu", weights_only=True)
    found: dict[str, torch.Tensor] = content["state_dict"]
    return found
