"""The recurrent unit that can be chosen for both models."""

from __future__ import annotations

import pytest
import torch

from nmt.config import Config, ModelConfig
from nmt.layers import GatedUnit, LstmUnit
from nmt.models import build_model
from nmt.utils.errors import InputError

SIZES = {"hidden": 5, "embedding": 4, "alignment": 7, "maxout": 3}
MODELS = {
    "rnnsearch": {"scoring": {"_target_": "nmt.layers.scoring.Additive"}},
    "rnnencdec": {"_target_": "nmt.models.RNNencdec", "alignment": None},
}


def make(model, unit=None):
    chosen = {**SIZES, **MODELS[model], "unit": unit and {"_target_": unit}}
    with torch.device("meta"):
        return build_model(Config(model=ModelConfig(**chosen)), 11, 13).network


@pytest.mark.parametrize(("model", "annotation"), [("rnnsearch", 10), ("rnnencdec", 5)])
def test_the_unit_of_encoder_and_decoder(model, annotation):
    """Four matrices of each input in place of three."""
    gated, lstm = make(model), make(model, "nmt.layers.LstmUnit")
    for made, kind in ((gated, GatedUnit), (lstm, LstmUnit)):
        assert {type(unit) for unit in [*made.encoder.units, made.decoder.unit]} == {kind}
    sizes = [sum(p.numel() for p in made.parameters()) for made in (gated, lstm)]
    encoder = (annotation // 5) * 5 * (4 + 5 + 1)
    assert sizes[1] - sizes[0] == encoder + 5 * (4 + 5 + annotation + 1)


def test_a_unit_that_there_is_not():
    with pytest.raises(InputError, match=r"^model\.unit\._target_=nmt\.layers\.Gru: "):
        make("rnnsearch", "nmt.layers.Gru")
