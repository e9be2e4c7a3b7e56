"""Long short-term memory as the unit of encoder and decoder, against NumPy."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from nmt.layers import LstmUnit, reorder, select
from tests.layers import reference
from tests.layers.nets import SIZES, batch, gradients, make, mixed_precision, sentences
from tests.layers.reference import sigmoid


def step(w, e, h, m, c=None):
    """h' and m', gate by gate."""
    total = w["W"] @ e + w["U"] @ h + w["b"] + (0 if c is None else w["C"] @ c)
    i, f, o, g = np.split(total, 4)
    m = sigmoid(f) * m + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(m), m


def arrays(unit):
    named = {"W": unit.W, "U": unit.U, "b": unit.bias}
    named |= {} if unit.C is None else {"C": unit.C}
    return {name: tensor.detach().numpy() for name, tensor in named.items()}


def read(w, words):
    """h_j of a list of word vectors."""
    h = m = np.zeros(w["U"].shape[1])
    states = []
    for e in words:
        h, m = step(w, e, h, m)
        states.append(h)
    return states


def likelihood(net, source, target):
    """-log p of each word of a pair, by additive attention or from the fixed vector."""
    embedding = net.encoder.embedding.weight.detach().numpy()
    words = [embedding[x] for x in source]
    states = read(arrays(net.encoder.units[0]), words)
    if net.scoring == "none":
        annotations, summary = states, states[-1]
    else:
        back = read(arrays(net.encoder.units[1]), words[::-1])[::-1]
        annotations = [np.concatenate(pair) for pair in zip(states, back, strict=True)]
        summary = back[0]
    net_of = net.decoder
    p = {name: tensor.detach().numpy() for name, tensor in net_of.named_parameters()}
    unit, h = arrays(net_of.unit), np.tanh(p["W_s"] @ summary + p["bias_s"])
    m, before, found = np.zeros(len(h)), np.zeros(SIZES["embedding"]), []
    for y in target:
        c = summary
        if net.scoring != "none":
            w = {name.split(".")[-1]: value for name, value in p.items() if "context." in name}
            weights, _ = reference.attend(w | {"v_a": w["v"]}, "additive", h, annotations)
            c = sum(a * x for a, x in zip(weights, annotations, strict=True))
        r = {name.split(".")[-1]: value for name, value in p.items() if "readout." in name}
        t = r["U_o"] @ h + r["V_o"] @ before + r["C_o"] @ c + r["bias"]
        W_o, bias = net.output.W_o.detach().numpy(), net.output.bias.detach().numpy()
        logits = W_o @ np.maximum(t[0::2], t[1::2]) + bias
        found.append(np.log(np.exp(logits).sum()) - logits[y])
        h, m = step(unit, before, h, m, c)
        before = p["embedding.weight"][y]
    return found


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
@pytest.mark.parametrize("scoring", ["additive", "none"])
def test_both_models_with_it(scoring, recurrence):
    net = make(scoring, recurrence=recurrence, unit=LstmUnit)
    source, source_mask, target, target_mask = batch()
    nll = net(source, source_mask, target, target_mask).nll
    pairs = zip(sentences(source, source_mask), sentences(target, target_mask), strict=True)
    for b, (words, translation) in enumerate(pairs):
        expected = likelihood(net, words, translation)
        np.testing.assert_allclose(nll[b, : len(translation)].detach(), expected, rtol=1e-10)


@pytest.mark.parametrize("state_input", ["previous", "current"])
def test_steps_of_a_search(state_input):
    """Memories are carried, chosen and put in another order with the states that they belong to."""
    net = make(state_input=state_input, unit=LstmUnit)
    source, source_mask, target, target_mask = batch()
    memory = net.encode(source, source_mask)
    readouts = net.decoder(target, target_mask, memory).readout
    state = net.decoder.initial(memory)
    assert state.hidden.shape == (3, 1, 2 * SIZES["hidden"])
    for i in range(target.shape[1]):
        readout, attended = net.decoder.step(state, memory)
        torch.testing.assert_close(readout[:, 0], readouts[:, i])
        state = net.decoder.advance(state, attended, target[:, i : i + 1])
        state = select(select(state, torch.tensor([2, 0, 1])), torch.tensor([1, 2, 0]))
        state = reorder(state, torch.zeros(3, 1, dtype=torch.int64))


def test_padding_freezes_state_and_memory():
    unit = LstmUnit(2, 3)
    state, word = torch.randn(2, 6), torch.randn(2, 2)
    after = unit(state, unit.project(word), real=torch.tensor([True, False]))
    assert torch.equal(after[1], state[1])
    assert (after[0] != state[0]).all()
    net = make(unit=LstmUnit)
    whole = batch()
    nll = net(*whole).nll
    alone = net(*(part[2:, :length] for part, length in zip(whole, (4, 4, 3, 3), strict=True))).nll
    torch.testing.assert_close(alone[0], nll[2, :3])


def test_gradients():
    torch.manual_seed(0)
    unit = LstmUnit(2, 3, context=4).double()
    inputs = [torch.randn(2, size).double().requires_grad_() for size in (6, 2, 4)]
    real = torch.tensor([True, False])

    def run(state, word, context, *_):
        return unit(state, unit.project(word), context, real)

    assert gradcheck(run, (*inputs, *unit.parameters()))


def test_how_it_is_drawn_and_how_many_weights_there_are():
    torch.manual_seed(0)
    unit = LstmUnit(20, 30, context=40)
    assert unit.bias.tolist() == [0.0] * 30 + [1.0] * 30 + [0.0] * 60
    for block in unit.U.chunk(4):
        torch.testing.assert_close(block @ block.t(), torch.eye(30), atol=1e-5, rtol=0)
    assert unit.W.std().item() == pytest.approx(0.01, rel=0.1)
    assert sum(p.numel() for p in unit.parameters()) == 4 * 30 * (20 + 30 + 40 + 1)


def test_its_memory_is_in_32_bits():
    net = make(unit=LstmUnit, dtype=torch.float32)
    words = batch()
    exact = net(*words).nll
    with mixed_precision():
        mixed = net(*words).nll
        state = net.decoder.initial(net.encode(*words[:2]))
    assert state.hidden.dtype == torch.float32
    assert (mixed - exact).abs().max() < 0.1
    mixed.sum().backward()
    assert all(gradient.isfinite().all() for gradient in gradients(net).values())
