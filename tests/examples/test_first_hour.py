"""The notebook examples/first_hour.ipynb, executed in a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.models import small_checkpoint
from tests.helpers.run_folders import make_run

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
NOTEBOOK = ROOT / "examples" / "first_hour.ipynb"


def test_notebook_has_no_outputs():
    cells = nbformat.read(NOTEBOOK, 4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.slow
def test_notebook_runs_and_displays_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    client = pytest.importorskip("nbclient", reason="nbclient is not installed")
    for name, model in (("search", "RNNsearch"), ("encdec", "RNNencdec")):
        make_run(tmp_path / "runs" / name, model=model, pairs=200, kept=3, sets=("by_length",))
    (tmp_path / "runs/search/checkpoints").mkdir(exist_ok=True)
    small_checkpoint(tmp_path / "runs/search/checkpoints/best.ckpt")
    (tmp_path / "examples").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    executed = client.execute(
        nbformat.read(NOTEBOOK, 4), cwd=str(tmp_path / "examples"), kernel_name="python3"
    )
    cells = [cell for cell in executed.cells if cell.cell_type == "code"]
    results = {
        cell.source.splitlines()[-1]: output.data
        for cell in cells
        for output in cell.outputs
        if output.output_type == "execute_result"
    }
    assert "<small" in results["results"]["text/html"]
    assert 'alt="attention weights"' in results["results[0]"]["text/html"]
    for line in ("comparison", "systems"):
        assert "What long sentences keep" in results[line]["text/html"]
    for line in ("nmt.plot_alignment(pair)", "nmt.plot_by_length(systems)"):
        assert results[line].keys() == {"text/plain", "image/png"}
    for cell in cells:  # each cell has at most one result, and no other figures
        kinds = [output.output_type for output in cell.outputs]
        assert kinds.count("execute_result") <= 1
        assert "display_data" not in kinds
    loading = "".join(output.get("text", "") for output in cells[0].outputs)
    assert "loading PyTorch and the model: 100%" in loading
