"""`python -m benchmarks` and `benchmarks.peers`: figures in lines of JSON, and going on after a stop."""

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest

from benchmarks import __main__ as program
from benchmarks import work
from benchmarks.lines import Lines
from benchmarks.peers import __main__ as peers
from benchmarks.peers.toolkits import TOOLKITS, own_multiply_adds
from tests.helpers import ROOT

TINY = work.Size("laptop", 12, 8, 12, 6, 60, 5, "adam")


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    monkeypatch.setitem(work.SIZES, "laptop", TINY)
    for module in (program, work):
        monkeypatch.setattr(module, "BATCH", 6)
    return tmp_path / "out.jsonl"


def run(monkeypatch, module, *typed):
    monkeypatch.setattr(sys, "argv", ["benchmarks", *map(str, typed)])
    module.main()


def test_training_and_decoding(tiny, monkeypatch, capsys):
    typed = ("--size", "laptop", "--part", "training", "decoding", "--rounds", 1, "--out", tiny)
    run(monkeypatch, program, *typed)
    lines = [json.loads(line) for line in tiny.read_text().splitlines()]
    assert [line["part"] for line in lines] == ["training"] * 4 + ["decoding"] * 6
    assert (lines[0]["version"], lines[0]["ratio"]) == ("plain float32", 1)
    assert all(line["sentences_per_s"] > 0 for line in lines)
    printed = capsys.readouterr().out
    run(monkeypatch, program, *typed)  # from the file
    assert capsys.readouterr().out == printed


class Peer:
    """A toolkit that takes a second for everything."""

    version, own_order = "1.0", "mixed"

    def __init__(self, folder, size, threads):
        pass

    def train(self, words):
        return 1.0

    def search(self, words, beam):
        return 1.0

    multiply_adds = staticmethod(own_multiply_adds)


def test_peers(tiny, monkeypatch):
    monkeypatch.setitem(TOOLKITS, "peer", Peer)
    run(monkeypatch, peers, "--only", "peer", "--rounds", 1, "--out", tiny)
    lines = [json.loads(line) for line in tiny.read_text().splitlines()]
    assert {"peer", "task", "order", "precision", "threads", "rate", "ratio"} <= lines[0].keys()
    found = {(x["system"], x["task"], x["order"], x["precision"]): x for x in lines}
    assert len(found) == len(lines) == 11
    assert found["peer", "training", "mixed", "float32"]["ratio"] == 1
    assert found["peer", "beam 12", "", "float32"]["rate"] == peers.SENTENCES


def test_multiply_adds_of_a_model_counted_by_hand():
    """E, H, N, M, V = 2, 3, 4, 5, 7 and 6 source words."""
    size = work.Size("", 3, 2, 4, 5, 7, 5, "adam")
    encoder, keys, query, attended = 2 * 3 * 3 * (2 + 3), 6 * 4, 3 * 4, 6 * (4 + 6)
    unit, readout, output = 3 * 3 * (2 + 3 + 6), (3 + 2 + 6) * 10, 5 * 7
    expected = encoder + keys + query + attended + unit + readout + output
    assert own_multiply_adds(size, 6) == expected


STOPPED = """
import os, signal, sys
sys.argv = {argv}
from pathlib import Path
from benchmarks.lines import resumable

def last():
    os.kill(os.getpid(), signal.{name})

with resumable("benchmarks.it", Path({path!r})) as lines:
    lines.measure(lambda: [{{"ms": 1.23456}}], part="first")
    lines.measure(last, part="last")
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_stopped_run_prints_the_command_that_goes_on(tmp_path, name):
    path = str(tmp_path / "a file.jsonl")
    code = STOPPED.format(argv=["it", "--rounds", "3"], name=name, path=path)
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert ended.returncode == 128 + signal.SIGINT
    typed = shlex.split(ended.stderr.splitlines()[2])
    assert typed == ["python", "-m", "benchmarks.it", "--rounds", "3", "--out", path]
    assert Lines(tmp_path / "a file.jsonl").kept == [{"part": "first", "ms": 1.235}]
