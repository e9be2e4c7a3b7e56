"""What a machine without a network is given."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires, version

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.gpu import bundle


def test_versions_are_those_installed():
    assert bundle.installed(["omegaconf", "dill"]) == [
        f"omegaconf=={version('omegaconf')}",
        f"dill=={version('dill')}",
    ]


def test_nothing_that_the_package_requires_is_missing_there():
    """Each requirement, and those of what is carried, is carried or there, or is not imported."""
    carried = {
        canonicalize_name(word.partition("==")[0]) for word in (*bundle.WHEELS, *bundle.BUILT)
    }
    there = {canonicalize_name(word) for word in (*bundle.BROUGHT, *bundle.UNUSED)}
    asked, known = ["nmt"], {"nmt"}
    while asked:
        for line in requires(asked.pop()) or []:
            requirement = Requirement(line)
            name = canonicalize_name(requirement.name)
            marker = requirement.marker
            if marker and not marker.evaluate({"extra": "", "python_version": bundle.PYTHON}):
                continue
            assert name in carried | there, line
            if name in carried - known:
                asked.append(name)
            known.add(name)
    assert carried <= known


def test_what_is_not_carried_is_not_imported():
    names = [name.removesuffix("-python").replace("-", "_") for name in bundle.UNUSED]
    code = (
        f"import sys; sys.modules |= dict.fromkeys({names})\n"
        "from benchmarks.gpu.__main__ import import_libraries; import_libraries()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=bundle.ROOT)


def test_the_folder_holds_wheels_the_benchmark_and_its_script(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(bundle, "pip", lambda *words: asked.append(words))
    folder = tmp_path / "folder"
    bundle.bundle(folder)
    assert (folder / "benchmarks/gpu/__main__.py").is_file()
    assert not list(folder.rglob("__pycache__"))
    download, wheel = asked
    assert download[0] == "download"
    assert set(bundle.installed(["hydra-core", "multiprocess"])) <= set(download)
    assert not {word for word in download if word.startswith(("torch", "wandb", "vl-convert"))}
    assert wheel[-1] == str(bundle.ROOT)
    subprocess.run(["bash", "-n", folder / "run.sh"], check=True)


def test_a_folder_that_is_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["bundle", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="is there already"):
        bundle.main()
