"""What the log shows of a training run."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from pytorch_lightning.callbacks import ModelCheckpoint

from nmt.training.callbacks import choose_short
from nmt.training.training_log import TrainingRecord
from tests.inference.small import make_pairs


@pytest.mark.parametrize(
    ("seconds", "updates"),
    [(20.0, [20, 40, 60, 80, 100, 120]), (2.6, [20, 40, 80, 120]), (0.01, [20])],
)
def test_log_lines_are_evenly_spaced_however_long_an_update_takes(caplog, seconds, updates):
    caplog.set_level(logging.INFO)
    record = TrainingRecord()
    for update in range(20, 121, 20):
        trainer: Any = SimpleNamespace(
            global_step=update, log_every_n_steps=20, callback_metrics={}, max_steps=120
        )
        record._log_update(trainer, seconds if update == 20 else 0.1 * seconds)
    assert [int(message.split()[1]) for message in caplog.messages] == updates


def test_the_sentence_to_show_is_short_and_has_known_words():
    known = ["the cat", "the red cat sees the dog the cat", "the cat sees the dog"]
    unknown = ["the big cat sees the dog the cat", "the cat sees the dog the cat"]
    pairs = make_pairs([(unknown[0], "le"), (known[0], "le"), (unknown[1], "la"), (known[2], "le")])
    assert choose_short(pairs) == 3
    pairs = make_pairs([(known[2], "le"), (known[1], "le")])
    assert choose_short(pairs) == 1
    assert choose_short(make_pairs([("a b", "c")])) == 0


@pytest.mark.parametrize("exists", [True, False])
def test_best_score_of_another_folder_is_forgotten_without_its_file(tmp_path, exists):
    """A moved folder still has the file; a new folder (`ckpt_path`) does not."""
    best = ModelCheckpoint(str(tmp_path / "new"), "best", monitor="valid/bleu")
    state = {"best_model_path": "/old/best.ckpt", "best_model_score": 9, "dirpath": "/old"}
    state |= {
        "kth_best_model_path": "",
        "last_model_path": "",
        "best_k_models": {"/old/best.ckpt": 9},
    }
    if exists:
        (tmp_path / "new").mkdir()
        (tmp_path / "new/best.ckpt").touch()
    last = ModelCheckpoint(str(tmp_path / "new"), "last")
    unused = dict.fromkeys(state, "") | {"best_k_models": {}}  # nothing was saved yet
    checkpoint = {"callbacks": {best.state_key: state, last.state_key: unused}}
    trainer: Any = SimpleNamespace(checkpoint_callbacks=[best, last])
    TrainingRecord().on_load_checkpoint(trainer, None, checkpoint)  # type: ignore[arg-type]
    here = str(tmp_path / "new/best.ckpt")
    assert checkpoint["callbacks"][last.state_key]["best_model_path"] == ""
    kept = checkpoint["callbacks"].get(best.state_key)
    assert (kept and kept["best_k_models"]) == ({here: 9} if exists else None)
