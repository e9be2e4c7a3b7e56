"""Checkpoints that are named as W&B artifacts: downloads, and files that are refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import nmt
from nmt.inference.load import download
from tests.helpers.models import small_checkpoint

NAMED = "wandb:team/nmt/model-abc:best"


@pytest.fixture
def put(monkeypatch, tmp_path):
    """Sets a W&B key, and returns a function that adds files to the artifact."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    entries: dict[str, SimpleNamespace] = {}
    artifact = SimpleNamespace(version="v3", manifest=SimpleNamespace(entries=entries))
    known = {NAMED.removeprefix("wandb:"): artifact}
    monkeypatch.setattr(wandb, "Api", lambda: SimpleNamespace(artifact=known.__getitem__))

    def put(**files: bytes) -> None:
        for name, content in files.items():

            def fetch(root: str, skip_cache: bool, name=name, content=content) -> str:
                Path(root, name).write_bytes(content)
                return f"{root}/{name}"

            entries[name] = SimpleNamespace(download=fetch)

    return put


@pytest.mark.parametrize(
    "text",
    ["wandb:a", "wandb:a/b", "wandb:a/b/c", "wandb:a/b/c:", "wandb:../b/c:d", "wandb:a/../c:d"],
)
def test_refuses_a_malformed_artifact_name(text, put):
    with pytest.raises(nmt.InputError, match=r"must be wandb:|not downloaded"):
        download(text)


def test_refuses_a_download_without_a_key(monkeypatch, tmp_path):
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    with pytest.raises(nmt.InputError, match="wandb login"):
        download(NAMED)


def test_downloaded_model_equals_the_file(put, tmp_path):
    file = small_checkpoint(tmp_path / "best.ckpt")
    put(**{"model.ckpt": file.read_bytes()})
    text = "the red cat ."
    assert (
        nmt.load(NAMED).translate(text).log_probability
        == nmt.load(file).translate(text).log_probability
    )


def test_refuses_a_downloaded_pickle(put):
    put(**{"model.ckpt": b"\x80\x04cos\nsystem\n."})
    with pytest.raises(nmt.InputError, match="not a checkpoint"):
        nmt.load(NAMED)


@pytest.mark.parametrize("files", [[], ["a.ckpt", "b.ckpt"], ["model.pt"], ["../best.ckpt"]])
def test_refuses_an_artifact_without_one_checkpoint(files, put, tmp_path):
    put(**dict.fromkeys(files, b"1"))
    with pytest.raises(nmt.InputError, match="not downloaded"):
        download(NAMED)
    assert not list(tmp_path.glob("**/*.ckpt"))
