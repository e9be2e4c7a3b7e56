"""Configurations of earlier versions: understood where stored, refused with the new key where typed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from nmt.cli.explain import explain
from nmt.config import TrainConfig
from nmt.config.keys import entries
from nmt.config.renamed import RENAMED, renamed_to, upgrade
from nmt.config.validation import load, validate_keys
from nmt.models.checkpoint import stored_config
from nmt.utils.errors import InputError

EARLIER = Path(__file__).with_name("earlier_configuration.json")  # from a checkpoint of 2026


@pytest.fixture
def earlier():
    return json.loads(EARLIER.read_text())


def test_the_configuration_of_an_earlier_checkpoint(earlier):
    before = copy.deepcopy(earlier)
    config = load(stored_config(earlier, Path("best.ckpt")))
    assert earlier == before
    rule = config.optimizer
    assert (rule._target_, rule.lr, rule.clip_norm) == ("torch.optim.Adam", 0.001, 1.0)
    assert rule.options == {"betas": [0.9, 0.999], "eps": 1e-8}
    assert rule.schedule == {"_target_": "nmt.models.optimizer.linear"}
    assert (rule.warmup, rule.decay_from) == (0, 0.7)
    aligners = config.evaluation.alignment
    assert (aligners.statistical_aligners, aligners.statistical_aligner_pairs) == (False, 30000)
    assert (config.experiment, config.seed, config.data.batch_size) == (
        before["experiment"],
        before["seed"],
        before["data"]["batch_size"],
    )


def test_other_values_of_an_earlier_configuration(earlier):
    earlier["optimizer"] |= {
        "name": "adadelta",
        "rho": 0.8,
        "eps": 1e-4,
        "schedule": "inverse_sqrt",
    }
    earlier["evaluation"]["alignment"] |= {"yardstick": True, "yardstick_pairs": 77}
    config = load(stored_config(earlier, Path("best.ckpt")))
    assert config.optimizer._target_ == "torch.optim.Adadelta"
    assert config.optimizer.options == {"rho": 0.8, "eps": 1e-4}
    assert config.optimizer.schedule == {"_target_": "nmt.models.optimizer.inverse_sqrt"}
    aligners = config.evaluation.alignment
    assert (aligners.statistical_aligners, aligners.statistical_aligner_pairs) == (True, 77)


def test_a_configuration_of_this_version_is_left_as_it_is(earlier):
    now = upgrade(earlier)
    assert upgrade(now) == now
    assert upgrade({"seed": 1}) == {"seed": 1}


@pytest.mark.parametrize(
    ("attends", "encoder", "attention"),
    [
        (True, "nmt.layers.encoder.BidirectionalEncoder", "nmt.layers.attention.Attention"),
        (False, "nmt.layers.encoder.ForwardEncoder", None),
    ],
)
def test_parts_that_there_was_no_choice_of(earlier, attends, encoder, attention):
    assert not {"encoder", "unit", "attention", "projection_lr_exponent"} & set(earlier["model"])
    if not attends:
        earlier["model"] |= {"_target_": "nmt.models.RNNencdec", "scoring": {"_target_": None}}
    model = load(stored_config(earlier, Path("best.ckpt"))).model
    assert model.encoder == {"_target_": encoder}
    assert model.unit == {"_target_": "nmt.layers.gated_unit.GatedUnit"}
    assert model.attention == {"_target_": attention}
    assert (model.projection_init_exponent, model.projection_lr_exponent) == (0, 0)


def test_what_has_no_place_is_left_out(earlier):
    assert "in_order" in earlier["data"]
    now = upgrade(earlier)
    assert "in_order" not in now["data"]
    assert not {"script", "word_characters"} & set(now["data"]["filters"])


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_earlier_key_that_is_typed_is_refused_with_the_new_one(composer, old, new):
    said = renamed_to(old)
    assert said
    assert (new or "removed") in said
    if new is not None:
        names = {name for name, _, _ in entries(TrainConfig)}
        assert old not in names
        assert any(name == new or new.startswith(f"{name}.") for name in names)
        with pytest.raises(Exception, match="Could not override") as error:
            composer(f"{old}=1")
        assert explain(error.value, TrainConfig, []) == f"{old}: {said}"
        config = OmegaConf.create(composer())
        OmegaConf.update(config, old, 1, force_add=True)
        with pytest.raises(InputError, match=rf"^{old}: {said}$"):
            validate_keys(config)
    assert renamed_to("optimizer.lr") is None
