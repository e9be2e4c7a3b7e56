"""A wheel in a fresh environment and an empty folder, with a package of the reader's own beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from nmt import __version__
from tests.helpers import ROOT
from tests.helpers.documentation import files
from tests.helpers.processes import TINY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the project's own build backend."""
    pytest.importorskip("hatchling", reason="builds the wheel (group dev)")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return path


def test_it_holds_the_package_its_options_and_the_launcher(wheel):
    assert wheel.name == f"rnnsearch-{__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    options = {f"nmt/{file.relative_to(ROOT)}" for file in (ROOT / "conf").rglob("*.yaml")}
    modules = {str(file.relative_to(ROOT)) for file in (ROOT / "nmt").rglob("*.py")}
    assert options | modules <= names
    assert "hydra_plugins/nmt_process_launcher/launcher.py" in names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)


def test_it_works_in_an_empty_folder_with_options_of_a_package(wheel, tmp_path):
    """Its dependencies are those of the interpreter that runs the tests."""
    environment, work = tmp_path / "environment", tmp_path / "work"
    venv.create(environment, with_pip=False)
    packages = environment / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(packages)
    paths = [sysconfig.get_path("purelib"), *(p for p in sys.path if p.endswith("-packages"))]
    (packages / "dependencies.pth").write_text("\n".join(dict.fromkeys(paths)))
    own = files((ROOT / "docs/extend.md").read_text())
    package = {
        "mine/__init__.py": "",
        "mine/conf/__init__.py": "",
        "mine/my_scoring.py": own["my_scoring.py"],
        "mine/conf/scoring/bilinear.yaml": own["my_conf/scoring/bilinear.yaml"].replace(
            "my_scoring.", "mine.my_scoring."
        ),
    }
    for name, text in package.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)

    def run(*words: str) -> str:
        inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [str(environment / "bin/python"), *words],
            cwd=work,
            env={**inherited, "OMP_NUM_THREADS": "1", "WANDB_MODE": "offline"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{words}\n{done.stderr}"
        return done.stdout

    home = run("-c", "import nmt; print(nmt.__file__, nmt.__version__)").split()
    assert home == [str(packages / "nmt/__init__.py"), __version__]
    typed = ("hydra.searchpath=[pkg://mine.conf]", "scoring=bilinear", "hydra.run.dir=own")
    run("-m", "nmt.train", *typed, *TINY)
    assert json.loads((work / "own/results.json").read_text())["scoring"] == "Bilinear"
    run("-m", "nmt", "compare", "runs=[own]")
    assert (work / "comparison/tables/tables.md").is_file()
