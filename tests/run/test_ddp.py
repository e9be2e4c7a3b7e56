"""One, two and three processes compute the same thing."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.processes import TINY, run, run_afresh
from tests.helpers.server import ENVIRONMENT

UPDATES = ("trainer.max_steps=20", "data.batch_size=24")


def ddp(ranks: int) -> tuple[str, ...]:
    return ("trainer=ddp", "trainer.accelerator=cpu", f"trainer.devices={ranks}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run `one` of one process."""
    folder = tmp_path_factory.mktemp("ddp")
    assert train(folder, "one") == [0]
    return folder


def train(folder: Path, name: str, *options: str, ranks: int = 1, hook: str = "") -> list[int]:
    updates = UPDATES[: 1 if "data.batch_by=tokens" in options else None]
    options = (*TINY, *updates, f"hydra.run.dir={name}", "data.cache=cache", *options)
    return run("train", *options, cwd=folder, ranks=ranks, hook=hook).codes


def weights(folder: Path, name: str) -> dict[str, torch.Tensor]:
    content = torch.load(folder / name / "checkpoints/last.ckpt", weights_only=True)
    assert content["global_step"] == 20
    state: dict[str, torch.Tensor] = content["state_dict"]
    return state


def results(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / name / "results.json").read_text())
    return found


# what a process listens on, noted in its validations
LISTENERS = """
import os, pathlib
import nmt.training.checkpoints as module
real = module.Checkpoints.on_validation_start
def listening(self, *arguments):
    inodes = {link.readlink().name for link in pathlib.Path("/proc/self/fd").iterdir()
              if link.is_symlink() and str(link.readlink()).startswith("socket:")}
    found = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/self/net", table).read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == "0A" and f"socket:[{columns[9]}]" in inodes:
                found.append(columns[1].split(":")[0])
    pathlib.Path("ranks2x1-listening-" + os.environ["LOCAL_RANK"]).write_text(" ".join(found))
    return real(self, *arguments)
module.Checkpoints.on_validation_start = listening
"""


@pytest.mark.parametrize(
    ("ranks", "accumulate"),
    [(2, 1), *(pytest.param(ranks, 2, marks=pytest.mark.slow) for ranks in (1, 2))],
)
def test_the_same_weights_after_20_updates(folder, ranks, accumulate):
    """Within what another order of summation makes of float32.

    The development and test sets are a batch each, of which the second rank has no sentence.
    """
    name = f"ranks{ranks}x{accumulate}"
    options = ddp(ranks) if ranks > 1 else ()
    hook = LISTENERS if name == "ranks2x1" and Path("/proc/self/net/tcp").exists() else ""
    options = (*options, f"trainer.accumulate={accumulate}")
    codes = train(folder, name, *options, ranks=ranks, hook=hook)
    assert codes == [0] * ranks
    for key, value in weights(folder, "one").items():
        torch.testing.assert_close(weights(folder, name)[key], value, rtol=1e-4, atol=2e-6)
    one, other = results(folder, "one"), results(folder, name)
    for at, entry in enumerate(one["history"]):
        assert other["history"][at] == pytest.approx(entry, rel=1e-4)
    assert other["train"]["nll_per_sentence"] == pytest.approx(
        one["train"]["nll_per_sentence"], rel=1e-5
    )
    assert other["test"]["by_length"]["pairs"] == 7


def test_the_same_weights_from_batches_by_tokens(folder):
    """Few enough for batches of long sentences to have fewer of them than there are shares."""
    tokens = ("data.batch_by=tokens", "data.batch_tokens=100", "evaluation.train_sample=0")
    tokens += (
        "optimizer.options.eps=1e-4",
    )  # so few sentences leave gradients that Adam would blow up
    assert train(folder, "tokens", *tokens, ranks=1) == [0]
    options = (*tokens, *ddp(2), "trainer.accumulate=2")
    assert train(folder, "tokens2x2", *options, ranks=2) == [0, 0]
    for key, value in weights(folder, "tokens").items():
        torch.testing.assert_close(weights(folder, "tokens2x2")[key], value, rtol=1e-4, atol=2e-6)
    one, other = results(folder, "tokens"), results(folder, "tokens2x2")
    for at, entry in enumerate(one["history"]):
        assert other["history"][at] == pytest.approx(entry, rel=1e-4)
    assert one["train"]["epochs"] == other["train"]["epochs"]
    assert one["train"]["epochs"] < 0.5 < results(folder, "one")["train"]["epochs"]


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_everything_under_test_is_identical(folder, ranks):
    """6 and 7 sentences in batches of 2: three and four, so that each rank's share is another."""
    for count in (1, ranks):
        name = f"evaluated{count}"
        if (folder / name).exists():
            continue
        options = [
            "checkpoint=one/checkpoints/best.ckpt",
            f"hydra.run.dir={name}",
            "trainer.progress=false",
            "search.batch_size=2",
            *(ddp(count) if count > 1 else ()),
        ]
        ended = run("evaluate", *options, "logger=none", cwd=folder, ranks=count)
        assert ended.codes == [0] * count, ended.err
    assert results(folder, "evaluated1")["test"] == results(folder, f"evaluated{ranks}")["test"]
    for file in sorted((folder / "evaluated1").rglob("*.jsonl")):
        other = folder / f"evaluated{ranks}" / file.relative_to(folder / "evaluated1")
        assert other.read_bytes() == file.read_bytes()


def test_only_the_first_rank_writes(folder):
    """A run of two processes leaves the files of a run of one, once."""

    def files(name: str) -> set[str]:
        found = (folder / name).rglob("*")
        return {str(path.relative_to(folder / name)) for path in found if path.is_file()}

    assert files("ranks2x1") == files("one")
    log = (folder / "ranks2x1/train.log").read_text()
    assert log.count("training RNNsearch") == 1


@pytest.mark.parametrize(("devices", "accumulate"), [(5, 1), (1, 7), (2, 8)])
def test_a_batch_that_cannot_be_shared_out_is_refused(folder, devices, accumulate):
    options = (*ddp(devices), f"trainer.accumulate={accumulate}", "data.batch_size=24")
    ended = run("train", *TINY, *options, cwd=folder)
    assert ended.code == 2
    assert "data.batch_size=24" in ended.err
    assert f"{devices * accumulate}" in ended.err


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="reads Linux's tables")
def test_nothing_listens_on_a_network_address(folder):
    for rank in (0, 1):
        addresses = (folder / f"ranks2x1-listening-{rank}").read_text().split()
        assert set(addresses) <= {"0100007F"}  # 127.0.0.1
    assert (folder / "ranks2x1-listening-0").read_text()


@pytest.mark.slow
def test_the_command_starts_its_own_ranks(folder):
    """Through the command line, with figures; one folder, and the weights of one process."""
    options = (*TINY, *UPDATES, "hydra.run.dir=real", "data.cache=cache", *ddp(2))
    ended = run_afresh("nmt.train", *options, cwd=folder)
    assert ended.code == 0, ended.err
    for key, value in weights(folder, "one").items():
        torch.testing.assert_close(weights(folder, "real")[key], value, rtol=1e-4, atol=2e-6)
    assert (folder / "real/report.html").is_file()


@pytest.mark.slow
def test_the_first_rank_alone_shows_something(folder):
    """Each rank has a terminal of its own, and the text is prepared: one draws bars, one nothing."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    options = (*TINY, *UPDATES, "hydra.run.dir=bars", "data.cache=bars_cache", *ddp(2))
    options += ("report.figures=[]",)
    ranks, terminals = [], []
    for rank in ("0", "1"):
        terminal, inside = pty.openpty()
        termios.tcsetwinsize(inside, (24, 120))
        alone = {"LOCAL_RANK": rank, "NODE_RANK": "0", "WORLD_SIZE": "2"}
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        ranks.append(
            subprocess.Popen(
                [sys.executable, "-m", "nmt.train", *options, "trainer.progress=true"],
                cwd=folder,
                env={**os.environ, **ENVIRONMENT, **alone, **meeting},
                stdin=inside,
                stdout=inside,
                stderr=inside,
            )
        )
        os.close(inside)
        terminals.append(terminal)
    with ThreadPoolExecutor(2) as readers:
        first, second = readers.map(everything, terminals)
    assert [rank.wait(300) for rank in ranks] == [0, 0], first + second
    assert second == ""
    for bar in ("training: 100%|", "translating test: 100%|", "translating by_length: 100%|"):
        assert bar in first, first
    for line in (" INFO prepared text:", " INFO training RNNsearch", " INFO test: BLEU"):
        assert first.count(line) == 1, first
    assert " WARNING " not in first


def everything(terminal: int) -> str:
    """What is shown on a terminal until the last program that has it ends."""
    shown = b""
    with contextlib.suppress(OSError):  # Linux's end of a terminal
        while part := os.read(terminal, 65536):
            shown += part
    os.close(terminal)
    return shown.decode()


@pytest.mark.slow
def test_torchrun(folder):
    """All ranks share a folder named after the job; they prepare the text at once."""
    torchrun = ("torch.distributed.run", "--standalone", "--nproc-per-node=2")
    options = (*TINY, *UPDATES, "data.cache=another_cache", *ddp(2))
    ended = run_afresh(*torchrun, "-m", "nmt.train", *options, cwd=folder)
    assert ended.code == 0, ended.err
    (made,) = (folder / "outputs").glob("torchrun-*")
    for key, value in weights(folder, f"outputs/{made.name}").items():
        torch.testing.assert_close(weights(folder, "one")[key], value, rtol=1e-4, atol=2e-6)


@pytest.mark.slow
def test_a_rank_that_fails_ends_the_run(folder):
    """The second process is killed: the first ends, and says so, instead of waiting for it."""
    hook = (
        "import os\nif os.environ['LOCAL_RANK'] == '1':"
        " kill('nmt.models.base:Translator.training_step', 5)"
    )
    options = (*TINY, "hydra.run.dir=broken", "data.cache=cache", *ddp(2))
    ended = run("train", *options, cwd=folder, ranks=2, hook=hook)
    assert ended.codes == [1, -9]
    assert "nmt: another process of the run ended" in ended.err


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads Linux's tables")
@pytest.mark.parametrize("killed", [0, 1])
def test_a_rank_killed_at_any_moment(folder, killed):
    """From the start of the second rank, through their meeting, to some updates: ten moments.

    The other ends within 30 seconds and says in one line which rank has died.
    """
    options = (*TINY, "trainer.max_steps=100000", "data.cache=cache", *ddp(2))
    for number, moment in enumerate((0, 0.5, 1, 2, 3, 4, 5, 7, 9, 12)):
        err = folder / f"killed{killed}-{number}"
        with err.open("w") as stream:
            first = subprocess.Popen(
                [sys.executable, "-m", "nmt.train", *options, f"hydra.run.dir={err.name}.run"],
                cwd=folder,
                env={**os.environ, **ENVIRONMENT},
                stdout=subprocess.DEVNULL,
                stderr=stream,
            )
        while not (second := rank_1(first.pid)):
            assert first.poll() is None, err.read_text()
            time.sleep(0.02)
        time.sleep(moment)
        os.kill((first.pid, second)[killed], signal.SIGKILL)
        end = time.monotonic() + 30
        while first.poll() is None or Path(f"/proc/{second}").exists():
            assert time.monotonic() < end, (
                f"rank {1 - killed} still runs, {moment} s: {err.read_text()}"
            )
            time.sleep(0.1)
        assert first.returncode == (1 if killed else -signal.SIGKILL)
        said = [line for line in err.read_text().splitlines() if line.startswith("nmt:")]
        expected = (
            "nmt: rank 1: rank 0 ended or was killed; ",
            "nmt: rank 1 was killed by SIGKILL; ",
        )[killed]
        assert said == [f"{expected}the earlier checkpoints are intact"], err.read_text()
        assert "Traceback" not in err.read_text()


def rank_1(rank_0: int) -> int:
    """The process that a process has started as rank 1; 0 before.

    Told by its environment: whatever else is forked has the same command line for a moment.
    """
    for task in Path(f"/proc/{rank_0}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            with contextlib.suppress(OSError):  # it has ended
                if b"LOCAL_RANK=1" in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
                    return child
    return 0
