"""An update whose batch is shared out among threads: the same loss and gradients, dropout included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from nmt.config.validation import load
from nmt.data.batch import Batch, pad
from nmt.models import build_model
from nmt.models.shares import FEWEST, shared_loss, shares_of, summed
from tests.helpers.models import small_config

SENTENCES = 3 * FEWEST + 5
SIZES = {"hidden": 20, "embedding": 12, "alignment": 18, "maxout": 14}
VOCABULARIES = 40, 50


def small_model(name, *, recurrence="fused", dropout=0.0):
    config = small_config()
    for size, value in SIZES.items():
        config.size[size] = value
    config.model.recurrence, config.model.dropout = recurrence, dropout
    config.model.init = "glorot"
    if name == "RNNencdec":
        config.model._target_, config.model.title = "nmt.models.RNNencdec", name
        config.model.scoring = config.model.alignment = None
    torch.manual_seed(1)
    return build_model(load(config), *VOCABULARIES)


def batch_of(sentences):
    """Sentences of 2 to 9 symbols on either side."""
    draw = np.random.default_rng(sentences)
    sides = [
        pad([[*draw.integers(2, size, draw.integers(1, 9)), 0] for _ in range(sentences)])
        for size in VOCABULARIES
    ]
    words = sides[1][1].sum()
    weight = torch.tensor(1 / sentences)
    return Batch(*sides[0], *sides[1], torch.arange(sentences), weight, words)


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def step(model, batch, threads, seed=3):
    """What a training step with so many threads gives: loss, gradients, and the random state after."""
    torch.set_num_threads(threads)
    model.zero_grad()
    torch.manual_seed(seed)
    assert shares_of(model, batch) == threads
    made = model.training_step(batch, 0)
    made["loss"].backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return made, gradients, torch.get_rng_state()


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize(
    ("name", "recurrence"),
    [
        ("RNNsearch", "fused"),
        ("RNNsearch", "plain"),
        ("RNNencdec", "fused"),
        ("RNNencdec", "plain"),
    ],
)
def test_shares_give_what_the_whole_gives(name, recurrence, dropout):
    model = small_model(name, recurrence=recurrence, dropout=dropout).train()
    batch = batch_of(SENTENCES)
    one, gradients, state = step(model, batch, 1)
    for threads in (2, 3):
        many, others, after = step(model, batch, threads)
        for key in ("loss", "nll"):
            torch.testing.assert_close(many[key], one[key], rtol=1e-5, atol=0)
        assert many["words"] == one["words"]
        assert many["sentences"] == one["sentences"] == SENTENCES
        assert gradients.keys() == others.keys() == dict(model.named_parameters()).keys()
        for key, gradient in gradients.items():
            apart = torch.linalg.norm(others[key] - gradient)
            assert apart <= 1e-4 * torch.linalg.norm(gradient), (threads, key)
        assert torch.equal(after, state)
        again = step(model, batch, threads)
        assert torch.equal(again[0]["loss"], many["loss"])
        assert all(torch.equal(again[1][key], gradient) for key, gradient in others.items())


def test_dropout_falls_and_falls_elsewhere_with_another_seed():
    model = small_model("RNNsearch", dropout=0.3).train()
    batch = batch_of(SENTENCES)
    losses = [step(model, batch, 3, seed)[0]["loss"] for seed in (1, 1, 2)]
    assert losses[0] == losses[1] != losses[2]
    assert step(model.eval(), batch, 3)[0]["loss"] != losses[0]


def test_micro_batches_add_up_and_weights_scale():
    model = small_model("RNNsearch").train()
    batch = batch_of(SENTENCES)
    _, gradients, _ = step(model, batch, 3)
    half = replace(batch, weight=batch.weight / 2)
    torch.set_num_threads(3)
    model.zero_grad()
    for _ in range(2):
        model.training_step(half, 0)["loss"].backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name])


def test_a_parameter_that_is_not_trained_has_no_gradient():
    model = small_model("RNNsearch").train()
    model.output.bias.requires_grad_(False)
    _, gradients, _ = step(model, batch_of(SENTENCES), 3)
    assert "output.bias" not in gradients
    assert "output.W_o" in gradients


def test_autocast_holds_in_the_shares():
    model = small_model("RNNsearch").train()
    batch = batch_of(SENTENCES)
    with torch.autocast("cpu", torch.bfloat16):
        one, two = (step(model, batch, threads)[0]["nll"] for threads in (1, 3))
    exact = step(model, batch, 1)[0]["nll"]
    torch.testing.assert_close(two, one, rtol=1e-4, atol=0)
    assert abs(two - exact) > 10 * abs(two - one)


def test_the_gradients_are_given_once():
    model = small_model("RNNsearch").train()
    loss = model.training_step(batch_of(SENTENCES), 0)["loss"]
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="given once"):
        loss.backward()


def test_an_error_of_a_share_is_raised():
    def wrong(batch):
        if batch.rows[0] > 0:
            raise ValueError("a share")
        return weight * batch.source.sum()

    weight = nn.Parameter(torch.ones(()))
    with pytest.raises(ValueError, match="a share"):
        shared_loss(wrong, batch_of(SENTENCES), 2, [weight])


@pytest.mark.parametrize(
    ("sentences", "shares"), [(1, 1), (FEWEST, 1), (2 * FEWEST, 2), (100 * FEWEST, 3)]
)
def test_shares_have_sentences_enough(sentences, shares):
    batch = batch_of(2)
    rows = torch.zeros(sentences, dtype=torch.int64)
    assert shares_of(small_model("RNNsearch"), replace(batch, rows=rows)) == shares


def test_noise_of_ones_own_is_not_shared_out():
    """Threads that draw from the one generator of torch would draw in no certain order."""
    model = small_model("RNNsearch", dropout=0.3)
    assert shares_of(model, batch_of(SENTENCES)) == 3
    model.mine = nn.Dropout(0.5)
    assert shares_of(model, batch_of(SENTENCES)) == 1
    model.mine = nn.Dropout(0.0)
    assert shares_of(model, batch_of(SENTENCES)) == 3


def test_gradients_that_autograd_shares_are_added_up_apart():
    shared, wide = torch.ones(2), torch.ones(()).expand(3)
    one = [shared, shared, wide, None, None, torch.ones(1)]
    two = [torch.ones(2), torch.ones(2), torch.ones(3), None, torch.ones(1), None]
    found = summed([one, two, two])
    assert [None if each is None else each.tolist() for each in found] == [
        [3, 3], [3, 3], [3, 3, 3], None, [2], [1],
    ]  # fmt: skip
    assert shared.tolist() == [1, 1]
