"""Scoring functions, attention in a window, and weights that are replaced."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from nmt.config.schema import INTERVENTIONS as CONFIGURED
from nmt.layers import (
    Additive,
    Cosine,
    Dot,
    Intervention,
    LocalAttention,
    Memory,
    ScaledDot,
    initialise,
)
from nmt.layers.intervention import INTERVENTIONS
from tests.layers import reference
from tests.layers.nets import batch, make, mixed_precision, sentences


def test_scores_of_several_queries():
    torch.manual_seed(0)
    query, keys = torch.randn(2, 3, 5).double(), torch.randn(2, 4, 5).double()
    additive, cosine = Additive(5, 5).double(), Cosine(5, 5).double()
    torch.nn.init.normal_(additive.v)
    weights = {"v_a": additive.v.detach().numpy(), "log_scale": cosine.log_scale.item()}
    functions = {"additive": additive, "dot": Dot(5, 5), "scaled_dot": ScaledDot(5, 5)}
    for name, scoring in {**functions, "cosine": cosine}.items():
        expected = [
            [[reference.score(weights, name, q, k) for k in ks] for q in qs]
            for qs, ks in zip(query.numpy(), keys.numpy(), strict=True)
        ]
        np.testing.assert_allclose(scoring(query, keys).detach(), expected, rtol=1e-12)


@pytest.mark.parametrize("scoring", [Additive, Dot, ScaledDot, Cosine])
def test_scores_keep_their_digits(scoring):
    """A score of a hundred has a step of 1/2 in bf16: enough to turn the attention round."""
    torch.manual_seed(0)
    function = scoring(64, 64)
    torch.nn.init.normal_(getattr(function, "v", torch.empty(1)), std=8.0)
    torch.nn.init.constant_(getattr(function, "log_scale", torch.empty(1)), 5.0)
    query, keys = (4 * torch.randn(2, length, 64).bfloat16() for length in (3, 5))
    with mixed_precision():
        scores = function(query, keys)
    exact = function.double()(query.double(), keys.double())
    assert scores.dtype == torch.float32
    assert exact.abs().max() > 20
    torch.testing.assert_close(scores.double(), exact, rtol=1e-5, atol=1e-3)


def test_a_cosine_with_zeros_has_a_gradient():
    torch.manual_seed(0)
    function = Cosine(6, 6).double()
    query, keys = torch.randn(2, 3, 6).double().requires_grad_(), torch.randn(2, 4, 6).double()
    keys[0, 1] = 0
    scores = function(query, keys)
    assert not scores[0, :, 1].any()
    scores.sum().backward()
    assert query.grad.isfinite().all()


def test_scores_of_a_wrong_shape_are_refused():
    """They could be broadcast."""

    class Summed(nn.Module):
        def __init__(self, query_size, key_size):
            super().__init__()

        def forward(self, query, keys):
            return keys.sum(2, keepdim=True).transpose(1, 2)[..., :1]

    with pytest.raises(ValueError, match=r"Summed: scores have the shape \(3, 1, 1\), not"):
        make(Summed)(*batch())


def windows(window):
    """Attention of 7 entries, states of 5, annotations of 6; sentences of 9, 1 and 4 symbols."""
    torch.manual_seed(1)
    attention = LocalAttention(5, 6, 7, ScaledDot(7, 7), window=window).double()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    annotations = torch.randn(3, 9, 6).double()
    mask = torch.arange(9) < torch.tensor([[9], [1], [4]])
    memory = Memory(annotations, attention.keys(annotations), mask, annotations[:, 0])
    return attention, torch.randn(3, 2, 5).double(), memory


@pytest.mark.parametrize("window", [1, 2, 50])
def test_a_window(window):
    """Luong et al. (2015), equations 9 and 10, position by position, with a softmax in the window."""
    attention, states, memory = windows(window)
    found = attention(states, memory)
    w = {name: p.detach().numpy() for name, p in attention.named_parameters()}
    outside = 0
    for b, length in enumerate(memory.mask.sum(1).tolist()):
        h = memory.annotations[b, :length].numpy()
        for k, s in enumerate(states[b].numpy()):
            p = length * reference.sigmoid(w["v_p"] @ np.tanh(w["W_p"] @ s))
            inside = [j for j in range(1, length + 1) if p - window <= j <= p + window]
            outside += length - len(inside)
            e = {j: (w["W_a"] @ s) @ (w["U_a"] @ h[j - 1]) / np.sqrt(7) for j in inside}
            total = sum(np.exp(value) for value in e.values())
            alpha = np.zeros(length)
            for j in inside:
                gauss = np.exp(-((j - p) ** 2) / (2 * (window / 2) ** 2))
                alpha[j - 1] = np.exp(e[j]) / total * gauss
            context = found.context[b, k].detach()
            np.testing.assert_allclose(context, alpha @ h, rtol=1e-9, atol=1e-12)
            shown = found.weights[b, k, :length].detach()
            np.testing.assert_allclose(shown, alpha / alpha.sum(), rtol=1e-9)
            log_z = np.log(total) + np.log(alpha.sum())
            np.testing.assert_allclose(found.log_normaliser[b, k].detach(), log_z)
    assert (outside > 0) == (window < 50)


def test_gradients_of_a_window():
    attention, states, memory = windows(3)
    centre = attention.centre(states, memory.mask)
    # finite differences need positions that stay inside the window, or outside
    assert ((centre - centre.round()).abs() > 1e-4).all()

    def run(states, annotations, *_):
        keys = attention.keys(annotations)
        return attention(states, Memory(annotations, keys, memory.mask, memory.summary)).context

    inputs = [x.requires_grad_() for x in (states, memory.annotations)]
    assert gradcheck(run, (*inputs, *attention.parameters()))


@pytest.mark.parametrize("kind", INTERVENTIONS)
def test_replaced_weights(kind):
    net = make()
    memory = net.encode(*batch()[:2])
    states = net.decoder.initial(memory).hidden
    states = torch.cat([states, -states], 1)
    trained = net.decoder.context(states, memory)
    found = Intervention(net.decoder.context, kind)(states, memory)
    assert torch.equal(found.log_normaliser, trained.log_normaliser)
    torch.testing.assert_close(found.context, found.weights @ memory.annotations)
    for b, length in enumerate(memory.mask.sum(1).tolist()):
        before, after = trained.weights[b, :, :length], found.weights[b, :, :length]
        assert not found.weights[b, :, length:].any()
        expected = {
            "uniform": torch.full_like(before, 1 / length),
            "argmax": (before == before.amax(1, keepdim=True)).double(),
            "shifted": before.roll(1, 1),
        }
        torch.testing.assert_close(after, expected[kind])


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
@pytest.mark.parametrize("kind", INTERVENTIONS)
def test_a_sentence_with_replaced_weights_is_read_as_it_is_alone(kind, recurrence):
    """A fused decoder whose context is replaced takes the new weights."""
    net = make(recurrence=recurrence)
    trained = net(*batch()).nll
    net.decoder.context = Intervention(net.decoder.context, kind)
    source, source_mask, target, target_mask = batch()
    together = net(source, source_mask, target, target_mask).nll
    assert (together - trained).abs().max() > 1e-3
    pairs = zip(sentences(source, source_mask), sentences(target, target_mask), strict=True)
    for b, (words, translation) in enumerate(pairs):
        parts = [torch.tensor([words]), torch.tensor([translation])]
        masks = [torch.ones_like(part, dtype=torch.bool) for part in parts]
        alone = net(parts[0], masks[0], parts[1], masks[1]).nll
        torch.testing.assert_close(together[b, : len(translation)], alone[0])


def test_unknown_options_are_refused():
    with pytest.raises(ValueError, match="'random'; it must be one of uniform, argmax"):
        Intervention(make().decoder.context, "random")
    with pytest.raises(ValueError, match="window is 0"):
        LocalAttention(5, 6, 7, Dot(7, 7), window=0)
    with pytest.raises(ValueError, match="'previous' or 'current'"):
        make(state_input="next")
    with pytest.raises(ValueError, match="one of paper, glorot, wide"):
        initialise(nn.Linear(1, 1), "xavier")
    assert ("as_trained", *INTERVENTIONS) == CONFIGURED
