"""A rank that dies ends the others, which say who it was, whatever they wait for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.training import ranks
from tests.helpers import ROOT

# Rank 0 starts rank 1, as Lightning does; both wait where no handler of a signal is called, in C.
WAITING = """
import ctypes, os, signal, subprocess, sys, time
from nmt.training import ranks
ranks.GRACE, ranks.STUCK = 0.2, 0.5
os.environ["LOCAL_RANK"] = sys.argv[1]
signal.signal(signal.SIGTERM, lambda *arguments: ranks.heard_sigterm())
watch = ranks.watch_ranks()
if sys.argv[1] == "0":
    environment = {**os.environ, ranks.STARTER: str(os.getpid())}
    other = subprocess.Popen([sys.executable, __file__, "1", sys.argv[2]], env=environment)
    watch.watch([other])
    print(other.pid, flush=True)
mutex = ctypes.create_string_buffer(128)
library = ctypes.CDLL(None)
library.pthread_mutex_lock(mutex)
if sys.argv[2] == "c":
    library.pthread_mutex_lock(mutex)  # for ever
while True:
    time.sleep(0.01)
"""


class Pair:
    """Two ranks, which both wait: in C (`c`), or where Python's handlers are called (`p`)."""

    def __init__(self, folder: Path, where: str = "c") -> None:
        program = folder / "waiting.py"
        program.write_text(WAITING)
        self.err = folder / "err"
        with self.err.open("w") as err:
            self.first = subprocess.Popen(
                [sys.executable, str(program), "0", where],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )
        assert self.first.stdout is not None
        self.second = int(self.first.stdout.readline())

    def said(self) -> str:
        """What they say until both have ended, within 30 seconds."""
        end = time.monotonic() + 30
        while self.first.poll() is None or running(self.second):
            assert time.monotonic() < end, "a rank still waits"
            time.sleep(0.02)
        return self.err.read_text()


def running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture
def pair(tmp_path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.first.kill()
    pair.first.wait()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's tables")
class TestKilled:
    @pytest.mark.parametrize("moment", [0, 0.02, 0.05, 0.1, 0.2])
    def test_rank_1(self, pair, moment):
        time.sleep(moment)
        os.kill(pair.second, signal.SIGKILL)
        assert pair.said() == f"nmt: rank 1 was killed by SIGKILL; {ranks.INTACT}\n"
        assert pair.first.returncode == 1

    @pytest.mark.parametrize("moment", [0, 0.02, 0.05, 0.1, 0.2])
    def test_rank_0(self, pair, moment):
        time.sleep(moment)
        os.kill(pair.first.pid, signal.SIGKILL)
        assert pair.said() == f"nmt: rank 1: rank 0 ended or was killed; {ranks.INTACT}\n"

    def test_a_signal_that_no_handler_hears_ends_a_rank(self, pair):
        time.sleep(0.5)
        pair.first.send_signal(signal.SIGTERM)
        expected = "nmt: stopped by SIGTERM while it waited for another rank\n"
        assert pair.said() == expected
        assert pair.first.returncode == 143

    def test_a_signal_that_a_handler_hears_does_not(self, tmp_path):
        pair = Pair(tmp_path, "p")
        time.sleep(0.5)
        pair.first.send_signal(signal.SIGTERM)
        time.sleep(1.5)
        assert pair.first.poll() is None
        pair.first.kill()
        pair.said()
        pair.first.wait()
