"""Jobs of a real SLURM that are stopped, queued again, and go on as if nothing had happened."""

from __future__ import annotations

import itertools
import json
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from hydra_plugins.nmt_process_launcher._jobs import signature
from tests.slurm.conftest import OPTIONS, Cluster, Job

pytestmark = pytest.mark.slow

TRAINING = "training RNNsearch"


def weights(folder: Path, updates: int = 120) -> dict[str, Any]:
    content = torch.load(folder / "checkpoints/last.ckpt", weights_only=True)
    assert content["global_step"] == updates
    state: dict[str, Any] = content["state_dict"]
    return state


def assert_same(job: Job, unbroken: Job) -> None:
    """The same weights, bit for bit."""
    expected, found = weights(unbroken.folder), weights(job.folder)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
    assert (job.folder / "results.json").is_file()


@pytest.fixture(scope="module")
def unbroken(cluster: Cluster) -> Job:
    job = cluster.submit()
    job.wait_for("COMPLETED")
    return job


def test_a_job_that_is_warned_and_preempted_ends_as_if_it_had_not_been(cluster, unbroken):
    """SIGUSR1 in training (before a time limit), then a preemption with a grace time."""
    job = cluster.submit("--partition=grace")
    job.wait_for(TRAINING)
    time.sleep(3)
    job.signal("USR1")
    job.wait_for(TRAINING, restarts=1)
    time.sleep(3)
    cluster.preempt(job)
    job.wait_for(TRAINING, restarts=2)
    job.wait_for("COMPLETED")
    assert job.restarts() == 2
    assert "stopped by SIGUSR1; resume with" in job.output
    assert "stopped by SIGTERM; resume with" in job.output
    assert job.output.count("resuming from") == 2
    assert "Traceback" not in job.output
    assert_same(job, unbroken)


def test_a_preemption_without_grace(cluster, unbroken):
    job = cluster.submit("--partition=graceless")
    job.wait_for(TRAINING)
    time.sleep(3)
    cluster.preempt(job)
    job.wait_for("COMPLETED")
    assert job.restarts() == 1
    assert_same(job, unbroken)


def test_scancel_ends_a_job(cluster):
    """It is saved, and not queued again."""
    job = cluster.submit("--partition=grace")
    job.wait_for(TRAINING)
    time.sleep(3)
    cluster.run("scancel", job.number)
    job.wait_for("CANCELLED")
    time.sleep(10)  # a job that is queued again would wait five seconds
    while job.state()["JobState"] == "COMPLETING":
        time.sleep(0.5)
    assert job.state()["JobState"] == "CANCELLED"
    assert job.restarts() == 0
    assert (job.folder / "checkpoints/last.ckpt").is_file()


def test_a_warning_at_any_moment_of_the_start(cluster):
    """From the moment that the processes are there to that of the first update."""
    job = cluster.submit(ranks=1)
    moments = (0, 0.1, 0.3, 0.7, 1.5, 3, 6, 10)
    for restarts, seconds in enumerate(moments):
        job.wait_for("RUNNING", restarts=restarts)
        while not job.runs():
            time.sleep(0.02)
        time.sleep(seconds)
        job.signal("USR1")
        job.wait_for("PENDING", restarts=restarts + 1)
    assert job.restarts() == len(moments)
    cluster.run("scancel", job.number)
    assert "Traceback" not in job.output


def test_a_sweep_with_submitit(cluster):
    """Two values of two keys, each a job of its own: the weights are those of a run without SLURM."""
    pytest.importorskip("submitit", reason="hydra-submitit-launcher is not installed")
    other = (
        "trainer=ddp",
        "trainer.accelerator",
        "trainer.max_steps",
        "trainer.valid",
        "+callbacks",
    )
    options = [option for option in OPTIONS.split() if not option.startswith(other)]
    options = [*options, "trainer=cpu", "trainer.max_steps=20", "trainer.val_check_interval=20"]
    options += ["logger=none", "stress.lengths=[]"]
    train = (sys.executable, "-m", "nmt.train", *options)
    launcher = ("partition=graceless", "timeout_min=30", "mem_gb=1", "cpus_per_task=1")
    cluster.run(
        *(*train[:3], "-m", *options, "hydra/launcher=submitit_slurm", "hydra.sweep.dir=swept"),
        *(f"hydra.launcher.{option}" for option in launcher),
        *("seed=1,2", "model.hidden=8,12"),
    )
    made = sorted(path.parent.name for path in cluster.work.glob("swept/*/results.json"))
    assert made == ["0", "1", "2", "3"]
    assert (cluster.work / "swept/comparison.html").is_file()
    for number, (seed, hidden) in enumerate(itertools.product((1, 2), (8, 12))):
        folder = f"alone{number}"
        chosen = (f"seed={seed}", f"model.hidden={hidden}")
        cluster.run(*train, *chosen, f"hydra.run.dir={folder}")
        expected = weights(cluster.work / folder, 20)
        found = weights(cluster.work / "swept" / str(number), 20)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], value) for name, value in expected.items())
        for run in (f"swept/{number}", folder):  # the line that a person types
            content = json.loads((cluster.work / run / "results.json").read_text())
            python, *words = shlex.split(content["command"])
            assert [python, *words[:2]] == ["python", *train[1:3]]
            assert signature(words[2:]) == signature([*options, *chosen])
