"""`python -m benchmarks` and `benchmarks.peers` print their measurements as lines of JSON."""

import json
import sys
from types import SimpleNamespace

import pytest
import torch

from benchmarks import __main__ as program
from benchmarks import operations, work
from benchmarks.peers import __main__ as peers
from benchmarks.peers.toolkits import TOOLKITS

pytestmark = pytest.mark.slow

TINY = work.Size("laptop", 12, 8, 12, 6, 60, 5, "adam")


@pytest.fixture
def lines(monkeypatch, capsys):
    """Returns a function that runs a program at a tiny size and returns the objects it prints."""
    monkeypatch.setitem(work.SIZES, "laptop", TINY)
    for module in (program, work):
        monkeypatch.setattr(module, "BATCH", 6)

    def run(module, *typed):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *map(str, typed)])
        module.main()
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_training_and_decoding_lines(lines):
    measured = lines(program, "--size", "laptop", "--part", "training", "decoding", "--rounds", 1)
    assert [line["part"] for line in measured] == ["training"] * 4 + ["decoding"] * 6
    assert (measured[0]["version"], measured[0]["ratio"]) == ("plain float32", 1)
    assert all(line["sentences_per_s"] > 0 for line in measured)
    assert {"encoder", "decoder", "loss", "backward"} < measured[1]["parts_ms"].keys()


def test_operations_are_counted_and_timed(lines, monkeypatch):
    monkeypatch.setattr(operations, "COPIED", 2**12)
    measured = lines(
        program, "--size", "laptop", "--part", "operations", "--sentences", 2, 3, "--rounds", 1
    )
    wholes = [line for line in measured if "operation" not in line]
    works = ["update", "beam 12 of 2", "beam 12 of 3"]
    expected = [f"{work} {precision}" for precision in ("float32", "bf16") for work in works]
    assert [line["version"] for line in wholes] == expected
    assert all(line["operations_ms"] > line["products_ms"] > 0 for line in wholes)
    counted = operations.Operations(lambda: torch.ones(3, 5).mm(torch.ones(5, 7)).t(), 1).found
    assert [counted["mm"][0], counted["mm"][2]] == [1, 4 * (15 + 35 + 21)]
    assert counted["views"][0] == 1


def test_products_are_counted_and_repeated():
    a = torch.ones(3, 5)
    b = torch.ones(5, 7)
    out = torch.empty(3, 7)
    products = work.Products(lambda: torch.mm(a, b, out=out).addmm_(a, b))
    assert products.multiply_adds == 2 * 3 * 5 * 7
    out.zero_()
    products.repeat()
    assert (out == 10).all()


def test_peers_lines_have_a_ratio(lines, monkeypatch):
    peer = SimpleNamespace(version="1.0", own_order="mixed")
    peer.train = peer.search = peer.multiply_adds = lambda *_: 1.0
    monkeypatch.setitem(TOOLKITS, "peer", lambda *_: peer)
    measured = lines(peers, "--only", "peer", "--rounds", 1)
    keys = {"peer", "task", "order", "precision", "threads", "rate", "ratio", "multiply_adds"}
    assert keys <= measured[0].keys()
    found = {(x["system"], x["task"], x["order"], x["precision"]): x for x in measured}
    assert len(found) == len(measured) == 12
    assert found["peer", "training", "mixed", "float32"]["ratio"] == 1
    assert found["peer", "beam 12", "", "float32"]["rate"] == peers.SENTENCES
