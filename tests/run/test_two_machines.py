"""The torchrun lines of docs/distributed.md on two machines: killed, started again, equal in the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers import ROOT
from tests.helpers.machines import Machine, two_machines
from tests.helpers.processes import TINY
from tests.helpers.server import ENVIRONMENT

pytestmark = pytest.mark.slow

SECONDS = 900  # for the agents of a run to end, on a machine that has much else to do
UPDATES = 40
# 0.1 seconds an update, so that there is time to kill it
SLOW = """
import time
import pytorch_lightning as pl
class Slow(pl.Callback):
    def on_train_batch_end(self, *arguments):
        time.sleep(0.1)
"""
OPTIONS = (
    *(each for each in TINY if each not in ("regime=tiny", "trainer=cpu")),
    *("trainer.accelerator=cpu", f"trainer.max_steps={UPDATES}", "trainer.valid_every=10"),
    *("data.batch_size=24", "data.cache=cache", "report.figures=[]"),
    *("+callbacks.slow._target_=slow.Slow", "resume=auto"),
)


class Run:
    """A run of two machines with one rank each, in a folder that both see."""

    def __init__(self, machines: Sequence[Machine], folder: Path, name: str) -> None:
        self.machines, self.work, self.name = machines, folder, name
        self.folder = folder / f"outputs/torchrun-{name}"
        self.parts = 0

    def command(self) -> list[str]:
        """The documentation's lines, with one rank a machine of a smaller model."""
        page = (ROOT / "docs/distributed.md").read_text()
        typed = re.search(r"(?m)^    (torchrun --nnodes=2 (?:.*\\\n)*.*)$", page)
        assert typed
        words = typed[1].replace("\\\n", " ").split()
        kept = words.index("-m") + 2
        launch = [
            {"--nproc-per-node=8": "--nproc-per-node=1", "--rdzv-id=lengths-1": f"--rdzv-id={self.name}",
             "--rdzv-endpoint=HOST:29500": f"--rdzv-endpoint={self.machines[0].name}:29500"}.get(word, word)
            for word in words[1:kept]
        ]  # fmt: skip
        given = {"trainer.devices=8": "trainer.devices=1", "regime=paper": "regime=tiny"}
        asked = [given.get(word, word) for word in words[kept:]]
        return [sys.executable, "-m", "torch.distributed.run", *launch, *asked, *OPTIONS]

    def start(self) -> list[subprocess.Popen[bytes]]:
        """The agents of both machines."""
        self.parts += 1
        path = os.pathsep.join([str(ROOT), str(self.work)])
        environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}
        agents = []
        for number, machine in enumerate(self.machines):
            with self.output(number).open("wb") as stream:
                agents.append(
                    machine.start(
                        *self.command(),
                        folder=self.work,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=stream,
                    )
                )
        return agents

    def output(self, number: int) -> Path:
        """What the agent and the rank of a machine have printed, in this part of the run."""
        return self.work / f"{self.name}-{self.parts}-{number}.txt"

    def wait_for(self, text: str) -> None:
        """Until the first rank has logged a text."""
        end = time.monotonic() + SECONDS
        while text not in self.output(0).read_text():
            assert time.monotonic() < end, self.said()
            time.sleep(0.1)

    def said(self) -> str:
        return "\n".join(self.output(number).read_text() for number in (0, 1))

    def weights(self) -> dict[str, Any]:
        content = torch.load(self.folder / "checkpoints/last.ckpt", weights_only=True)
        assert content["global_step"] == UPDATES
        state: dict[str, Any] = content["state_dict"]
        return state


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Machine]]:
    with two_machines(tmp_path_factory.mktemp("machines")) as made:
        yield made


@pytest.fixture(scope="module")
def unbroken(machines: Sequence[Machine], tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("shared")
    (folder / "slow.py").write_text(SLOW)
    run = Run(machines, folder, "unbroken")
    codes = [agent.wait(SECONDS) for agent in run.start()]
    assert codes == [0, 0], run.said()
    return run


@pytest.mark.parametrize("killed", [0, 1])
def test_a_rank_that_is_killed_and_all_agents_started_again(machines, unbroken, killed):
    """All agents end; started again with the same lines they end with the weights of an unbroken run."""
    run = Run(machines, unbroken.work, f"killed-{killed}")
    agents = run.start()
    run.wait_for("update 20: development")  # the checkpoint of update 10 is there
    os.kill(rank_of(agents[killed].pid), signal.SIGKILL)
    codes = [agent.wait(SECONDS) for agent in agents]
    assert 0 not in codes, run.said()
    assert not (run.folder / "results.json").exists()
    codes = [agent.wait(SECONDS) for agent in run.start()]
    assert codes == [0, 0], run.said()
    assert run.said().count("resuming from") == 1
    assert " INFO " not in run.output(1).read_text()  # the first rank alone says something
    expected, found = unbroken.weights(), run.weights()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name
    assert (run.folder / "results.json").is_file()


def rank_of(agent: int) -> int:
    """The process that an agent has started."""
    waiting = [agent]
    while waiting:
        process = waiting.pop()
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            waiting += map(int, task.read_text().split())
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        if process != agent and b"nmt.train" in words and b"torch.distributed.run" not in words:
            return process
    raise AssertionError("no rank runs")
