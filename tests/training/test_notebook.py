"""Trains a model with an ordinary Lightning Trainer, as in a notebook."""

from __future__ import annotations

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EMAWeightAveraging, ModelCheckpoint

import nmt
from nmt.config.loading import load
from nmt.data.module import TranslationData
from nmt.data.preparation import prepare
from nmt.models import RNNsearch, build_model
from nmt.search import beam_search
from nmt.training import callbacks
from nmt.training.callbacks import SampleTranslation, Seeds


@pytest.fixture
def parts(composer, tmp_path):
    """Returns the data, and a function that makes the model."""
    typed = ("+experiment=rnnsearch50", "regime=tiny", f"data.cache={tmp_path}/cache")
    config = load(composer(*typed, "model.dropout=0.1", "data.train.pairs=80"))
    text = prepare(config.data, config.tokenizer)

    def make() -> RNNsearch:
        torch.manual_seed(1)
        return build_model(config, len(text.vocabularies[0]), len(text.vocabularies[1]))

    return TranslationData(text, config), make


def trainer(folder, *added, **options) -> pl.Trainer:
    return pl.Trainer(
        accelerator="cpu",
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        callbacks=[Seeds(1), *added],
        **options,
    )


@pytest.mark.slow
def test_lightning_trainer_fits_resumes_and_tests(parts, tmp_path, recwarn):
    data, make = parts
    # Update 8 is in the second epoch.
    kept = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=8, save_top_k=-1)
    whole = trainer(tmp_path, kept, max_epochs=2)
    model = make()
    whole.fit(model, data)
    assert whole.global_step == 2 * data.schedule.updates_per_epoch()
    assert 0 < float(whole.callback_metrics["valid/nll_per_word"]) < 6

    resumed = trainer(tmp_path / "resumed", max_epochs=2)
    again = make()
    resumed.fit(again, data, ckpt_path=tmp_path / "step=8.ckpt")
    assert resumed.global_step == whole.global_step
    for name, weight in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight), name

    resumed.save_checkpoint(tmp_path / "model.ckpt")
    loaded = RNNsearch.load_from_checkpoint(tmp_path / "model.ckpt")
    assert len(nmt.load(tmp_path / "model.ckpt").translate(["The house ."])) == 1

    scores = trainer(tmp_path / "tested").test(loaded, data, verbose=False)[0]
    assert {"test/test/bleu", "test/by_length/nll_per_word"} <= scores.keys()
    assert "test/by_length/bleu_by_length/61+" in scores
    messages = [str(each.message) for each in recwarn]
    assert not [text for text in messages if "overridden" in text or "resumable" in text]


def test_sample_translation_is_by_the_averaged_weights(parts, tmp_path, monkeypatch):
    """Validations use the average of the weights, so its BLEU and the translation beside it do, too."""
    data, make = parts
    seen = {}

    def search(network, *arguments):
        seen["sample"] = next(network.parameters()).detach().clone()
        return beam_search(network, *arguments)

    class Validated(pl.Callback):
        def on_validation_batch_start(self, trainer, pl_module, *rest):
            seen["validation"] = next(pl_module.network.parameters()).detach().clone()

    monkeypatch.setattr(callbacks, "beam_search", search)
    average = EMAWeightAveraging(decay=0.5)
    sample = SampleTranslation(3.0)
    model = make()
    trainer(tmp_path, sample, average, Validated(), max_steps=3, val_check_interval=3).fit(
        model, data
    )
    assert torch.equal(seen["sample"], seen["validation"])


def test_metrics_are_logged_through_lightning(parts, tmp_path):
    data, make = parts
    made = trainer(tmp_path, max_steps=4, val_check_interval=4, log_every_n_steps=2)
    made.fit(make(), data)
    names = set(made.callback_metrics)
    assert {"train/nll_per_word", "train/gradient_norm", "valid/bleu", "valid/eos_weight"} <= names
    assert any(name.startswith("valid/bleu_by_length/") for name in names)
