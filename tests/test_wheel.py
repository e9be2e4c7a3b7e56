"""A wheel in a fresh environment and an empty folder, with a package of one's own beside it."""

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

TINY = (
    *(
        "regime=tiny",
        "trainer=cpu",
        "logger=none",
        "trainer.enable_progress_bar=false",
        "report.heatmaps=0",
    ),
    *("report.figures=[]", "trainer.max_steps=4", "trainer.val_check_interval=2"),
    *("data.train.pairs=64", "data.valid.pairs=8"),
)
MINE = {
    "mine/__init__.py": "",
    "mine/conf/__init__.py": "",
    "mine/conf/scoring/bilinear.yaml": (
        "# @package model.scoring\n# e = (W_a s)' M (U_a h)\n_target_: mine.scoring.Bilinear\n"
    ),
    "mine/conf/optimizer/slow.yaml": "# Adam, slowly\ndefaults:\n  - adam\n\nlr: 0.0001\n",
    "mine/scoring.py": """\
import torch


class Bilinear(torch.nn.Module):
    def __init__(self, query_size, key_size):
        super().__init__()
        self.M = torch.nn.Parameter(torch.eye(query_size, key_size))

    def forward(self, query, keys):
        return query @ self.M @ keys.transpose(1, 2)
""",
    "mine/conf/model/mean.yaml": """\
# RNNsearch whose first state is of the mean annotation
_target_: mine.model.RNNmean
title: RNNmean
""",
    "mine/model.py": """\
from nmt.layers import BidirectionalEncoder
from nmt.models import RNNsearch
from nmt.models.networks import make_attention


class MeanEncoder(BidirectionalEncoder):
    def forward(self, source, mask):
        states, _ = super().forward(source, mask)
        real = mask.unsqueeze(2).to(states.dtype)
        return states, ((states * real).sum(1) / real.sum(1))[:, : self.size // 2]


class RNNmean(RNNsearch):
    @staticmethod
    def parts(model, source_size):
        encoder = MeanEncoder(source_size, model.embedding, model.hidden)
        return encoder, make_attention(model, encoder.size)
""",
    "mine/conf/callbacks/count.yaml": """\
# Counts updates into a file
count:
  _target_: mine.callbacks.Count
  file: updates.txt
""",
    "mine/callbacks.py": """\
from pathlib import Path

import pytorch_lightning as pl


class Count(pl.Callback):
    def __init__(self, file):
        self.file = file

    def on_train_end(self, trainer, pl_module):
        Path(self.file).write_text(str(trainer.global_step))
""",
    "mine/score.py": """\
from nmt.evaluation.scores import Score


class Words(Score):
    key, title, digits = "words", "Words of the translation", 1

    def statistics(self, record):
        return [len(record["hypothesis"]), 1]

    def combine(self, sums):
        return sums[..., 0] / sums[..., 1]
""",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the project's own build backend."""
    pytest.importorskip("hatchling", reason="builds the wheel (group dev)")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [made] = folder.glob("*.whl")
    return made


@pytest.mark.slow
def test_it_holds_the_package_its_options_and_the_launcher(wheel):
    assert wheel.name == f"nmt-{__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    options = {f"nmt/{file.relative_to(ROOT)}" for file in (ROOT / "conf").rglob("*.yaml")}
    modules = {str(file.relative_to(ROOT)) for file in (ROOT / "nmt").rglob("*.py")}
    assert options | modules <= names
    assert "hydra_plugins/nmt_process_launcher/launcher.py" in names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)


@pytest.mark.slow
def test_it_works_in_an_empty_folder_with_a_package_of_ones_own(wheel, tmp_path):
    """Its dependencies are those of the interpreter that runs the tests."""
    environment, work = tmp_path / "environment", tmp_path / "work"
    venv.create(environment, with_pip=False)
    packages = environment / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(packages)
    paths = [sysconfig.get_path("purelib"), *(p for p in sys.path if p.endswith("-packages"))]
    (packages / "dependencies.pth").write_text("\n".join(dict.fromkeys(paths)))
    for name, text in MINE.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)

    def run(*words: str, stdin: str = "", logged: bool = False) -> str:
        inherited = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(
            [str(environment / "bin/python"), *words],
            cwd=work,
            env={**inherited, "OMP_NUM_THREADS": "1", "WANDB_MODE": "offline"},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{words}\n{done.stderr}"
        return done.stderr if logged else done.stdout

    home = run("-c", "import nmt; print(nmt.__file__, nmt.__version__)").split()
    assert home == [str(packages / "nmt/__init__.py"), __version__]
    search = "hydra.searchpath=[pkg://mine.conf]"
    own = (search, "scoring=bilinear", "optimizer=slow", "model=mean", "callbacks=count")
    score = "evaluation.scores=[default,mine.score.Words]"
    run("-m", "nmt.train", *own, score, *TINY, "hydra.run.dir=own")
    run("-m", "nmt", "train", "-m", "seed=1", *TINY, "hydra.sweep.dir=plain")

    found = json.loads((work / "own/results.json").read_text())
    assert found["scoring"] == "Bilinear"
    assert found["model"] == "RNNmean"
    assert found["config"]["optimizer"]["lr"] == 0.0001
    assert (work / "updates.txt").read_text() == "4"
    assert ",words," in (work / "own/scores.csv").read_text()
    named = ("checkpoint=own/checkpoints/best.ckpt", "trust=[mine]")
    assert run("-m", "nmt.translate", *named, stdin="the cat sees .\n\n").count("\n") == 2
    run("-m", "nmt.compare", "runs=[own,plain]")
    assert "Words of the translation" in (work / "comparison/tables/tables.md").read_text()
    code = (
        "import nmt; print(nmt.load('own', trust=['mine']).translate(['the cat sees .'])[0].score)"
    )
    assert float(run("-c", code)) < 0
