"""Runs the wheel in a new environment, also with config options that another package adds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from nmt import __version__
from tests.helpers import ROOT
from tests.helpers.documentation import files
from tests.helpers.processes import TINY
from tests.test_architecture import HEAVY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel with the project's build backend, and returns its path."""
    pytest.importorskip("hatchling", reason="builds the wheel (group dev)")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return path


def test_wheel_has_package_options_and_launcher(wheel):
    assert wheel.name == f"rnnsearch-{__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    options = {f"nmt/{file.relative_to(ROOT)}" for file in (ROOT / "conf").rglob("*.yaml")}
    modules = {str(file.relative_to(ROOT)) for file in (ROOT / "nmt").rglob("*.py")}
    assert options | modules <= names
    assert "hydra_plugins/nmt_process_launcher/launcher.py" in names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)


@dataclass
class Installed:
    """A new environment with the wheel; its dependencies are the packages of the current interpreter."""

    environment: Path
    work: Path

    @property
    def packages(self) -> Path:
        python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return self.environment / "lib" / python / "site-packages"

    def run(self, *words: str, code: int = 0) -> str:
        """Runs Python of the environment in the folder `work`, and returns its stdout and stderr."""
        inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [str(self.environment / "bin/python"), *words],
            cwd=self.work,
            env={**inherited, "OMP_NUM_THREADS": "1", "WANDB_MODE": "offline"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, f"{words}\n{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Installed:
    made = Installed(tmp_path / "environment", tmp_path / "work")
    made.work.mkdir()
    venv.create(made.environment, with_pip=False)
    with zipfile.ZipFile(wheel) as content:
        content.extractall(made.packages)
    paths = [sysconfig.get_path("purelib"), *(p for p in sys.path if p.endswith("-packages"))]
    (made.packages / "dependencies.pth").write_text("\n".join(dict.fromkeys(paths)))
    return made


def test_wheel_requires_torch_only_with_the_extra(wheel):
    with zipfile.ZipFile(wheel) as content:
        [name] = [name for name in content.namelist() if name.endswith("METADATA")]
        metadata = content.read(name).decode()
    needed = re.findall(r"^Requires-Dist: ([\w-]+)(.*)$", metadata, re.MULTILINE)
    always = {package.lower() for package, rest in needed if "extra ==" not in rest}
    training = {package.lower() for package, rest in needed if "extra == 'train'" in rest}
    heavy = {"torch", "pytorch-lightning", "torchmetrics", "wandb", "datasets", "tokenizers"}
    assert heavy <= training
    assert not heavy & always


def test_wheel_compares_systems_without_the_extra(installed):
    """A comparison needs no libraries for training, such as torch, but `train` fails and names the extra."""
    block = f"import sys\nfor name in {HEAVY!r}:\n    sys.modules[name] = None\n"
    (installed.packages / "light.py").write_text(block)
    (installed.packages / "light.pth").write_text("import light")
    for name, word in (
        ("test.en", "house"),
        ("test.de", "Haus"),
        ("a.de", "Haus"),
        ("b.de", "Hof"),
    ):
        lines = [f"a small {word} number {number} stands there\n" for number in range(40)]
        (installed.work / name).write_text("".join(lines))
    systems = ("+systems.a=a.de", "+systems.b=b.de", "resamples=20")
    installed.run("-m", "nmt", "compare", "source=test.en", "reference=test.de", *systems)
    assert "100.00" in (installed.work / "comparison/tables/tables.md").read_text()
    assert (installed.work / "comparison/comparison.html").is_file()
    assert "pip install '.[train]'" in installed.run("-m", "nmt", "train", code=2)


def test_wheel_trains_with_options_of_a_package(installed):
    work, packages, run = installed.work, installed.packages, installed.run
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

    home = run("-c", "import nmt; print(nmt.__file__, nmt.__version__)").split()
    assert home == [str(packages / "nmt/__init__.py"), __version__]
    typed = ("hydra.searchpath=[pkg://mine.conf]", "scoring=bilinear", "hydra.run.dir=own")
    run("-m", "nmt.train", *typed, *TINY)
    assert json.loads((work / "own/results.json").read_text())["scoring"] == "Bilinear"
    run("-m", "nmt", "compare", "runs=[own]")
    assert (work / "comparison/tables/tables.md").is_file()
