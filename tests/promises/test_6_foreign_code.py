"""Promise 6: files of other people never run code.

A checkpoint is read with `weights_only=True`. Its configuration may only name classes of `nmt`, and of
packages that the user lists in `trust`. Logs, figures and pages show all text literally.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

import nmt
from nmt.config.changes import refuse_outside
from nmt.models import RNNsearch
from nmt.models.checkpoint import read_checkpoint
from nmt.utils.errors import InputError
from tests.helpers.models import small_checkpoint

RAN: list[str] = []


class Foreign(torch.nn.Module):
    """A scoring function that is not part of nmt."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        RAN.append("made")


class Payload:
    """An object whose pickle runs code when it is loaded."""

    def __reduce__(self):
        return RAN.append, ("unpickled",)


@pytest.fixture
def checkpoint(tmp_path: Path):
    """Returns the path and the content of a checkpoint."""
    path = small_checkpoint(tmp_path / "model.ckpt")
    return path, torch.load(path, weights_only=True)


def test_objects_in_a_checkpoint_are_not_unpickled(checkpoint):
    path, content = checkpoint
    content["nmt"]["extra"] = Payload()
    torch.save(content, path)
    with pytest.raises(InputError, match="damaged, or not a checkpoint of nmt"):
        read_checkpoint(path)
    assert not RAN


@pytest.mark.parametrize(
    ("section", "key", "value", "named"),
    [
        ("data", "title", "${oc.env:HOME}", "data.title=.* interpolation"),
        ("data", "mirror", "here", "its configuration is refused"),
        ("data", "batch_size", "many", "its configuration is refused"),
    ],
)
def test_refuses_a_bad_configuration_in_a_checkpoint(checkpoint, section, key, value, named):
    path, content = checkpoint
    content["hyper_parameters"]["config"][section][key] = value
    torch.save(content, path)
    with pytest.raises(InputError, match=named):
        read_checkpoint(path)


def test_refusal_names_the_version_of_the_checkpoint(checkpoint):
    path, content = checkpoint
    content["nmt"]["version"] = "9.1"
    content["hyper_parameters"]["config"]["data"]["mirror"] = "here"
    torch.save(content, path)
    with pytest.raises(InputError, match=rf"made by version 9\.1, read by {nmt.__version__}"):
        read_checkpoint(path)


@pytest.mark.parametrize("load", [read_checkpoint, RNNsearch.load_from_checkpoint])
@pytest.mark.parametrize(
    "target",
    [
        f"{__name__}.Foreign",
        "os.system",
        "nmt.cli.application.os.system",  # the name begins with nmt, but the code is from os
        "nmt.utils.files.write_text",  # code of nmt that writes a file
        "nmt.models.optimizer.torch.hub.load",
        "nmtx.models.RNNsearch",
        "torch.hub.load",
    ],
)
def test_refuses_untrusted_classes_in_a_checkpoint(checkpoint, load, target):
    path, content = checkpoint
    content["hyper_parameters"]["config"]["model"]["scoring"] = {"_target_": target}
    torch.save(content, path)
    with pytest.raises(InputError, match=r"add trust=\["):
        load(path)
    assert not RAN


def test_accepts_trusted_classes_in_a_checkpoint(checkpoint):
    path, content = checkpoint
    content["hyper_parameters"]["config"]["model"]["scoring"] = {"_target_": f"{__name__}.Foreign"}
    torch.save(content, path)
    found = read_checkpoint(path, trust=[__name__])
    assert found.config.model.scoring["_target_"] == f"{__name__}.Foreign"


def test_trust_does_not_extend_to_imported_modules(checkpoint):
    path, content = checkpoint
    content["hyper_parameters"]["config"]["model"]["scoring"] = {
        "_target_": f"{__name__}.torch.load"
    }
    torch.save(content, path)
    with pytest.raises(InputError, match=r"add trust=\["):
        read_checkpoint(path, trust=[__name__])


@pytest.mark.parametrize(
    ("folder", "own", "typed", "refused"),
    [
        ("/elsewhere", None, [], True),
        ("/elsewhere", "/own", [], True),
        ("run/../../elsewhere", None, [], True),
        ("run/checkpoints", None, [], False),
        ("/elsewhere", None, ["callbacks.best.dirpath=/elsewhere"], False),
        (
            "/elsewhere",
            "/elsewhere",
            [],
            False,
        ),  # the user's configuration names the folder, too
    ],
)
def test_refuses_folders_outside_the_run_in_a_checkpoint(
    checkpoint, monkeypatch, folder, own, typed, refused
):
    path, _ = checkpoint
    monkeypatch.chdir(path.parent)
    config = read_checkpoint(path).config
    config.callbacks["best"] = {"dirpath": folder}
    composed = read_checkpoint(path).config
    composed.callbacks["best"] = {"dirpath": own}
    refusing = pytest.raises(InputError, match=f"callbacks.best.dirpath={folder}: ")
    with refusing if refused else nullcontext():
        refuse_outside(config, composed, Path("run"), typed)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(["nmt", "compare"], marks=pytest.mark.slow),
        [sys.executable, "-m", "nmt.compare"],
    ],
)
def test_no_file_of_the_current_folder_replaces_a_package_or_adds_a_plugin(tmp_path, program):
    """Someone may type `nmt compare` in a folder that somebody else has sent."""
    lines = "".join(f"a b c {number}\n" for number in range(40))
    for name in ("t.en", "t.fr", "x.fr"):
        (tmp_path / name).write_text(lines)
    attack = (
        "import os\nopen(os.path.join(os.path.dirname(__file__), 'RAN'), 'a').write(__name__)\n"
    )
    modules = (
        "pandas.py",
        "yaml.py",
        "typing.py",
        "bottleneck.py",
        "hydra_plugins/gift/__init__.py",
    )
    for module in modules:
        (tmp_path / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / module).write_text(attack)
    (tmp_path / "hydra_plugins/gift/x.py").write_text(attack)
    program[0] = (
        str(Path(sys.executable).with_name(program[0])) if program[0] == "nmt" else program[0]
    )
    texts = ("source=t.en", "reference=t.fr", "systems=[x.fr]", "languages=[en,fr]")
    done = subprocess.run(
        [*program, *texts, "resamples=10"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("RAN"))
