"""Scoring functions, local attention, and replaced attention weights."""

import numpy as np
import pytest
import torch
from torch import nn

from nmt.config.schema import INTERVENTIONS
from nmt.layers import (
    Additive,
    Attention,
    Cosine,
    Dot,
    Intervention,
    LocalAttention,
    Memory,
    ScaledDot,
)
from tests.layers import reference
from tests.layers.nets import batch, make, mixed_precision


@pytest.mark.parametrize("scoring", [Additive, Dot, ScaledDot, Cosine])
def test_scores_are_float32_under_mixed_precision(scoring):
    """Scores must be float32: near 100, bf16 has steps of 1/2, which could change the most attended word."""
    torch.manual_seed(0)
    function = scoring(64, 64)
    torch.nn.init.normal_(getattr(function, "v", torch.empty(1)), std=8.0)
    torch.nn.init.constant_(getattr(function, "log_scale", torch.empty(1)), 5.0)
    attention = Attention(64, 64, 64, function)
    torch.nn.init.eye_(attention.W_a)
    query, keys = (4 * torch.randn(2, length, 64).bfloat16() for length in (3, 5))
    with mixed_precision():
        scores = attention.scores(query.float(), keys)
    exact = function.double()(query.double(), keys.double())
    assert scores.dtype == torch.float32
    assert exact.abs().max() > 20
    torch.testing.assert_close(scores.double(), exact, rtol=1e-5, atol=1e-3)


def test_refuses_scores_of_a_wrong_shape():
    """Without the check, scores of this shape would be broadcast without an error."""

    class Summed(nn.Module):
        def __init__(self, query_size, key_size):
            super().__init__()

        def forward(self, query, keys):
            return keys.sum(2, keepdim=True).transpose(1, 2)[..., :1]

    with pytest.raises(ValueError, match=r"Summed: scores have the shape \(3, 1, 1\), not"):
        make(Summed)(*batch())


@pytest.mark.parametrize("window", [1, 2, 50])
def test_local_attention_masks_outside_its_window(window):
    """Compares each position with equations 9 and 10 of Luong et al. (2015), with a softmax over the window."""
    torch.manual_seed(1)
    attention = LocalAttention(5, 6, 7, ScaledDot(7, 7), window=window).double()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    annotations = torch.randn(3, 9, 6).double()
    states = torch.randn(3, 2, 5).double()
    mask = torch.arange(9) < torch.tensor([[9], [1], [4]])
    memory = Memory(annotations, attention.keys(annotations), mask, annotations[:, 0])
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


@pytest.mark.parametrize("kind", INTERVENTIONS[1:])  # the first is the trained attention
def test_interventions_replace_weights(kind):
    net = make()
    memory = net.encode(*batch()[:2])
    states = net.decoder.initial(memory).hidden
    states = torch.cat([states, -states], 1)
    trained = net.decoder.context(states, memory)
    found = Intervention(net.decoder.context, kind)(states, memory)
    assert torch.equal(found.log_normaliser, trained.log_normaliser)
    torch.testing.assert_close(found.context, found.weights @ memory.annotations)
    for b, length in enumerate(memory.mask.sum(1).tolist()):
        before = trained.weights[b, :, :length]
        after = found.weights[b, :, :length]
        assert not found.weights[b, :, length:].any()
        expected = {
            "uniform": torch.full_like(before, 1 / length),
            "argmax": (before == before.amax(1, keepdim=True)).double(),
            "shifted": before.roll(1, 1),
        }
        torch.testing.assert_close(after, expected[kind])


def test_fused_decoder_uses_replaced_weights():
    found = []
    for recurrence in ("plain", "fused"):
        net = make(recurrence=recurrence)
        trained = net(*batch()).nll
        net.decoder.context = Intervention(net.decoder.context, "shifted")
        found.append(net(*batch()).nll)
        assert (found[-1] - trained).abs().max() > 1e-3
    torch.testing.assert_close(*found)


def test_window_is_positive():
    with pytest.raises(ValueError, match="window is 0"):
        LocalAttention(5, 6, 7, Dot(7, 7), window=0)
