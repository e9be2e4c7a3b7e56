"""Whole commands that are killed, again and again, end as one that never was."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.processes import TINY, Ended, Process, start

MADE = "made"  # the folder that each of them writes into
IN_A_ROW = 3  # kills, before one comes to its end
KILLS = 12  # of each command: half of them at moments, half at file operations
TEXT = ("regime=tiny", "data.grammar.test_pairs=6", "data.grammar.by_length_pairs=7")
SILENT = ("logger=none", "trainer.progress=false")


@dataclass
class Command:
    """What is typed, and the files that are the same whenever it has ended."""

    typed: tuple[str, ...]
    same: tuple[str, ...]


COMMANDS = {
    "prepare": Command(
        (*TEXT, "data.filters.duplicates=pair", f"data.cache={MADE}"),
        ("*/*",),
    ),
    "evaluate": Command(
        ("checkpoint=one/checkpoints/best.ckpt", f"hydra.run.dir={MADE}", *SILENT),
        ("results.json", "report.html", "live.bin", "translations/*", "alignments/*", "figures/*"),
    ),
    "compare": Command(
        ("runs=[one,other]", "resamples=20", f"output={MADE}", "figures=svg"),
        ("comparison.html", "tables/*", "figures/*"),
    ),
    "baseline": Command(
        (*TEXT, "data.grammar.train_pairs=300", "phrase_based.tune_sentences=8", *SILENT[1:],
         f"hydra.run.dir={MADE}", f"data.cache={MADE}/cache"),
        ("results.json", "translations/*", "cache/*/*"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the finished runs `one` and `other`."""
    folder = tmp_path_factory.mktemp("killed")
    for name, seed in (("one", 1), ("other", 2)):
        typed = (*TINY, f"seed={seed}", "trainer.max_steps=3", f"hydra.run.dir={name}")
        ended = start("nmt.train", *typed, "data.cache=cache", cwd=folder).wait()
        assert ended.code == 0, ended.err
    return folder


def files(folder: Path, patterns: tuple[str, ...] = ("**/*",)) -> dict[str, bytes]:
    """Contents by place in a folder; no hidden files, and no times."""
    found = {}
    for path in itertools.chain.from_iterable(folder.glob(pattern) for pattern in patterns):
        place = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in place.parts):
            content = path.read_bytes()
            if path.name == "results.json":
                told = json.loads(content)
                told["train"].pop("hours", None)
                content = json.dumps(told).encode()
            found[str(place)] = content
    return found


def group(pid: int) -> list[str]:
    """What runs in the process group of a program that was killed."""
    left = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().rpartition(")")
        except OSError:  # it has ended
            continue
        state, _, leader = fields.split()[:3]
        if int(leader) == pid and state != "Z":
            left.append(name)
    return left


def begin(command: str, work: Path, operation: int | None = None) -> Process:
    """Starts a command, which is killed before a file operation of this number, if any."""
    hook = ""
    if operation is not None:
        hook = (
            "from pathlib import Path; from tests.helpers.faults import hook as at_operation\n"
            f"at_operation(Path({str(work / MADE)!r}), {operation}, None, lambda name: None)"
        )
    return start(f"nmt.{command}", *COMMANDS[command].typed, cwd=work, hook=hook, timeout=900)


def killed(command: str, work: Path, seconds: float) -> Iterator[tuple[str, Process, Ended]]:
    """Attempts that were killed, in turn at a moment and at a file operation."""
    draw, latest, most = random.Random(16), seconds, 60
    for number in itertools.count():
        if number % 2:
            operation = draw.randint(1, most)
            process = begin(command, work, operation)
            told = f"operation {operation}"
        else:
            moment = draw.uniform(0, latest)
            process = begin(command, work)
            time.sleep(moment)
            with contextlib.suppress(ProcessLookupError):  # it has ended
                process.send_signal(signal.SIGKILL)
            told = f"{moment:.1f} s"
        ended = process.wait()
        if ended.code == -signal.SIGKILL:
            yield told, process, ended
            continue
        shutil.rmtree(work / MADE)  # it has ended, or found that it had
        if number % 2:
            most = max(1, operation - 1)
        else:
            latest = moment


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's tables")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_killed_ends_as_if_it_had_not_been(work, command):
    """What has its final name is whole after every kill, no process is left, no run is touched."""
    if command == "baseline":
        pytest.importorskip("thot", reason="the extra 'phrase-based' is not installed")
    made, same = work / MADE, COMMANDS[command].same
    runs = [files(work / name) for name in ("one", "other")]
    began = time.monotonic()
    ended = begin(command, work).wait()
    seconds = time.monotonic() - began
    assert ended.code == 0, ended.err
    whole = files(made, same)
    assert whole
    shutil.rmtree(made)
    for number, (moment, process, ended) in enumerate(killed(command, work, seconds), 1):
        assert "Traceback" not in ended.err, ended.err
        end = time.monotonic() + 30
        while left := group(process.pids[0]):
            assert time.monotonic() < end, (moment, left)
            time.sleep(0.1)
        if made.exists():
            assert files(made, same).items() <= whole.items(), moment
        if number % IN_A_ROW == 0:
            if not (made / "results.json").exists():  # else it was finished
                ended = begin(command, work).wait()
                assert ended.code == 0, (moment, ended.err)
                assert "Traceback" not in ended.err
            assert files(made, same) == whole, moment
            hidden = {path.name for path in made.rglob(".*") if path.name != ".hydra"}
            assert not [name for name in hidden if not name.endswith(".lock")], moment
            shutil.rmtree(made)
        if number == KILLS:
            break
    assert [files(work / name) for name in ("one", "other")] == runs
