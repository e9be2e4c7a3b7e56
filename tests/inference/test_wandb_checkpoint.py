"""Checkpoints named as W&B artifacts: what is downloaded, and what is believed of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nmt
from nmt.inference.wandb_checkpoint import download
from nmt.utils.errors import InputError
from tests.helpers.models import small_checkpoint

NAMED = "wandb:team/nmt/model-abc:best"


def artifact(**files: bytes) -> SimpleNamespace:
    """An artifact of files, as W&B's own looks from outside."""

    def entry(path: str, content: bytes) -> SimpleNamespace:
        def fetch(root: str, skip_cache: bool) -> str:
            file = Path(root) / path
            file.write_bytes(content)
            return str(file)

        return SimpleNamespace(path=path, download=fetch)

    entries = {path: entry(path, content) for path, content in files.items()}
    return SimpleNamespace(version="v3", manifest=SimpleNamespace(entries=entries))


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A machine with a key, and a W&B that has what is put into the returned dictionary."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    known: dict[str, Any] = {}
    monkeypatch.setattr(wandb, "Api", lambda: SimpleNamespace(artifact=known.__getitem__))
    return known


@pytest.mark.parametrize(
    "text",
    ["wandb:a", "wandb:a/b", "wandb:a/b/c", "wandb:a/b/c:", "wandb:../b/c:d", "wandb:a/../c:d"],
)
def test_what_names_no_artifact_is_refused(text: str, online: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"must be wandb:|not downloaded"):
        download(text)


def test_without_a_key_it_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    with pytest.raises(InputError, match="wandb login"):
        download(NAMED)


def test_a_downloaded_model_translates_as_the_file_does(
    online: dict[str, Any], tmp_path: Path
) -> None:
    file = small_checkpoint(tmp_path / "best.ckpt")
    online["team/nmt/model-abc:best"] = artifact(**{"model.ckpt": file.read_bytes()})
    expected = nmt.load(file).translate(["the red cat ."])[0]
    assert nmt.load(NAMED).translate(["the red cat ."])[0].score == expected.score


def test_a_downloaded_file_is_a_strangers(online: dict[str, Any]) -> None:
    online["team/nmt/model-abc:best"] = artifact(**{"model.ckpt": b"\x80\x04cos\nsystem\n."})
    with pytest.raises(InputError, match="not a checkpoint"):
        nmt.load(NAMED)


@pytest.mark.parametrize(
    "files", [[], ["a.ckpt", "b.ckpt"], ["model.pt"], ["a/best.ckpt"], ["../best.ckpt"], None]
)
def test_an_artifact_without_one_checkpoint_is_refused(
    online: dict[str, Any], files: list[str] | None, tmp_path: Path
) -> None:
    if files is not None:
        online["team/nmt/model-abc:best"] = artifact(**dict.fromkeys(files, b"1"))
    with pytest.raises(InputError, match="not downloaded"):
        download(NAMED)
    assert not list(tmp_path.glob("**/*.ckpt"))
