"""Checkpoints and texts from strangers are data: nothing of theirs is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.models.checkpoint import read_checkpoint
from nmt.utils.errors import InputError
from tests.helpers.processes import TINY, run

SCORES = """
from torch import nn, Tensor

class Bilinear(nn.Module):
    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.weight = nn.Linear(query_size, key_size, bias=False)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.weight(query) @ keys.transpose(1, 2)
"""
THEIRS = ("model.scoring._target_=my_scores.Bilinear", "model.recurrence=plain")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a run `theirs` whose scoring function is in a module of their own."""
    folder = tmp_path_factory.mktemp("security")
    (folder / "my_scores.py").write_text(SCORES)
    options = (*TINY, *THEIRS, "hydra.run.dir=theirs", "data.cache=cache", "trainer.max_steps=2")
    ended = run("train", *options, cwd=folder, env={"PYTHONPATH": str(folder)})
    assert ended.code == 0, ended.err
    return folder


class Command:
    """What a pickle runs when it is read."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def test_a_malicious_checkpoint_runs_nothing(folder):
    """Neither translated with, nor evaluated, nor gone on with."""
    checkpoints = folder / "evil/checkpoints"
    checkpoints.mkdir(parents=True)
    sign = folder / "run"
    torch.save({"nmt": Command(f"touch {sign}")}, checkpoints / "last.ckpt")
    for command, option in (
        ("translate", "checkpoint=evil/checkpoints/last.ckpt"),
        ("evaluate", "checkpoint=evil/checkpoints/last.ckpt"),
        ("train", "resume=evil"),
    ):
        ended = run(command, option, cwd=folder, stdin=b"hello\n")
        assert ended.code == 2, ended.err
        assert "nmt: " in ended.err
        assert "Traceback" not in ended.err
    assert not sign.exists()


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("model.scoring._target_", "os.system", "code outside nmt"),
        ("model.scoring._target_", "nmt.cli.command.os.system", "os.system"),
        ("model._target_", "nmt.cli.command.conf_folder", "conf_folder"),
        ("model._target_", "subprocess.Popen", "code outside nmt"),
        ("model.scoring.path", "${oc.env:HOME}", "interpolation"),
        ("data.title", "${run_folder:train}", "interpolation"),
        ("data.mirror", "here", "its configuration is refused"),
        ("data.batch_size", "many", "its configuration is refused"),
    ],
)
def test_a_malicious_configuration_is_refused(folder, tmp_path, path, value, said):
    content = torch.load(folder / "theirs/checkpoints/last.ckpt", weights_only=True)
    node = content["nmt"]["config"]
    node["model"]["scoring"]["_target_"] = "nmt.layers.Additive"
    *parents, last = path.split(".")
    for parent in parents:
        node = node[parent]
    node[last] = value
    torch.save(content, tmp_path / "changed.ckpt")
    with pytest.raises(InputError, match=said):
        read_checkpoint(tmp_path / "changed.ckpt")


def test_a_scoring_of_ones_own_loads_only_when_trusted(folder):
    options = (
        "checkpoint=theirs/checkpoints/best.ckpt",
        "hydra.run.dir=evaluated",
        "logger=none",
        "trainer.enable_progress_bar=false",
    )
    environment = {"PYTHONPATH": str(folder)}
    ended = run("evaluate", *options, cwd=folder, env=environment)
    assert ended.code == 2
    assert "add trust=[my_scores]" in ended.err
    ended = run("evaluate", *options, "trust=[my_scores]", cwd=folder, env=environment)
    assert ended.code == 0, ended.err
    assert (folder / "evaluated/results.json").is_file()


MARKUP = "<script>alert(1)</script> <b>$\\frac{$ &amp; [red]%s {0} ${oc.env:HOME} house number %d"


@pytest.mark.slow
def test_text_with_markup_stays_text(folder):
    """In the log, in the heatmaps and in the page."""
    for side in ("source", "target"):
        lines = "".join(f"{MARKUP % ('%', n)}\n" for n in range(40))
        (folder / side).write_text(lines)
    text = [f"data.{split}.{side}={side}" for split in ("train", "valid") for side in SIDES]
    test = [f"+data.test.mine.{side}={side}" for side in SIDES]
    options = ("hydra.run.dir=markup", "data.cache=cache", "data.batch_size=4", "data=text")
    command = (*TINY, *options, *text, *test, "trainer.max_steps=2", "report.heatmaps=1")
    ended = run("train", *command, cwd=folder, figures=True)
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    page = (folder / "markup/report.html").read_text()
    assert "<script>alert" not in page
    assert "<b>$" not in page
    assert list((folder / "markup/figures").glob("*.png"))


SIDES = ("source", "target")
