"""The update rules against NumPy, clipping, and the schedules' numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from nmt.config.schema import Config, ModelConfig, OptimizerConfig
from nmt.data.batch import collate
from nmt.models import build
from nmt.models.optimizer import learning_rate_share, make_optimizer

RULE = OptimizerConfig()


def test_adadelta_is_the_papers():
    """Zeiler (2012), algorithm 1, with rho = 0.95 and eps = 1e-6 (appendix B.2)."""
    rng = np.random.default_rng(2)
    start, gradients = rng.normal(size=(3, 4)), rng.normal(size=(6, 3, 4))
    parameter = torch.nn.Parameter(torch.tensor(start))
    made = make_optimizer([parameter], RULE, 6)
    x, squares, steps = start.copy(), np.zeros((3, 4)), np.zeros((3, 4))
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        made["optimizer"].step()
        made["lr_scheduler"]["scheduler"].step()
        squares = 0.95 * squares + 0.05 * gradient**2
        step = -np.sqrt(steps + 1e-6) / np.sqrt(squares + 1e-6) * gradient
        steps = 0.95 * steps + 0.05 * step**2
        x += step
    np.testing.assert_allclose(parameter.detach().numpy(), x, rtol=1e-10)


def test_adam_is_kingmas():
    rule = OptimizerConfig(name="adam", lr=0.01, eps=1e-8, beta1=0.8, beta2=0.9)
    rng = np.random.default_rng(3)
    start, gradients = rng.normal(size=5), rng.normal(size=(4, 5))
    parameter = torch.nn.Parameter(torch.tensor(start))
    made = make_optimizer([parameter], rule, 4)
    x, mean, square = start.copy(), np.zeros(5), np.zeros(5)
    for number, gradient in enumerate(gradients, 1):
        parameter.grad = torch.tensor(gradient)
        made["optimizer"].step()
        mean, square = 0.8 * mean + 0.2 * gradient, 0.9 * square + 0.1 * gradient**2
        x -= 0.01 * (mean / (1 - 0.8**number)) / (np.sqrt(square / (1 - 0.9**number)) + 1e-8)
    np.testing.assert_allclose(parameter.detach().numpy(), x, rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({}, {0: 1, 99: 1}),
        ({"warmup": 4}, {0: 0.25, 1: 0.5, 3: 1, 4: 1, 99: 1}),
        ({"schedule": "linear"}, {0: 1, 25: 0.75, 99: 0.01, 100: 0}),
        ({"schedule": "linear", "decay_from": 0.5}, {0: 1, 49: 1, 50: 1, 75: 0.5, 99: 0.02}),
        ({"schedule": "linear", "warmup": 20}, {9: 0.5, 19: 1, 20: 1, 60: 0.5, 100: 0}),
        ({"schedule": "inverse_sqrt", "warmup": 4}, {3: 1, 15: 0.5, 35: 1 / 3}),
        ({"schedule": "inverse_sqrt"}, {0: 1, 3: 0.5, 99: 0.1}),
    ],
)
def test_schedules_of_a_hundred_updates(settings, shares):
    config = dataclasses.replace(RULE, **settings)
    found = {update: learning_rate_share(update, config, 100) for update in shares}
    assert found == pytest.approx(shares)


def test_the_schedule_is_stepped_once_an_update():
    rule = OptimizerConfig(name="adam", lr=2.0, warmup=4)
    parameter = torch.nn.Parameter(torch.zeros(1))
    made = make_optimizer([parameter], rule, 10)
    assert made["lr_scheduler"]["interval"] == "step"
    rates = []
    for _ in range(6):
        rates.append(made["optimizer"].param_groups[0]["lr"])
        made["optimizer"].step()
        made["lr_scheduler"]["scheduler"].step()
    assert rates == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0, 2.0])


@pytest.mark.parametrize("limit", [0.0, 1e-3, 1e6])
def test_the_gradient_is_scaled_to_the_norm(limit):
    torch.manual_seed(0)
    sizes = {"hidden": 5, "embedding": 4, "alignment": 7, "maxout": 3}
    scoring = {"_target_": "nmt.layers.scoring.Additive"}
    config = Config(
        model=ModelConfig(scoring=scoring, init="glorot", **sizes),
        optimizer=OptimizerConfig(clip_norm=limit),
    )
    model = build(config, 11, 13).double()
    batch = collate([[4, 5, 0], [6, 0]], [[3, 0], [7, 8, 9, 0]], [0, 1])
    model.training_step(batch, 0)["loss"].backward()
    before = {name: each.grad.numpy().copy() for name, each in model.named_parameters()}
    norm = np.sqrt(sum((gradient**2).sum() for gradient in before.values()))
    model.configure_gradient_clipping(torch.optim.SGD(model.parameters()))
    assert float(model.gradient_norm) == pytest.approx(norm)
    scale = 1.0 if limit == 0 or norm <= limit else limit / norm
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), scale * before[name], rtol=1e-4)
    assert bool(model.finite)


def test_the_loss_is_the_mean_over_sentences_of_summed_words():
    torch.manual_seed(1)
    sizes = {"hidden": 5, "embedding": 4, "alignment": 7, "maxout": 3}
    scoring = {"_target_": "nmt.layers.scoring.Dot"}
    model = build(Config(model=ModelConfig(scoring=scoring, **sizes)), 11, 13).double()
    pairs = [([4, 5, 0], [3, 0]), ([6, 0], [7, 8, 9, 0]), ([7, 7, 7, 0], [2, 2, 0])]
    batch = collate([source for source, _ in pairs], [target for _, target in pairs], [0, 1, 2])
    together = model.training_step(batch, 0)
    alone = [float(model(collate([s], [t], [0])).nll.sum().detach()) for s, t in pairs]
    assert float(together["loss"].detach()) == pytest.approx(sum(alone) / 3)
    assert float(together["nll"]) == pytest.approx(sum(alone))
    assert (int(together["words"]), int(together["sentences"])) == (9, 3)
