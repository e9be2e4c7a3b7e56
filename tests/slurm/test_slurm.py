"""Jobs of a real SLURM that are stopped, queued again, and go on as if nothing had happened."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.slurm.conftest import Cluster, Job

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
