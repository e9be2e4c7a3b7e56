"""`python -m benchmarks.gpu`: its report on each item.

`.ci/run` runs the whole program with `--rehearse`.
"""

import json
import sys
import time

import pytest

from benchmarks.gpu import __main__ as program

pytestmark = pytest.mark.slow


def right(setting, findings):
    findings.check("small", 1 / 3, at_most=1)


def wrong(setting, findings):
    findings.check("not a number", float("nan"), at_most=1)


def raises(setting, findings):
    findings.note(before=1)
    raise ValueError("what went wrong")


def sleeps(setting, findings):
    findings.note(before=1)
    time.sleep(60)


def test_items_report_success_failure_error_and_timeout(monkeypatch, capsys):
    items = {
        "right": (right, 60),
        "wrong": (wrong, 60),
        "raises": (raises, 60),
        "sleeps": (sleeps, 0.25),
    }
    monkeypatch.setattr(program, "ITEMS", items)
    monkeypatch.setattr(sys, "argv", ["gpu", "--rehearse", "--only", *items])
    with pytest.raises(SystemExit, match="1"):
        program.main()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["item"] for line in lines] == list(items)
    assert [line["ok"] for line in lines] == [True, False, False, False]
    assert [line["failed"] for line in lines] == [[], ["not a number"], [], []]
    assert lines[2]["error"][-1] == "ValueError: what went wrong"
    assert lines[3]["error"][0] == "ended after 1 seconds"  # 4 * 0.25: see `--rehearse`
    assert lines[2]["figures"] == lines[3]["figures"] == {"before": 1}


def test_recorded_items_are_skipped(monkeypatch, capsys, tmp_path):
    record = tmp_path / "gpu.jsonl"
    items = {"right": (right, 60), "wrong": (wrong, 60)}
    monkeypatch.setattr(program, "ITEMS", items)
    for only, run in (("right", ["right"]), ("wrong", ["wrong"]), ("right", [])):
        command = ["gpu", "--rehearse", "--record", str(record), "--only", only]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit, match=str(int(run == ["wrong"]))):
            program.main()
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line)["item"] for line in lines] == run
    lines = record.read_text().splitlines()
    assert [json.loads(line)["item"] for line in lines] == ["right", "wrong"]


def test_all_items_fit_ten_minutes():
    """570 seconds are for the items, 30 for starting processes."""
    assert sum(seconds for _, seconds in program.ITEMS.values()) <= 570
