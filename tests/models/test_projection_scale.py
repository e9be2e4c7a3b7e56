"""The scale of W_a and U_a, at the start and in steps: what it makes of a scoring function."""

from __future__ import annotations

import copy

import pytest
import torch

from nmt.config import Config, ModelConfig, OptimizerConfig
from nmt.data.batch import collate
from nmt.models import build_model

SIZES = {"hidden": 5, "embedding": 4, "alignment": 16, "maxout": 3}
ADAM = {"_target_": "torch.optim.Adam", "lr": 0.01, "options": {"eps": 1e-15}}
ADADELTA = {"_target_": "torch.optim.Adadelta", "lr": 1.0}
BATCHES = [
    collate([[4, 5, 0], [6, 0]], [[3, 0], [7, 8, 9, 0]], [0, 1]),
    collate([[2, 3, 8, 0], [5, 5, 0]], [[2, 4, 0], [6, 0]], [0, 1]),
]


class Training:
    """Updates in float64 without clipping, over two batches in turn."""

    def __init__(self, scoring: str, optimizer: dict, **exponents: float) -> None:
        torch.manual_seed(7)
        target = {"_target_": f"nmt.layers.scoring.{scoring}"}
        model = ModelConfig(scoring=target, init="glorot", **SIZES, **exponents)
        config = Config(model=model, optimizer=OptimizerConfig(**optimizer, clip_norm=0))
        config.trainer["max_steps"] = 100
        self.model = build_model(config, 11, 13).double()
        made = self.model.configure_optimizers()
        self.optimizer, self.schedule = made["optimizer"], made["lr_scheduler"]["scheduler"]
        self.losses: list[float] = []

    def update(self, number: int) -> None:
        self.optimizer.zero_grad()
        loss = self.model.training_step(BATCHES[number % 2], 0)["loss"]
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.losses.append(float(loss.detach()))


def losses(*arguments, updates=20, **exponents):
    training = Training(*arguments, **exponents)
    for number in range(updates):
        training.update(number)
    return training.losses


def test_dot_with_its_factor_is_scaled_dot_under_adam():
    """n'^(-1/4) times as large at the start, and as far in each step; neither alone is it.

    Adam's steps do not depend on the size of gradients but for its epsilon, which is small here.
    """
    scaled = losses("ScaledDot", ADAM)
    both = {"projection_init_exponent": -0.25, "projection_lr_exponent": -0.25}
    assert losses("Dot", ADAM, **both) == pytest.approx(scaled, abs=3e-9)
    assert scaled[-1] < 0.7 * scaled[0]
    for one in both.items():
        other = losses("Dot", ADAM, **dict([one]))
        assert abs(other[-1] - scaled[-1]) > 1e-4
    assert abs(losses("Dot", ADAM)[-1] - scaled[-1]) > 1e-4


@pytest.mark.parametrize("rule", [ADAM, ADADELTA])
def test_only_the_projections_have_a_rate_of_their_own(rule):
    """16^-0.5 = 1/4 of it, also once the schedule has changed it; without it there is one group."""
    schedule = {"_target_": "nmt.models.optimizer.linear"}
    training = Training("Additive", rule | {"schedule": schedule}, projection_lr_exponent=-0.5)
    attention = training.model.network.decoder.context
    for update in range(3):
        others, scaled = training.optimizer.param_groups
        assert scaled["lr"] == pytest.approx(others["lr"] / 4)
        assert others["lr"] == pytest.approx(rule["lr"] * (1 - update / 100))
        assert [id(p) for p in scaled["params"]] == [id(attention.W_a), id(attention.U_a)]
        training.update(update)
    together = {id(p) for group in training.optimizer.param_groups for p in group["params"]}
    assert together == {id(p) for p in training.model.parameters()}
    assert len(Training("Additive", rule).optimizer.param_groups) == 1


def test_no_attention_no_rate_of_its_own():
    config = Config(model=ModelConfig("nmt.models.RNNencdec", **SIZES | {"alignment": None}))
    model = build_model(config, 11, 13)
    assert len(model.configure_optimizers()["optimizer"].param_groups) == 1


@pytest.mark.parametrize("rule", [ADAM, ADADELTA])
def test_states_of_both_groups_are_resumed(rule):
    """What the optimizer stores after three updates, with the weights, makes the same next ones."""
    first = Training("Dot", rule, projection_lr_exponent=-0.25)
    for number in range(3):
        first.update(number)
    second = Training("Dot", rule, projection_lr_exponent=-0.25)
    second.model.load_state_dict(first.model.state_dict())
    second.optimizer.load_state_dict(copy.deepcopy(first.optimizer.state_dict()))
    second.schedule.load_state_dict(first.schedule.state_dict())
    for number in range(3, 6):
        first.update(number)
        second.update(number)
    assert second.losses == first.losses[3:]
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)
