"""A small Hydra application that sweeps are made of, run the way a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.processes import Ended, Process, start

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
    if cfg.crash:
        raise RuntimeError("no luck")
    def stop(number, frame):
        (folder / "checkpoint").write_text(str(number))
        sys.exit(128 + number)
    if not cfg.stubborn:
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGTERM, stop)
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    (folder / "started").touch()
    while time.time() < began + cfg.sleep and not (folder / "enough").exists():
        time.sleep(0.02)
    result = {
        "config": OmegaConf.to_container(cfg, resolve=True),
        "began": began,
        "ended": time.time(),
        "pid": os.getpid(),
        "num": HydraConfig.get().job.num,
        "argv": sys.argv[1:],
        "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "threads": os.environ.get("OMP_NUM_THREADS"),
        "ranks": [k for k in ("LOCAL_RANK", "MASTER_PORT", "PL_GLOBAL_SEED") if k in os.environ],
        "mode": HydraConfig.get().mode.name,
    }
    (folder / "results.json").write_text(json.dumps(result))
    return cfg.seed * 1.5

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
crash: false
stubborn: false
sleep: 0.0
folder: ${hydra:sweep.dir}
trainer: {devices: 1, accelerator: auto}
hydra:
  launcher: {grace_seconds: 20}
  sweep: {dir: "sweep/${now:%H-%M-%S-%f}"}
"""


class App:
    """The application in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        package = folder / "small"
        (package / "conf").mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "app.py").write_text(APP)
        (package / "conf" / "app.yaml").write_text(CONFIG)

    def start(self, *arguments: str, hook: str = "fork_jobs()", **environ: str) -> Process:
        """Starts a sweep; without the `hook` its jobs are new interpreters, as a user's are."""
        options: dict[str, Any] = {"hook": hook, "env": environ, "timeout": 60}
        return start("small.app", "-m", *arguments, cwd=self.folder, **options)

    def sweep(self, *arguments: str, **options: str) -> tuple[int, str]:
        """Runs a sweep; its exit status and everything it has printed. `options` as of `start`."""
        return said(self.start(*arguments, **options).wait())

    def results(self, sweep: str = "s") -> dict[str, dict[str, Any]]:
        """What the finished jobs have written, by the name of their folder."""
        files = sorted((self.folder / sweep).glob("*/results.json"))
        return {file.parent.name: json.loads(file.read_text()) for file in files}


def said(ended: Ended) -> tuple[int, str]:
    """The exit status of a program, and everything it has printed."""
    return ended.code, ended.out + ended.err


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(tmp_path)
