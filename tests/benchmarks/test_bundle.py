"""What a machine without a network is given."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.gpu import bundle


def test_versions_are_those_tested_together():
    assert bundle.constrained(["omegaconf", "dill"]) == ["omegaconf==2.3.1", "dill"]


def test_the_folder_holds_wheels_the_benchmark_and_its_script(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(bundle, "pip", lambda *words: asked.append(words))
    folder = tmp_path / "folder"
    bundle.bundle(folder)
    assert (folder / "benchmarks/gpu/__main__.py").is_file()
    assert not list(folder.rglob("__pycache__"))
    download, wheel = asked
    assert download[0] == "download"
    assert {"hydra-core==1.3.8", "multiprocess"} <= set(download)
    assert not {word for word in download if word.startswith(("torch", "wandb", "vl-convert"))}
    assert wheel[-1] == str(bundle.ROOT)
    subprocess.run(["bash", "-n", folder / "run.sh"], check=True)


def test_a_folder_that_is_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["bundle", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="is there already"):
        bundle.main()
