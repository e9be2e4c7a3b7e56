"""A run writes its model for the page only if the page can run this model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.inference.live_export import live_model
from nmt.inference.load import intervene
from nmt.layers import LstmUnit
from nmt.models.checkpoint import quantised
from tests.helpers.models import drawn_model, write_live


def test_weights_are_rounded_to_8_bits() -> None:
    matrix = np.random.default_rng(3).normal(size=(5, 40)).astype(np.float32)
    matrix[2] = 0
    codes, scale = quantised(matrix)
    assert np.abs(codes.astype(int)).max(1).tolist() == [127, 127, 0, 127, 127]
    assert (np.abs(codes * scale[:, None] - matrix) <= 0.501 * scale[:, None]).all()


def test_write_live_warns_of_an_unsupported_layer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trained = drawn_model()
    assert write_live(trained, tmp_path).is_file()

    class Louder(torch.nn.Module):
        pass

    trained.network.decoder.context.scoring = Louder()
    reason = "the page does not know Louder in RNNsearch"
    assert live_model(trained) == reason
    with caplog.at_level("INFO"):
        assert not write_live(trained, tmp_path).exists()
    assert reason in caplog.text
    trained.network.__class__ = type("Mine", (type(trained.network),), {})
    assert live_model(trained) == "the page does not know Mine of RNNsearch"
    assert live_model(drawn_model(scoring="Cosine")) == "the page does not know Cosine in RNNsearch"


def test_live_model_names_unsupported_options() -> None:
    trained = drawn_model()
    trained.network.reverse_source = True
    assert live_model(trained) == "the page does not read a source backwards"
    trained = drawn_model()
    intervene(trained.network, "uniform", "a.ckpt")
    assert live_model(trained) == "the page does not know Intervention in RNNsearch"
    trained = drawn_model()
    trained.network.decoder.unit = LstmUnit(7, 11, 22)
    assert live_model(trained) == "the page does not know LstmUnit in RNNsearch"


def test_export_is_skipped_if_disabled_or_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = drawn_model()
    monkeypatch.setattr("nmt.inference.live_export.LIMIT", 100)
    assert not write_live(trained, tmp_path).exists()
    trained.config.report.live = True
    assert write_live(trained, tmp_path).is_file()
    trained.config.report.live = False
    assert not write_live(trained, tmp_path).exists()
