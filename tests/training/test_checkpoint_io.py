"""Checkpoints of one moment are one file with two names; later ones leave it as it is."""

import os

import torch

from nmt.training.checkpoint_io import AtomicCheckpointIO


def content(step, **more):
    return {
        "global_step": step,
        "loops": {"batches": step},
        "weights": torch.tensor([step]),
        **more,
    }


def test_one_file_for_each_moment(tmp_path):
    writer = AtomicCheckpointIO()
    best = tmp_path / "best.ckpt"
    last = tmp_path / "last.ckpt"
    for step, improved in ((1, True), (2, False), (3, True)):
        for path in (best, last) if improved else (last,):
            writer.save_checkpoint(content(step), path)
        assert best.samefile(last) is improved
        kept = [int(torch.load(path, weights_only=True)["weights"]) for path in (best, last)]
        assert kept == [step if improved else 1, step]
    writer.save_checkpoint({"global_step": 3, "loops": {"batches": 3}}, tmp_path / "other.ckpt")
    assert not last.samefile(tmp_path / "other.ckpt")
    assert {path.name for path in tmp_path.iterdir()} == {"best.ckpt", "last.ckpt", "other.ckpt"}


def test_a_file_system_without_links(tmp_path, monkeypatch):
    def refuse(*names):
        raise OSError("operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    writer = AtomicCheckpointIO()
    best = tmp_path / "best.ckpt"
    last = tmp_path / "last.ckpt"
    for path in (best, last):
        writer.save_checkpoint(content(1), path)
    assert not best.samefile(last)
    assert torch.equal(torch.load(last, weights_only=True)["weights"], torch.tensor([1]))
