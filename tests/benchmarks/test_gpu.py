"""`python -m benchmarks.gpu`: its items at toy sizes, their processes, and offline compilation."""

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest
import torch

from benchmarks.gpu import __main__ as program
from benchmarks.gpu import model
from benchmarks.gpu.setting import Findings, Setting
from nmt.fused import steps
from nmt.fused.gpu import graphs
from tests.helpers import ROOT

REHEARSED = ("machine", "gradients", "updates", "parts", "search", "memory")
SPECIALISATION = ("kernel", "target", "S", "dtype", "registers", "spills", "shared", "vector_loads")


@pytest.mark.parametrize("name", REHEARSED)
def test_an_item_is_right_at_toy_sizes(name, tmp_path):
    findings = Findings(tmp_path / "found.json")
    program.ITEMS[name][0](Setting(True, tmp_path), findings)
    assert findings.failed == []
    assert json.loads(findings.path.read_text())["figures"].keys() == findings.figures.keys()


@pytest.mark.slow
def test_the_whole_rehearsal():
    command = [sys.executable, "-m", "benchmarks.gpu", "--rehearse"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["item"] for line in lines] == list(program.ITEMS)


def failed(item, folder, monkeypatch):
    monkeypatch.setattr(model, "TURNS", 1)
    monkeypatch.setattr(model, "UPDATES", 2)
    findings = Findings(folder / "found.json")
    item(Setting(True, folder), findings)
    return [name.partition(":")[0] for name in findings.failed]


def test_graphs_and_updates_are_right(tmp_path, monkeypatch):
    assert failed(model.graphs, tmp_path, monkeypatch) == []
    assert failed(model.repeat, tmp_path, monkeypatch) == []


def test_a_graph_that_keeps_the_last_batch_fails(tmp_path, monkeypatch):
    kept = graphs.LossGraph
    monkeypatch.setattr(graphs, "LossGraph", lambda batch, loss, _: kept(batch, loss, lambda: None))
    assert "additive float32, padded" in failed(model.graphs, tmp_path, monkeypatch)


def test_a_recurrence_that_forgets_padding_fails(tmp_path, monkeypatch):
    open_gates = steps.open_gates
    monkeypatch.setattr(steps, "open_gates", lambda *given: open_gates(*given[:5], None))
    assert failed(model.gradients, tmp_path, monkeypatch)


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


@pytest.mark.parametrize(
    ("item", "seconds", "line"),
    [
        (right, 60, {"ok": True, "failed": [], "error": []}),
        (wrong, 60, {"ok": False, "failed": ["not a number"], "error": []}),
        (raises, 60, {"ok": False, "figures": {"before": 1}}),
        (sleeps, 2, {"ok": False, "figures": {"before": 1}}),
    ],
)
def test_how_an_item_ends(item, seconds, line, tmp_path, monkeypatch):
    monkeypatch.setitem(program.ITEMS, "item", (item, seconds))
    found = program.run_item("item", True, tmp_path / "item", seconds)
    assert line.items() <= found.items()
    if item is raises:
        assert found["error"][-1] == "ValueError: what went wrong"
    if item is sleeps:
        assert found["error"][0] == "ended after 2 seconds"


@pytest.mark.parametrize(("names", "code"), [(["right"], 0), (["right", "wrong"], 1)])
def test_the_exit_code_says_whether_an_item_failed(names, code, monkeypatch, capsys):
    monkeypatch.setattr(program, "ITEMS", {"right": (right, 60), "wrong": (wrong, 60)})
    monkeypatch.setattr(sys, "argv", ["gpu", "--rehearse", "--only", *names])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == code
    assert [json.loads(line)["item"] for line in capsys.readouterr().out.splitlines()] == names


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize(
    ("target", "lengths", "types"),
    [
        ("sm_90", (32,), ("bfloat16",)),
        *(
            pytest.param(
                target, (8, 16, 32, 52, 200), ("float32", "bfloat16"), marks=pytest.mark.slow
            )
            for target in ("sm_80", "sm_90", "gfx942")
        ),
    ],
)
def test_kernels_compile_without_spills_for_a_gpu_that_is_not_there(target, lengths, types):
    """Triton's interpreter, which shows what kernels compute, accepts what its compiler refuses."""
    code = f"from benchmarks.gpu.compile import main; main('{target}', {lengths}, {types})"
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert len(lines) > 15
    for line in lines:
        assert tuple(line) == SPECIALISATION
        assert line["spills"] == 0, line
        assert 0 < line["registers"] <= (160 if target.startswith("gfx") else 128), line
    # keys and annotations, and the words of the loss, are loaded 16 bytes at a time
    assert all(line["vector_loads"] for line in lines if line["kernel"].startswith(("sc", "word")))


def test_float32_is_float32(monkeypatch):
    """Whatever a container asks of all programs in it."""
    monkeypatch.setenv("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1")
    code = "import benchmarks.gpu, torch; print(torch.get_float32_matmul_precision())"
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert out == "highest\n"


def test_without_a_gpu_it_says_so(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gpu"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="no GPU can be used; --rehearse needs none"):
        program.main()
