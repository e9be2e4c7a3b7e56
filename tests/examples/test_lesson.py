"""The lesson's two models (examples/models) and its notebook, executed in a kernel."""

from __future__ import annotations

import re
import time

import pytest

import nmt
from nmt.models.checkpoint import read_checkpoint
from tests.helpers import ROOT

nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
NOTEBOOK = ROOT / "examples" / "lesson.ipynb"
MODELS = {
    name: ROOT / "examples" / "models" / f"{name}.ckpt" for name in ("rnnencdec", "rnnsearch")
}


def test_models_are_small_and_name_no_local_folder():
    assert 2e6 <= sum(file.stat().st_size for file in MODELS.values()) <= 3.2e6
    for file in MODELS.values():
        stored = read_checkpoint(file)
        assert not re.search(r"/(tmp|work|home|root)/", str(stored.about) + str(stored.config))


@pytest.mark.slow
def test_models_show_what_a_fixed_vector_loses():
    short = "The young woman eats a red apple."
    long = f"{short[:-1]}, and the old man reads a letter in the garden, but the king sees a big house."
    search, encdec = (
        nmt.load(MODELS[name], accelerator="cpu", threads=1) for name in ("rnnsearch", "rnnencdec")
    )
    first, second = search.translate([short, long], beam=4)
    assert first.text == "La jeune femme mange une pomme rouge."
    assert second.text == (
        "La jeune femme mange une pomme rouge, et le vieil homme lit une lettre dans le jardin, "
        "mais le roi voit une grande maison."
    )
    right, lost = encdec.translate(["The man reads a letter.", long], beam=4)
    assert right.text == "L'homme lit une lettre."
    assert "pomme rouge" not in lost.text
    assert "jardin" not in lost.text


def test_notebook_has_no_outputs():
    cells = nbformat.read(NOTEBOOK, 4).cells
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.slow
def test_notebook_runs_and_displays_results(monkeypatch: pytest.MonkeyPatch):
    client = pytest.importorskip("nbclient", reason="nbclient is not installed")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    start = time.process_time()
    executed = client.execute(
        nbformat.read(NOTEBOOK, 4), cwd=str(NOTEBOOK.parent), kernel_name="python3"
    )
    assert time.process_time() - start < 60
    cells = [cell for cell in executed.cells if cell.cell_type == "code"]
    results = {
        cell.source.splitlines()[-1]: output.data
        for cell in cells
        for output in cell.outputs
        if output.output_type == "execute_result"
    }
    assert 'alt="attention weights"' in results["results[0]"]["text/html"]
    assert "What long sentences keep" in results["systems"]["text/html"]
    for line in ("nmt.plot_alignment(pair)", "nmt.plot_by_length(systems)"):
        assert results[line].keys() == {"text/plain", "image/png"}
    for cell in cells:  # each cell has at most one result, and no other figures
        kinds = [output.output_type for output in cell.outputs]
        assert kinds.count("execute_result") <= 1
        assert "display_data" not in kinds
    printed = "".join(output.get("text", "") for cell in cells for output in cell.outputs)
    assert "loading PyTorch and the model: 100%" in printed
    assert "\x1b" not in printed
