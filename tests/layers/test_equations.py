"""Each layer against an independent NumPy transcription of its equation (`reference.py`)."""

import numpy as np
import pytest
import torch

from nmt.layers import Additive, Dot, GatedUnit, Readout, ScaledDot
from tests.layers import reference
from tests.layers.nets import KINDS, batch, make


def sentences(words, mask):
    return [row[real].tolist() for row, real in zip(words, mask, strict=True)]


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
@pytest.mark.parametrize(("scoring", "state_input"), KINDS)
def test_whole_model_is_the_papers(scoring, state_input, recurrence):
    net = make(scoring, state_input, recurrence)
    source, source_mask, target, target_mask = batch()
    nll, forced = net(source, source_mask, target, target_mask)
    weights = reference.weights_of(net)
    encode = reference.forward_only if scoring == "none" else reference.bidirectional
    pairs = zip(sentences(source, source_mask), sentences(target, target_mask), strict=True)
    for b, (words, translation) in enumerate(pairs):
        annotations, summary = encode(weights, words)
        expected, attention, log_z = reference.decode(
            weights, scoring, state_input, annotations, summary, translation
        )
        length = len(translation)
        np.testing.assert_allclose(nll[b, :length].detach(), expected, rtol=1e-10)
        assert not nll[b, length:].any()
        if scoring == "none":
            assert forced.weights is None
            assert forced.log_normaliser is None
            continue
        found = forced.weights[b].detach()
        np.testing.assert_allclose(found[:length, : len(words)], attention, rtol=1e-10)
        assert not found[:, len(words) :].any()
        assert not found[length:].any()
        np.testing.assert_allclose(forced.log_normaliser[b, :length].detach(), log_z, atol=1e-10)


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
@pytest.mark.parametrize("scoring", ["additive", "none"])
def test_encoder_is_the_papers(scoring, recurrence):
    net = make(scoring, recurrence=recurrence)
    source, mask, *_ = batch()
    annotations, summary = net.encoder(source, mask)
    encode = reference.forward_only if scoring == "none" else reference.bidirectional
    for b, words in enumerate(sentences(source, mask)):
        expected, last = encode(reference.weights_of(net), words)
        np.testing.assert_allclose(annotations[b, : len(words)].detach(), expected, atol=1e-12)
        np.testing.assert_allclose(summary[b].detach(), last, atol=1e-12)


def test_reset_acts_before_the_recurrent_product():
    """`torch.nn.GRU` with the same weights gives something else."""
    unit = GatedUnit(2, 3).double()
    torch.nn.init.normal_(unit.bias)
    torch.nn.init.normal_(unit.W)
    state, word = torch.randn(4, 3).double(), torch.randn(4, 2).double()
    n = 3
    z, r, candidate = unit.project(word).chunk(3, 1)
    z = torch.sigmoid(z + state @ unit.U_gates[:n].t())
    r = torch.sigmoid(r + state @ unit.U_gates[n:].t())
    after = torch.tanh(candidate + r * (state @ unit.U.t()))
    before = torch.tanh(candidate + (r * state) @ unit.U.t())
    found = unit(state, unit.project(word))
    torch.testing.assert_close(found, (1 - z) * state + z * before)
    assert (found - ((1 - z) * state + z * after)).abs().max() > 1e-2


def test_padding_freezes_the_state_exactly():
    unit = GatedUnit(2, 3)
    state, word = torch.randn(2, 3), torch.randn(2, 2)
    after = unit(state, unit.project(word), real=torch.tensor([True, False]))
    assert torch.equal(after[1], state[1])
    assert not torch.equal(after[0], state[0])


def test_scores_of_several_queries():
    torch.manual_seed(0)
    query, keys = torch.randn(2, 3, 5).double(), torch.randn(2, 4, 5).double()
    additive = Additive(5).double()
    torch.nn.init.normal_(additive.v)
    for scoring, kind in ((additive, "additive"), (Dot(5), "dot"), (ScaledDot(5), "scaled_dot")):
        scores = scoring(query, keys)
        assert scores.shape == (2, 3, 4)
        weights = {"v_a": additive.v.detach().numpy()}
        expected = [
            [[reference.score(weights, kind, q, k) for k in ks] for q in qs]
            for qs, ks in zip(query.numpy(), keys.numpy(), strict=True)
        ]
        np.testing.assert_allclose(scores.detach(), expected, rtol=1e-12)


def test_maxout_takes_the_larger_of_neighbours():
    readout = Readout(hidden=2, embedding=1, context=1, maxout=2)
    with torch.no_grad():
        for matrix in (readout.U_o, readout.V_o, readout.C_o):
            matrix.zero_()
        readout.bias.copy_(torch.tensor([1.0, 5.0, 4.0, 2.0]))
    found = readout(torch.zeros(1, 2), torch.zeros(1, 1), torch.zeros(1, 1))
    assert found.tolist() == [[5.0, 4.0]]
