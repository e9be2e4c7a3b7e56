"""A SLURM of one node, made by `cluster.sh`, and the script of docs/devices.md as a job of it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.documentation import files
from tests.helpers.server import ENVIRONMENT

SCRIPT = ROOT / "tests/slurm/cluster.sh"
PROGRAMS = ("slurmctld", "slurmd", "munged")
SECONDS = 900  # for a job to reach a state, on a machine that has much else to do

# 0.2 seconds an update, so that there is time to stop it, and no figures, which take most of the time
SLOW = """
import time
import pytorch_lightning as pl
from tests.helpers import hooks
hooks.no_figures()
class Slow(pl.Callback):
    def on_train_batch_end(self, *arguments):
        time.sleep(0.2)
"""
RANKS = 2
OPTIONS = (
    "regime=tiny trainer=ddp trainer.accelerator=cpu trainer.enable_progress_bar=false data.cache=cache"
    " trainer.max_steps=120 trainer.val_check_interval=60 trainer.log_every_n_steps=5 data.batch_size=24"
    " report.heatmaps=0 +callbacks.slow._target_=slow.Slow"
)


class Cluster:
    """The cluster, whose jobs run in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "slow.py").write_text(SLOW)
        path = os.pathsep.join([str(ROOT), str(self.work), os.environ.get("PYTHONPATH", "")])
        self.environment = {
            **os.environ,
            **ENVIRONMENT,
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PYTHONPATH": path,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin",
        }

    def run(self, *command: str) -> str:
        """What a command prints, run where jobs run; raises CalledProcessError."""
        done = subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout

    def submit(self, *options: str, ranks: int = RANKS, overrides: str = "") -> Job:
        """The documentation's script, with fewer ranks of a smaller model."""
        text = files((ROOT / "docs/devices.md").read_text())["job.sh"]
        for pattern, instead in (
            (r"--nodes=2 --ntasks-per-node=8 .*", f"--nodes=1 --ntasks-per-node={ranks}"),
            (r"--time=24:00:00 ", "--time=30 "),
            (r"uv run python", "python"),
            (r"--signal=USR1@300", "--signal=USR1@60"),
            (r"(?s)\+experiment=rnnsearch50.* resume=auto", f"{OPTIONS} {overrides} resume=auto"),
        ):
            text, count = re.subn(pattern, instead, text)
            assert count == 1, pattern
        text = text.replace(" trainer=ddp ", f" trainer=ddp trainer.devices={ranks} ")
        file = self.work / "job.sh"
        file.write_text(text)
        return Job(self, self.run("sbatch", "--parsable", "--output=%j.out", *options, str(file)))

    def preempt(self, job: Job) -> None:
        """Has a job of a few seconds take the whole machine."""
        options = ("--partition=urgent", "--ntasks=4", "--output=/dev/null", "--time=1")
        self.run("sbatch", *options, "--wrap", "sleep 3")


class Job:
    """A job that was submitted; `number` is SLURM's."""

    def __init__(self, cluster: Cluster, said: str) -> None:
        self.cluster = cluster
        self.number = said.strip()

    @property
    def folder(self) -> Path:
        return self.cluster.work / f"outputs/slurm-{self.number}"

    @property
    def output(self) -> str:
        file = self.cluster.work / f"{self.number}.out"
        return file.read_text() if file.exists() else ""

    def state(self) -> dict[str, str]:
        """What SLURM says of it, by name."""
        said = self.cluster.run("scontrol", "show", "job", "--oneliner", self.number)
        return dict(re.findall(r"\b(\w+)=(\S+)", said))

    def restarts(self) -> int:
        return int(self.state()["Restarts"])

    def signal(self, name: str) -> None:
        """Sends a signal as SLURM itself does before a time limit."""
        self.cluster.run("scancel", f"--signal={name}", self.number)

    def wait_for(self, what: str, *, restarts: int | None = None) -> None:
        """Waits until it is in a state, or its run has logged a text, after so many restarts."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            state = self.state()
            again = restarts is None or int(state["Restarts"]) >= restarts
            parts = self.output.split("DUE TO JOB REQUEUE")
            if again and (state["JobState"] == what or what in parts[-1]):
                return
            if state["JobState"] in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"):
                break
            time.sleep(0.2)
        pytest.fail(f"job {self.number}: no {what}; {self.state()}\n{self.output}")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    path = f"{os.environ['PATH']}:/usr/sbin"
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        pytest.skip(f"no SLURM here: {', '.join(missing)} missing (Debian: slurm-wlm, munge)")
    # a short name, for the path of a socket; a job that was just cancelled may still write there
    with tempfile.TemporaryDirectory(prefix="slurm", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            subprocess.run(["bash", str(SCRIPT), "start", name], check=True, timeout=60)
            yield Cluster(folder)
        finally:
            with contextlib.suppress(subprocess.SubprocessError):
                subprocess.run(["bash", str(SCRIPT), "stop", name], timeout=60)
