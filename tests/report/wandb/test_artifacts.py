"""Checkpoints as W&B artifacts: what is logged, offline too, and what is downloaded and believed."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import nmt
from nmt.report.wandb.artifacts import Reference, check_references, download, log_checkpoint
from nmt.utils.errors import InputError
from nmt.utils.files import sha256
from tests.helpers.models import small_checkpoint
from tests.helpers.processes import start

NAMED = "wandb:team/nmt/model-abc:best"


@pytest.fixture
def online(monkeypatch, tmp_path):
    """A machine with a key, and a W&B that has what is put into the returned dictionary."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    there = {}

    class Api:
        def artifact(self, name, type=None):
            if name not in there:
                raise ValueError(f"artifact {name}\nnot found")
            return there[name]

    monkeypatch.setattr(wandb, "Api", Api)
    return there


def artifact(*files, ref=None, **metadata):
    """An artifact of files as (path, content), as W&B's own looks from outside."""

    def entry(path, content):
        def fetch(root, skip_cache):
            file = Path(root) / path
            file.write_bytes(content)
            return str(file)

        return SimpleNamespace(path=path, size=len(content), ref=ref, download=fetch)

    entries = {path: entry(path, content) for path, content in files}
    manifest = SimpleNamespace(entries=entries)
    return SimpleNamespace(version="v3", manifest=manifest, metadata=metadata)


def inspected(folder):
    """The records of the one offline run under a folder."""
    [file] = folder.glob("wandb/offline-run-*/*.wandb")
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


@pytest.mark.parametrize(
    "text",
    [
        "wandb:",
        "wandb:team/nmt/model-abc",
        "wandb:nmt/model-abc:best",
        "wandb:team/nmt/model-abc:",
        "wandb:../nmt/model-abc:best",
        "wandb:team/nmt/..:best",
        "wandb:team/nmt/model abc:best",
        "wandb:team/nmt/model-abc:be/st",
    ],
)
def test_what_names_no_artifact_is_refused(text):
    with pytest.raises(InputError, match=r"must be wandb:ENTITY/PROJECT/NAME:ALIAS"):
        check_references(["best.ckpt", text])


def test_the_parts_of_an_address():
    found = Reference.parse("wandb:my-team/nmt.2/model-1a:v12")
    assert found == Reference("my-team", "nmt.2", "model-1a", "v12")
    assert str(found) == "my-team/nmt.2/model-1a:v12"


@pytest.mark.parametrize("mode", ["offline", "disabled"])
def test_offline_it_is_refused_in_a_line(online, monkeypatch, mode):
    monkeypatch.setenv("WANDB_MODE", mode)
    with pytest.raises(InputError) as refused:
        nmt.load(["missing.ckpt", NAMED])  # before any file is read
    assert str(refused.value) == (
        f"checkpoint={NAMED}: WANDB_MODE={mode}: W&B is asked only online; unset it, or name a file"
    )


def test_without_a_key_it_is_refused_in_a_line(monkeypatch, tmp_path):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"^checkpoint=\S+: W&B has no key here; .* a file$"):
        nmt.load(NAMED)


def test_commands_refuse_it_with_their_exit_code(tmp_path):
    for name in "ab":
        (tmp_path / name).touch()
    for command, *typed in (
        ("translate", f"checkpoint={NAMED}"),
        ("evaluate", f"checkpoint=[{NAMED},b.ckpt]"),
        ("score", f"checkpoint={NAMED}", "source=a", "target=b"),
    ):
        ended = start(f"nmt.{command}", *typed, cwd=tmp_path, env={"WANDB_MODE": "offline"}).wait()
        assert ended.code == 2, ended.err
        assert ended.err.startswith(f"nmt: checkpoint={NAMED}: WANDB_MODE=offline"), command
        assert ended.err.count("\n") == 1
        assert not list(tmp_path.glob("**/*.*")), command


def test_a_downloaded_model_translates_as_the_file_does(online, tmp_path):
    file = small_checkpoint(tmp_path / "best.ckpt")
    online["team/nmt/model-abc:best"] = artifact(("best.ckpt", file.read_bytes()))
    found = nmt.load(NAMED)
    assert found.checkpoints == [tmp_path / "cache/nmt/team/nmt/model-abc/v3/best.ckpt"]
    expected = nmt.load(file).translate(["the red cat ."])[0]
    assert found.translate(["the red cat ."])[0].score == expected.score
    both = nmt.load([file, NAMED])
    assert [path.name for path in both.checkpoints] == ["best.ckpt", "best.ckpt"]


def test_a_downloaded_file_is_a_strangers(online, tmp_path):
    """Its own code is named and not run, and what is no checkpoint is not unpacked."""
    import torch

    file = small_checkpoint(tmp_path / "best.ckpt")
    content = torch.load(file, weights_only=True)
    content["nmt"]["config"]["model"]["scoring"] = {"_target_": "hostile.Scoring"}
    torch.save(content, file)
    online["team/nmt/model-abc:best"] = artifact(("best.ckpt", file.read_bytes()))
    with pytest.raises(InputError, match=r"hostile"):
        nmt.load(NAMED)
    online["team/nmt/model-abc:best"] = artifact(("best.ckpt", b"\x80\x04cos\nsystem\n."))
    with pytest.raises(InputError, match=r"not a checkpoint of nmt"):
        nmt.load(NAMED)


@pytest.mark.parametrize(
    "there",
    [
        artifact(),
        artifact(("best.ckpt", b"1"), ("last.ckpt", b"2")),
        artifact(("model.pt", b"1")),
        artifact(("a/best.ckpt", b"1")),
        artifact(("../best.ckpt", b"1")),
        artifact(("best.ckpt", b"1"), ref="file:///etc/passwd"),
    ],
)
def test_an_artifact_without_one_checkpoint_is_refused(online, there, tmp_path):
    online["team/nmt/model-abc:best"] = there
    with pytest.raises(InputError, match=r"of which one must be a checkpoint"):
        download(NAMED)
    assert not list(tmp_path.glob("**/*.ckpt"))


def test_what_wandb_does_not_have_is_said_in_a_line(online):
    with pytest.raises(InputError) as refused:
        download(NAMED)
    assert str(refused.value) == (
        f"checkpoint={NAMED}: not downloaded from W&B: artifact team/nmt/model-abc:best not found"
    )


def test_offline_records_name_file_aliases_and_metadata(tmp_path, monkeypatch):
    """And the file that they name stays what it was when a resumed run writes another one."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    best = small_checkpoint(tmp_path / "run/checkpoints/best.ckpt")
    digest = sha256(best)
    metadata = {"update": 12, "score": {"bleu": 20.5}, "text": "f", "sha256": digest}
    settings = wandb.Settings(console="off", silent=True)
    run = wandb.init(mode="offline", project="p", entity="team", dir=tmp_path, settings=settings)
    try:
        log_checkpoint(run, best, metadata)
    finally:
        run.finish()
    small_checkpoint(best, seed=2)
    assert sha256(best) != digest
    records = inspected(tmp_path)
    [logged] = [record["artifact"] for record in records if record["type"] == "artifact"]
    assert (logged["entity"], logged["project"]) == ("team", "p")
    assert (logged["name"], logged["type"]) == (f"model-{run.id}", "model")
    assert set(logged["aliases"]) == {"best", "latest"}
    assert json.loads(logged["metadata"]) == metadata
    [entry] = logged["manifest"]["contents"]
    assert entry["path"] == "best.ckpt"
    assert sha256(Path(entry["local_path"])) == digest
    assert Path(entry["local_path"]).is_absolute()
