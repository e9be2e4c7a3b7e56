"""An update whose batch is shared out among threads: the same loss and gradients, dropout included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from nmt.config.validation import load
from nmt.data.batch import Batch, pad
from nmt.layers.dropout import BatchShare, Dropout, share_of_batch, time_first
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
        return weight.sum() * batch.source.sum()

    model = nn.Linear(1, 1)
    weight = model.weight
    with pytest.raises(ValueError, match="a share"):
        shared_loss(model, wrong, batch_of(SENTENCES))


@pytest.mark.parametrize(
    ("sentences", "shares"), [(1, 1), (FEWEST, 1), (2 * FEWEST, 2), (100 * FEWEST, 3)]
)
def test_shares_have_sentences_enough(sentences, shares):
    batch = batch_of(2)
    rows = torch.zeros(sentences, dtype=torch.int64)
    assert shares_of(small_model("RNNsearch"), replace(batch, rows=rows)) == shares


class Noisy(nn.Module):
    """Draws from the one generator of torch, which threads would do in no certain order."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.size = encoder, encoder.size

    def forward(self, source, mask):
        annotations, summary = self.encoder(source, mask)
        return nn.functional.dropout(annotations, 0.5, self.training), summary


def test_noise_of_ones_own_is_not_shared_out():
    """What was computed by shares is computed anew in one piece, and so is every update from then on."""
    model, batch = small_model("RNNsearch", dropout=0.3).train(), batch_of(SENTENCES)
    model.encoder = Noisy(model.encoder)
    losses, states = {}, {}
    for threads in (1, 3):
        torch.set_num_threads(threads)
        torch.manual_seed(2)
        losses[threads] = [model.training_step(batch, 0)["loss"] for _ in range(2)]
        states[threads] = torch.get_rng_state()
    assert losses[1] == losses[3]
    assert losses[1][0] != losses[1][1]
    assert torch.equal(states[1], states[3])
    assert shares_of(model, batch) == 1


def test_hooks_are_called_once():
    model, batch = small_model("RNNsearch").train(), batch_of(SENTENCES)
    assert shares_of(model, batch) == 3
    handle = model.output.bias.register_hook(lambda gradient: gradient / 2)
    assert shares_of(model, batch) == 1
    handle.remove()
    assert shares_of(model, batch) == 3
    handle = model.encoder.register_forward_hook(lambda *_: None)
    assert shares_of(model, batch) == 1
    handle.remove()


def test_without_gradients_nothing_is_differentiated():
    model, batch = small_model("RNNsearch"), batch_of(SENTENCES)
    expected = step(model, batch, 1)[0]["loss"]
    torch.set_num_threads(3)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            torch.testing.assert_close(model.training_step(batch, 0)["loss"], expected.detach())
    model.requires_grad_(False)
    torch.testing.assert_close(model.training_step(batch, 0)["loss"], expected.detach())


def test_many_threads_give_the_same_bits_in_bf16():
    """Of a loop under autograd, too, whose weights autocast casts for all threads."""
    model, batch = small_model("RNNsearch", recurrence="plain").train(), batch_of(8 * FEWEST)
    found = []
    for _ in range(4):
        with torch.autocast("cpu", torch.bfloat16):
            found.append(step(model, batch, 8)[1])
    for other in found[1:]:
        assert all(torch.equal(other[name], gradient) for name, gradient in found[0].items())


def test_a_scoring_function_that_draws_noise_is_refused_in_shares_too():
    class Scoring(nn.Module):
        def __init__(self):
            super().__init__()
            self.dropout = Dropout(0.5)

        def forward(self, query, keys):
            return self.dropout(query) @ keys.transpose(1, 2)[:, : query.shape[2]]

    model = small_model("RNNsearch").train()
    model.decoder.context.scoring = Scoring()
    with pytest.raises(RuntimeError, match="draws random numbers"):
        model.training_step(batch_of(SENTENCES), 0)


def test_a_tensor_without_the_sentences_of_the_share_is_refused():
    share = BatchShare(0, 3, 6, torch.Generator())
    with share_of_batch(share):
        assert Dropout(0.5)(torch.ones(3, 2)).shape == (3, 2)
        assert Dropout(1.0)(torch.ones(3, 2)).tolist() == [[0, 0]] * 3
        with time_first():
            assert Dropout(0.5)(torch.ones(4, 3, 2)).shape == (4, 3, 2)
        with pytest.raises(
            ValueError, match=r"dropout of \(1, 2\): dimension 0 has not 3 sentences"
        ):
            Dropout(0.5)(torch.ones(1, 2))


def test_gradients_that_autograd_shares_are_added_up_apart():
    shared, wide = torch.ones(2), torch.ones(()).expand(3)
    whole = torch.ones(3)
    one = [shared, shared, wide, None, None, torch.ones(1), whole, whole[2:]]
    two = [torch.ones(2), torch.ones(2), torch.ones(3), None, torch.ones(1), None]
    two += [torch.ones(3), torch.ones(1)]
    found = summed([one, two, two])
    assert [None if each is None else each.tolist() for each in found] == [
        [3, 3], [3, 3], [3, 3, 3], None, [2], [1], [3, 3, 3], [3],
    ]  # fmt: skip
    assert shared.tolist() == [1, 1]
