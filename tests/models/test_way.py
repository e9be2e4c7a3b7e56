"""The choice of kernels and graphs is made once, for all ranks, and a resumed run keeps it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import pytorch_lightning as pl
import torch

from nmt.config.loading import load
from nmt.data.module import TranslationData
from nmt.data.preparation import prepare
from nmt.fused import backend_of
from nmt.fused.choice import Way
from nmt.fused.gpu.graphs import pad_batch
from nmt.models import base, build_model
from nmt.training.callbacks import Seeds


@pytest.fixture
def parts(composer, tmp_path):
    """Returns the data, and a function that makes a model with graphs that run on a CPU."""
    typed = ("+experiment=rnnsearch50", "regime=tiny", f"data.cache={tmp_path}/cache")
    config = load(composer(*typed, "model.dropout=0.3", "data.train.pairs=80"))
    text = prepare(config.data, config.tokenizer)

    def make():
        torch.manual_seed(1)
        model = build_model(config, *map(len, text.vocabularies))
        model.graphs.rehearse = True
        return model

    return TranslationData(text, config), make


class SaveSecondUpdate(pl.Callback):
    """Writes a checkpoint after two updates."""

    def __init__(self, path):
        self.path = path

    def on_train_batch_end(self, trainer, *_):
        if trainer.global_step == 2:
            trainer.save_checkpoint(self.path)


def fit(model, data, folder, *callbacks, path=None):
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=4,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        callbacks=[Seeds(1), *callbacks],
    )
    trainer.fit(model, data, ckpt_path=path)
    return {name: weight.clone() for name, weight in model.state_dict().items()}


@pytest.mark.slow
@pytest.mark.parametrize("graphs", [True, False])
def test_resumed_run_keeps_kernels_and_graphs(graphs, parts, tmp_path, monkeypatch):
    """A resumed run does not measure again. Graphs pad batches, so another choice would draw other dropout masks."""
    data, make = parts
    fastest = Mock(return_value=Way(False, graphs))
    monkeypatch.setattr(base, "fastest_way", fastest)
    path = tmp_path / "step-2.ckpt"
    expected = fit(make(), data, tmp_path, SaveSecondUpdate(path))
    (_, medium, ways), _ = fastest.call_args
    assert len(medium[0]) == data.config.data.batch_size
    assert ways == [Way(False, True), Way(False, False)]
    stored = torch.load(path, weights_only=True)["nmt"]["way"]
    assert stored == {"kernels": False, "graphs": graphs, "failed": False}
    fastest.return_value = Way(False, not graphs)
    found = fit(make(), data, tmp_path, path=path)
    fastest.assert_called_once()
    assert all(torch.equal(found[name], weight) for name, weight in expected.items())
    other = fit(make(), data, tmp_path)
    assert not all(torch.equal(other[name], weight) for name, weight in expected.items())


@pytest.mark.slow
def test_largest_batch_is_captured_first(parts, tmp_path, monkeypatch):
    data, make = parts
    monkeypatch.setattr(base, "fastest_way", lambda network, words, ways: ways[0])
    model = make()
    captured = []
    model.teardown = lambda stage: captured.extend(model.graphs.graphs)
    fit(model, data, tmp_path)
    rows = [data.schedule.rows(update) for update in range(data.schedule.first_pool)]
    shapes = [pad_batch(*data.prepared.train.batch(each).pairs) for each in rows]
    entries = [source.numel() + target.numel() for source, _, target, _ in shapes]
    assert captured[0][0].numel() + captured[0][1].numel() == max(entries)
    assert len(captured) > 1


@pytest.mark.slow
def test_kernels_are_disabled_on_all_ranks_if_one_fails(parts, monkeypatch):
    _, make = parts
    monkeypatch.setattr("nmt.fused.backend.launches_on", lambda device: True)
    for verdict in (True, False):
        model = make()
        backend_of(model.network).verify = None
        strategy = SimpleNamespace(reduce_boolean_decision=lambda mine, all_=verdict: mine and all_)
        model._trainer = SimpleNamespace(strategy=strategy, datamodule=None)
        assert model.choose_way() == Way(verdict, True)
        assert backend_of(model.network).kernels == verdict


@pytest.mark.slow
def test_failed_kernel_stays_disabled_after_resume(parts, monkeypatch, caplog):
    """Only the network gives up its kernels. The optimizer keeps its own, so that updates stay identical to the bit."""
    _, make = parts
    monkeypatch.setattr("nmt.fused.backend.launches_on", lambda device: True)
    caplog.set_level(logging.INFO)
    stored = {}
    for failed in (True, False):
        model, resumed = make(), make()
        for each in (model, resumed):
            backend_of(each.network).verify = None
        assert model.choose_way() == Way(True, True)
        backend_of(model.network).kernels = not failed
        model._trainer = SimpleNamespace(
            strategy=SimpleNamespace(reduce=lambda sums, reduce_op: sums)
        )
        model.vocabularies = None
        model.on_save_checkpoint(stored)
        assert stored["nmt"]["way"] == {"kernels": True, "graphs": True, "failed": failed}
        resumed.way, resumed.kernels_failed = Way(True, True), stored["nmt"]["way"]["failed"]
        assert resumed.choose_way() == Way(True, True)
        assert backend_of(resumed.network).kernels != failed
        no = "no " if failed else ""
        assert f"updates are computed with {no}Triton kernels and CUDA graphs" in caplog.messages
        caplog.clear()
    # With `kernels=false` the user turns kernels off. This is not a failure.
    backend_of(model.network).kernels = False
    monkeypatch.setattr(model.config.model, "kernels", False)
    model.on_save_checkpoint(stored)
    assert not stored["nmt"]["way"]["failed"]
    asked = make()
    backend_of(asked.network).verify = None
    asked.kernels_failed = True
    monkeypatch.setattr(asked.config.model, "kernels", True)
    asked.choose_way()
    assert backend_of(asked.network).kernels
