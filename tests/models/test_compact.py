"""Compact checkpoints: small, without an optimizer, and nearly the same model."""

from pathlib import Path

import torch

from nmt.models import RNNsearch
from nmt.models.checkpoint import compact, read_checkpoint
from tests.helpers.models import small_checkpoint


def test_compact_checkpoint_is_nearly_the_same_model(tmp_path: Path) -> None:
    full = small_checkpoint(tmp_path / "full.ckpt")
    compact(full, tmp_path / "small.ckpt")
    stored = torch.load(tmp_path / "small.ckpt", weights_only=True)
    assert not {"optimizer_states", "loops", "callbacks"} & set(stored)
    before, after = read_checkpoint(full), read_checkpoint(tmp_path / "small.ckpt")
    assert after.config == before.config
    assert [each.state() for each in after.vocabularies] == [
        each.state() for each in before.vocabularies
    ]
    loaded = RNNsearch.load_from_checkpoint(tmp_path / "small.ckpt").state_dict()
    for name, weight in before.weights.items():
        step = weight.abs().max() / 63
        assert (after.weights[name] - weight).abs().max() <= step / 2 + 1e-6
        assert torch.equal(loaded[name], after.weights[name])
