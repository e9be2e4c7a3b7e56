"""Optimizers (compared with NumPy), gradient clipping, and learning-rate schedules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import ParameterList

from nmt.config.schema import Config, ModelConfig, OptimizerConfig
from nmt.data.batch import collate
from nmt.models import build_model
from nmt.models.optimizer import make_optimizer, replace_optimizer
from nmt.utils.errors import InputError

ADADELTA = OptimizerConfig(options={"rho": 0.95, "eps": 1e-6})
ADAM = {"_target_": "torch.optim.Adam"}


def schedule(target: str, **arguments) -> dict:
    known = target in ("constant", "linear", "inverse_sqrt")
    return {"_target_": f"nmt.models.optimizer.{target}" if known else target, **arguments}


def rates(rule: OptimizerConfig, updates: int, steps: int) -> list[float]:
    """Returns the learning rates of the first `steps` of `updates` updates."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    made = make_optimizer(ParameterList([parameter]), rule, updates)
    assert made["lr_scheduler"]["interval"] == "step"
    found = []
    for _ in range(steps):
        found.append(made["optimizer"].param_groups[0]["lr"])
        made["optimizer"].step()
        made["lr_scheduler"]["scheduler"].step()
    return found


def test_adadelta_equals_the_paper():
    """Zeiler (2012), algorithm 1, with rho = 0.95 and eps = 1e-6 (appendix B.2)."""
    rng = np.random.default_rng(2)
    start, gradients = rng.normal(size=(3, 4)), rng.normal(size=(6, 3, 4))
    parameter = torch.nn.Parameter(torch.tensor(start))
    made = make_optimizer(ParameterList([parameter]), ADADELTA, 6)
    x = start.copy()
    squares = np.zeros((3, 4))
    steps = np.zeros((3, 4))
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        made["optimizer"].step()
        made["lr_scheduler"]["scheduler"].step()
        squares = 0.95 * squares + 0.05 * gradient**2
        step = -np.sqrt(steps + 1e-6) / np.sqrt(squares + 1e-6) * gradient
        steps = 0.95 * steps + 0.05 * step**2
        x += step
    np.testing.assert_allclose(parameter.detach().numpy(), x, rtol=1e-10)


def test_adam_equals_the_paper():
    options = {"betas": [0.8, 0.9], "eps": 1e-8}
    rule = OptimizerConfig(**ADAM, lr=0.01, options=options)
    rng = np.random.default_rng(3)
    start, gradients = rng.normal(size=5), rng.normal(size=(4, 5))
    parameter = torch.nn.Parameter(torch.tensor(start))
    made = make_optimizer(ParameterList([parameter]), rule, 4)
    x = start.copy()
    mean = np.zeros(5)
    square = np.zeros(5)
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
        ({"schedule": schedule("constant", warmup=4)}, {0: 0.25, 1: 0.5, 3: 1, 4: 1, 99: 1}),
        ({"schedule": schedule("linear")}, {0: 1, 25: 0.75, 99: 0.01, 100: 0}),
        ({"schedule": schedule("linear", decay_from=0.5)}, {0: 1, 49: 1, 50: 1, 75: 0.5, 99: 0.02}),
        ({"schedule": schedule("linear", warmup=20)}, {9: 0.5, 19: 1, 20: 1, 60: 0.5, 100: 0}),
        ({"schedule": schedule("inverse_sqrt", warmup=4)}, {3: 1, 15: 0.5, 35: 1 / 3}),
        ({"schedule": schedule("inverse_sqrt")}, {0: 1, 3: 0.5, 99: 0.1}),
        (
            {"schedule": schedule("torch.optim.lr_scheduler.StepLR", step_size=30, gamma=0.5)},
            {0: 1, 29: 1, 30: 0.5, 60: 0.25, 90: 0.125},
        ),
    ],
)
def test_learning_rate_schedules(settings, shares):
    found = rates(OptimizerConfig(lr=3.0, **settings), 100, 101)
    assert {update: found[update] / 3 for update in shares} == pytest.approx(shares)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"_target_": "torch.optim.Adamm"}, "optimizer._target_=torch.optim.Adamm: "),
        ({"options": {"rhoo": 0.9}}, "optimizer._target_=torch.optim.Adadelta: "),
        ({**ADAM, "options": {"betas": [0.9]}}, "optimizer._target_=torch.optim.Adam: "),
        ({"schedule": {}}, "optimizer.schedule._target_=None: "),
        ({"schedule": schedule("linear", power=2)}, "optimizer.schedule._target_=nmt.models.opt"),
    ],
)
def test_refuses_bad_optimizer_keys(settings, key):
    with pytest.raises(InputError) as refused:
        make_optimizer(torch.nn.Linear(1, 1), OptimizerConfig(**settings), 10)
    assert str(refused.value).startswith(key)


def test_linear_schedule_needs_max_steps():
    with pytest.raises(
        InputError, match=r"linear: needs the number of updates; set trainer\.max_steps or"
    ):
        rates(OptimizerConfig(schedule=schedule("linear")), -1, 1)


def make_model(scoring, monkeypatch):
    """Returns a model without a Trainer, and a dict in which the model logs values."""
    torch.manual_seed(0)
    sizes = {"hidden": 5, "embedding": 4, "alignment": 7, "maxout": 3}
    scoring = {"_target_": f"nmt.layers.scoring.{scoring}"}
    config = Config(model=ModelConfig(scoring=scoring, init="glorot", **sizes))
    model = build_model(config, 11, 13).double()
    logged = {}
    monkeypatch.setattr(model, "_log_nll", lambda *_: None)
    monkeypatch.setattr(model, "log", lambda name, value, **_: logged.update({name: value}))
    return model, logged


def test_embeddings_have_their_own_learning_rate(monkeypatch):
    """The first step of Adam moves every entry with a gradient by the learning rate."""
    model, _ = make_model("Additive", monkeypatch)
    model.config.optimizer = OptimizerConfig(**ADAM, lr=1e-3, embedding_factor=8.0)
    batch = collate([[4, 5, 0], [6, 0]], [[3, 0], [7, 8, 9, 0]])
    optimizer = model.configure_optimizers()["optimizer"]
    model.training_step(batch, 0)["loss"].backward()
    before = {name: each.detach().clone() for name, each in model.named_parameters()}
    optimizer.step()
    for name, parameter in model.named_parameters():
        rate = 8e-3 if name.endswith("embedding.weight") else 1e-3
        moved = (parameter.detach() - before[name]).abs().max()
        assert float(moved) == pytest.approx(rate, rel=1e-3), name


@pytest.mark.parametrize("limit", [0.0, 1e-3, 1e6])
def test_gradient_is_clipped_to_the_norm(limit, monkeypatch):
    model, logged = make_model("Additive", monkeypatch)
    batch = collate([[4, 5, 0], [6, 0]], [[3, 0], [7, 8, 9, 0]], [0, 1])
    model.training_step(batch, 0)["loss"].backward()
    before = {name: each.grad.numpy().copy() for name, each in model.named_parameters()}
    norm = np.sqrt(sum((gradient**2).sum() for gradient in before.values()))
    model.configure_gradient_clipping(torch.optim.SGD(model.parameters()), limit, "norm")
    assert float(logged["train/gradient_norm"]) == pytest.approx(norm)
    scale = 1.0 if limit == 0 or norm <= limit else limit / norm
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(parameter.grad.numpy(), scale * before[name], rtol=1e-4)
    assert bool(model.finite)
    parameter.grad.view(-1)[0] = torch.nan
    model.configure_gradient_clipping(torch.optim.SGD(model.parameters()), limit, "norm")
    assert not bool(model.finite)


def test_gradient_may_be_clipped_by_value(monkeypatch):
    model, _ = make_model("Additive", monkeypatch)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, -2.0)
    model.configure_gradient_clipping(torch.optim.SGD(model.parameters()), 0.5, "value")
    assert all((parameter.grad == -0.5).all() for parameter in model.parameters())


def test_loss_is_the_mean_over_sentences(monkeypatch):
    model, _ = make_model("Dot", monkeypatch)
    pairs = [([4, 5, 0], [3, 0]), ([6, 0], [7, 8, 9, 0]), ([7, 7, 7, 0], [2, 2, 0])]
    batch = collate([source for source, _ in pairs], [target for _, target in pairs], [0, 1, 2])
    together = model.training_step(batch, 0)
    alone = [float(model(collate([s], [t], [0])).nll.sum().detach()) for s, t in pairs]
    assert float(together["loss"].detach()) == pytest.approx(sum(alone) / 3)


@pytest.mark.parametrize(
    ("options", "dtype", "kernel"),
    [
        ({"rho": 0.9, "eps": 1e-7, "weight_decay": 0.1}, torch.float32, True),
        ({"rho": 0.9, "foreach": True}, torch.float32, False),
        ({}, torch.float64, False),
    ],
)
def test_fused_adadelta_is_chosen_if_supported(options, dtype, kernel):
    pytest.importorskip("triton")
    weights = torch.nn.Linear(3, 1, dtype=dtype)
    made = make_optimizer(weights, OptimizerConfig(lr=0.5, options=options), 1, True)
    assert type(made["optimizer"]).__name__ == ("FusedAdadelta" if kernel else "Adadelta")
    assert made["optimizer"].defaults.items() >= (options | {"lr": 0.5, "foreach": True}).items()


@pytest.mark.parametrize("target", ["torch.optim.Adam", "torch.optim.AdamW"])
def test_schedule_continues_with_another_optimizer(target):
    """The new settings are used. The state of the old optimizer is kept only if the class is the same."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    before = make_optimizer(ParameterList([parameter]), OptimizerConfig(**ADAM, lr=0.5), 10)
    for _ in range(6):
        parameter.grad = torch.ones(1)
        before["optimizer"].step()
    checkpoint = {
        "global_step": 6,
        "optimizer_states": [before["optimizer"].state_dict()],
        "lr_schedulers": [before["lr_scheduler"]["scheduler"].state_dict()],
    }
    rule = OptimizerConfig(target, lr=0.2, options={"eps": 0.3}, schedule=schedule("linear"))
    replace_optimizer(
        checkpoint, make_optimizer(ParameterList([parameter]), rule, 10), target == ADAM["_target_"]
    )
    after = make_optimizer(ParameterList([parameter]), rule, 10)
    after["optimizer"].load_state_dict(checkpoint["optimizer_states"][0])
    after["lr_scheduler"]["scheduler"].load_state_dict(checkpoint["lr_schedulers"][0])
    group = after["optimizer"].param_groups[0]
    assert (group["eps"], group["lr"]) == (0.3, pytest.approx(0.2 * 4 / 10))
    kept = after["optimizer"].state_dict()["state"]
    assert [int(state["step"]) for state in kept.values()] == (
        [6] if target == ADAM["_target_"] else []
    )
    after["optimizer"].step()
    after["lr_scheduler"]["scheduler"].step()
    assert group["lr"] == pytest.approx(0.2 * 3 / 10)
