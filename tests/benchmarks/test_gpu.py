"""`python -m benchmarks.gpu`: its items, their processes, and the lines they leave."""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from benchmarks.gpu import __main__ as program
from benchmarks.gpu import kernels, recorded, updates
from benchmarks.gpu.findings import Findings, within
from benchmarks.gpu.items import ITEMS, Item
from benchmarks.gpu.process import Ended, run_item
from benchmarks.gpu.setting import Setting
from nmt.fused import steps
from nmt.fused.gpu import captured, graphs


class Called(Item):
    """An item whose function is given."""

    def function(self):
        return globals()[self.place]


def right(setting, findings):
    print("not in the line")
    findings.note(seen=1 / 3)
    findings.check("small", 0.5, at_most=1)


def wrong(setting, findings):
    findings.check("small", 2.0, at_most=1)
    findings.check("fine", 3, equals=3)


def raises(setting, findings):
    findings.note(before=1)
    raise ValueError("what went wrong")


def sleeps(setting, findings):
    findings.check("before", True, equals=True)
    time.sleep(60)


def dies(setting, findings):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def line(tmp_path):
    """line(name, seconds): what is written about an item that does as the function of that name."""

    def made(name: str, seconds: float = 60) -> dict:
        make = functools.partial(program.make_setting, True, tmp_path, "fork")
        return run_item(Called(name, name, seconds), make, tmp_path / name, seconds)

    return made


def test_every_item_can_be_called():
    for name, item in ITEMS.items():
        assert name == item.name
        assert callable(item.function()), name


def test_a_right_item(line):
    found = line("right")
    assert found["ok"]
    assert found["figures"] == {"seen": 0.3333}
    assert found["checks"] == {"small": {"value": 0.5, "at_most": 1}}
    assert found["error"] == []


def test_a_wrong_item_names_what_failed(line):
    found = line("wrong")
    assert not found["ok"]
    assert found["failed"] == ["small"]


def test_an_error_is_recorded_beside_what_was_found_before(line):
    found = line("raises")
    assert not found["ok"]
    assert found["figures"] == {"before": 1}
    assert found["error"][0] == "ended with code 1"
    assert found["error"][-1] == "ValueError: what went wrong"


def test_an_item_that_takes_too_long_is_ended(line):
    found = line("sleeps", 1)
    assert not found["ok"]
    assert found["seconds"] < 30
    assert found["error"] == ["ended after its 1 seconds"]
    assert found["checks"]["before"]["value"] is True


def test_a_process_that_dies_is_recorded(line):
    assert line("dies")["error"][0] == "ended with code -9"


@pytest.mark.parametrize(
    ("value", "bound", "holds"),
    [
        (1.0, {"at_most": 1.0}, True),
        (1.1, {"at_most": 1.0}, False),
        (float("nan"), {"at_most": 1.0}, False),
        (float("inf"), {"at_least": 1.0}, False),
        (0.9, {"at_least": 1.0}, False),
        ([], {"equals": []}, True),
        (["W"], {"equals": []}, False),
    ],
)
def test_bounds(value, bound, holds):
    assert within(value, **bound) is holds
    findings = Findings()
    assert findings.check("name", value, **bound) is holds
    assert (findings.failed == []) is holds


def test_targets_are_no_failures():
    findings = Findings()
    findings.target("speed", 9.0, at_most=7)
    assert not findings.targets["speed"]["met"]
    assert findings.failed == []


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(*typed): the exit code of a rehearsal of two items, and the lines of its file."""
    items = {name: Called(name, name, 60) for name in ("right", "wrong", "raises")}
    monkeypatch.setattr(program, "ITEMS", items)
    monkeypatch.setattr(program, "import_libraries", lambda: None)
    out = tmp_path / "folder" / "out.jsonl"

    def made(*typed: str) -> tuple[int, list[dict]]:
        args = program.parse(["--rehearse", "--out", str(out), *typed])
        return program.run(args), [json.loads(text) for text in out.read_text().splitlines()]

    return made


def test_what_the_file_has_is_left_out(run, capsys):
    code, lines = run("--only", "right,wrong")
    assert code == 1
    assert [(each["item"], each["ok"]) for each in lines] == [("right", True), ("wrong", False)]
    code, lines = run("--only", "right")
    assert code == 0
    assert len(lines) == 2
    assert "right          is in" in capsys.readouterr().out
    code, lines = run("--only", "right,wrong,raises")
    assert [each["item"] for each in lines] == ["right", "wrong", "raises"]
    assert run("--again")[1][3:] != []
    assert [each["item"] for each in run("--again")[1]].count("right") == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 passed, 2 failed, 0 not begun")


def test_a_line_of_a_rehearsal_is_none_of_a_run(tmp_path):
    out = tmp_path / "out.jsonl"
    rows = [{"item": "kernels", "rehearsed": True, "ok": True}]
    out.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"item": "cut o')
    assert program.earlier(out, rehearsed=True).keys() == {"kernels"}
    assert program.earlier(out, rehearsed=False) == {}
    assert program.earlier(tmp_path / "none", rehearsed=False) == {}


def test_no_item_begins_without_time(run):
    code, lines = run("--only", "right")
    assert (code, len(lines)) == (0, 1)
    code, lines = run("--minutes", "0")
    assert (code, len(lines)) == (1, 1)


def test_items_are_asked_for_by_name():
    assert program.names("graphs,kernels") == ["kernels", "graphs"]  # in the order of importance
    with pytest.raises(argparse.ArgumentTypeError, match="kernel: must be among machine, kernels"):
        program.names("kernel")


@pytest.fixture
def setting(tmp_path) -> Setting:
    return Setting(True, tmp_path, tmp_path)


class Wrong:
    """A step's operations, the contexts of which are a little off."""

    def __init__(self, module):
        self.module = module

    def __getattr__(self, name):
        return getattr(self.module, name)

    def open_gates(self, projected, terms, state, gates, reset, real):
        self.module.open_gates(projected, terms, state, gates, reset, None)  # forgets padding


def test_kernels_that_forget_padding_are_seen(setting):
    """The comparison of `kernels` without Triton: operations against such as are wrong."""
    for work, given in (
        (kernels.gates, (setting, torch.float32)),
        (kernels.attention, (setting, torch.bfloat16, "dot", 7)),
    ):
        expected, found = work(steps, *given), work(steps, *given)
        assert all(kernels.distance(found[name], expected[name]) == 0 for name in expected)
    found = kernels.gates(Wrong(steps), setting, torch.float32)
    expected = kernels.gates(steps, setting, torch.float32)
    assert kernels.distance(found["after"], expected["after"]) > kernels.LIMITS[torch.float32]


def failed_of(item, setting: Setting) -> list[str]:
    findings = Findings()
    item(setting, findings)
    return findings.failed


def test_graphs_that_keep_the_last_batch_are_seen(setting, monkeypatch):
    """A replay that does not compute: what it gives is the batch that was captured."""
    monkeypatch.setattr(captured.EagerFunction, "__call__", lambda self: None)
    monkeypatch.setattr(recorded, "TURNS", 1)
    monkeypatch.setattr(Setting, "lengths", [8, 4, 5])
    failed = failed_of(recorded.graphs, setting)
    assert "additive float32: not the same bits" in failed
    assert any(name.startswith("additive float32, padded") for name in failed)


def test_a_model_without_graphs_is_seen(setting, monkeypatch):
    """Comparing nothing with nothing is no proof."""
    monkeypatch.setattr("benchmarks.gpu.setting.rehearse_recordings", lambda net: None)
    monkeypatch.setattr(recorded, "TURNS", 1)
    monkeypatch.setattr(Setting, "lengths", [8, 4, 5])
    assert "additive float32: graphs held" in failed_of(recorded.graphs, setting)


def test_updates_that_differ_are_seen(setting, monkeypatch):
    monkeypatch.setattr(updates, "UPDATES", 2)
    assert failed_of(updates.repeat, setting) == []
    real, made = Setting.net, []

    def other(self, **options):
        net = real(self, **options)
        made.append(net)
        with torch.no_grad():
            net.output.bias[0] += 1e-6 * len(made)
        return net

    monkeypatch.setattr(Setting, "net", other)
    assert failed_of(updates.repeat, setting) == ["float32: equal bits", "bf16: equal bits"]


def test_memory_that_runs_out_in_a_capture(setting, monkeypatch):
    """The item is right as the graphs are, and wrong where such an error ends the update."""
    assert failed_of(recorded.out_of_memory, setting) == []
    monkeypatch.setattr(graphs, "_out_of_memory", lambda error: False)
    with pytest.raises(torch.OutOfMemoryError):
        failed_of(recorded.out_of_memory, setting)


def test_float32_is_float32(monkeypatch):
    """Whatever a container says of TF32 to all programs in it."""
    monkeypatch.setenv("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1")
    code = "import benchmarks.gpu, torch; print(torch.get_float32_matmul_precision())"
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "highest\n"


def test_compile_without_triton(capsys, monkeypatch):
    real = importlib.util.find_spec
    hidden = lambda name, *rest: None if name == "triton" else real(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    assert program.compile_kernels("sm_90") == 1
    assert capsys.readouterr() == ("", "--compile: Triton is not installed\n")


def test_no_gpu_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "import_libraries", lambda: None)
    monkeypatch.setattr(program, "run_apart", no_gpu)
    assert program.run(program.parse(["--out", str(tmp_path / "out")])) == 1
    assert "no GPU can be used; --rehearse needs none" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def no_gpu(work, arguments, seconds, log: Path, start="fork"):
    log.write_text("RuntimeError: no device\n")
    return Ended(1, False, ["RuntimeError: no device"], 0.1)
