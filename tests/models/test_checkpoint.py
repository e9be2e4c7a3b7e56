"""What a checkpoint holds: written, completed, read."""

from __future__ import annotations

import pytest
import torch
from omegaconf import OmegaConf

from nmt.config import SearchConfig
from nmt.data.word_vocabulary import WordVocabulary
from nmt.inference.trained import dictionary_of
from nmt.models import build_model
from nmt.models.checkpoint import (
    ValidationProgress,
    complete_checkpoint,
    description,
    read_checkpoint,
    store_progress,
    updates_of,
    write_checkpoint,
)
from nmt.utils.errors import InputError
from nmt.utils.files import verify
from tests.helpers.models import small_config

SOURCE, TARGET = WordVocabulary(["the", "red", "cat"]), WordVocabulary(["le", "chat", "rouge"])
PROGRESS = ValidationProgress(
    [{"update": 5.0, "bleu": 3.5}], {"update": 5.0, "bleu": 3.5}, 71.5, True
)


@pytest.fixture
def model():
    return build_model(OmegaConf.to_object(small_config()), len(SOURCE), len(TARGET)).eval()


def checkpoint(path, model):
    content = {
        "nmt": description(OmegaConf.to_object(small_config()), SOURCE, TARGET, "f"),
        "global_step": 7,
        "state_dict": model.state_dict(),
    }
    store_progress(content, PROGRESS)
    write_checkpoint(content, path)


def test_a_checkpoint_carries_what_the_end_of_its_run_says(tmp_path, model):
    path = tmp_path / "best.ckpt"
    checkpoint(path, model)
    before = read_checkpoint(path)
    assert dictionary_of([before], SearchConfig(replace_unk="copy")) is None
    with pytest.raises(InputError, match=r"search.replace_unk=dictionary: .*best.ckpt holds no"):
        dictionary_of([before], SearchConfig(replace_unk="dictionary"))
    complete_checkpoint(path, {"updates": 9}, {"cat": "chat"})
    after = read_checkpoint(path)
    assert (before.training, after.training) == (None, {"updates": 9})
    assert dictionary_of([after], SearchConfig(replace_unk="dictionary")) == {"cat": "chat"}
    assert after.sha256 == verify(path) != before.sha256
    assert len((tmp_path / "best.ckpt.sha256").read_text().splitlines()) == 1
    assert all(torch.equal(after.weights[name], value) for name, value in before.weights.items())
    assert after.update == 7
    assert after.progress == PROGRESS


def test_what_is_no_checkpoint_is_refused(tmp_path):
    for name, content in {"text": b"words", "other": None}.items():
        path = tmp_path / name
        path.write_bytes(content) if content else torch.save({"weights": torch.zeros(2)}, path)
        with pytest.raises(InputError, match="not a checkpoint of nmt"):
            read_checkpoint(path)
        assert updates_of(path) is None
    with pytest.raises(InputError, match="no such file"):
        read_checkpoint(tmp_path / "nowhere")
    with pytest.raises(InputError, match="a folder without checkpoints"):
        read_checkpoint(tmp_path)


def test_another_format_is_refused(tmp_path, model):
    checkpoint(tmp_path / "next.ckpt", model)
    content = torch.load(tmp_path / "next.ckpt", weights_only=True)
    content["nmt"]["format"] = 99
    write_checkpoint(content, tmp_path / "next.ckpt")
    with pytest.raises(InputError, match="its format is 99"):
        read_checkpoint(tmp_path / "next.ckpt")
