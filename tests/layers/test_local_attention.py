"""Attention in a window about a predicted position, against NumPy."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from nmt.layers import (
    Additive,
    Attention,
    AttentionOutput,
    Dot,
    LocalAttention,
    Memory,
    ScaledDot,
    initialise,
)
from tests.layers.nets import batch, make, make_local, mixed_precision
from tests.layers.reference import sigmoid


def example(window, *, scale=1.0):
    """Attention of 7 entries, states of 5, annotations of 6; sentences of 9, 1 and 4 symbols."""
    torch.manual_seed(1)
    attention = LocalAttention(5, 6, 7, ScaledDot(7, 7), window=window).double()
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    annotations = torch.randn(3, 9, 6).double()
    mask = torch.arange(9) < torch.tensor([[9], [1], [4]])
    memory = Memory(annotations, attention.keys(annotations), mask, annotations[:, 0])
    return attention, torch.randn(3, 2, 5).double(), memory


@pytest.mark.parametrize("window", [1, 2, 50])
def test_the_equations(window):
    """Luong et al. (2015), equations 9 and 10, position by position, with a softmax in the window."""
    attention, states, memory = example(window)
    found = attention(states, memory)
    w = {name: p.detach().numpy() for name, p in attention.named_parameters()}
    outside = 0
    for b, length in enumerate(memory.mask.sum(1).tolist()):
        h = memory.annotations[b, :length].numpy()
        for k, s in enumerate(states[b].numpy()):
            p = length * sigmoid(w["v_p"] @ np.tanh(w["W_p"] @ s))
            inside = [j for j in range(1, length + 1) if p - window <= j <= p + window]
            outside += length - len(inside)
            e = {j: (w["W_a"] @ s) @ (w["U_a"] @ h[j - 1]) / np.sqrt(7) for j in inside}
            total = sum(np.exp(value) for value in e.values())
            expected = np.zeros(9)
            for j in inside:
                gauss = np.exp(-((j - p) ** 2) / (2 * (window / 2) ** 2))
                expected[j - 1] = np.exp(e[j]) / total * gauss
            np.testing.assert_allclose(found.weights[b, k].detach(), expected, rtol=1e-10)
            np.testing.assert_allclose(found.log_normaliser[b, k].detach(), np.log(total))
            np.testing.assert_allclose(
                found.context[b, k].detach(), expected[:length] @ h, rtol=1e-9, atol=1e-12
            )
    assert (outside > 0) == (window < 50)


def test_a_wide_window_is_global_attention():
    local, states, memory = example(10_000)
    whole = Attention(5, 6, 7, local.scoring).double()
    for name in ("W_a", "U_a"):
        getattr(whole, name).data = getattr(local, name).data
    torch.testing.assert_close(
        local(states, memory).context, whole(states, memory).context, rtol=1e-5, atol=1e-6
    )


def test_gradients():
    attention, states, memory = example(3, scale=0.5)
    centre = attention.centre(states, memory.mask)
    # finite differences need positions that stay inside the window, or outside
    assert ((centre - centre.round()).abs() > 1e-4).all()

    def run(states, annotations, *_):
        keys = attention.keys(annotations)
        return attention(states, Memory(annotations, keys, memory.mask, memory.summary)).context

    inputs = [x.requires_grad_() for x in (states, memory.annotations)]
    assert gradcheck(run, (*inputs, *attention.parameters()))
    run(*inputs).sum().backward()
    assert all(p.grad.abs().max() > 1e-5 for p in attention.parameters())


@pytest.mark.parametrize("init", ["paper", "glorot"])
def test_how_it_is_drawn(init):
    torch.manual_seed(0)
    attention = LocalAttention(50, 60, 70, Dot(70, 70), init_exponent=-0.5)
    initialise(attention, init)
    deviation = {"paper": 0.01, "glorot": (2 / 120) ** 0.5}[init]
    assert attention.W_p.std().item() == pytest.approx(deviation, rel=0.05)
    assert attention.v_p.any()
    assert sum(p.numel() for p in attention.parameters()) == 70 * (50 + 60) + 70 * 50 + 70
    for window in (0, 2.5, "abc", 10**21, float("nan")):
        with pytest.raises(ValueError, match=f"window is {window!r}; it must be a whole number"):
            LocalAttention(5, 6, 7, Dot(7, 7), window=window)


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
def test_a_whole_model_with_it(recurrence):
    """In a batch and alone, likewise in 16 bits; fused runs the loop under autograd."""
    net = make_local(recurrence=recurrence)
    whole = batch()
    nll = net(*whole).nll
    for b, (s, t) in enumerate(((6, 2), (1, 5), (4, 3))):
        alone = net(*(part[b : b + 1, :n] for part, n in zip(whole, (s, s, t, t), strict=True))).nll
        torch.testing.assert_close(alone[0], nll[b, :t])
    nll.sum().backward()
    assert net.decoder.context.W_p.grad.abs().max() > 1e-6
    with mixed_precision():
        mixed = net.float()(*whole).nll
    assert (mixed - nll).abs().max() < 0.15


def test_what_is_shown_of_a_sentence_are_distributions():
    """Contexts are made with the weights as defined; those of a whole sentence are divided by their sum."""
    net = make_local()
    source, source_mask, target, target_mask = batch()
    forced = net.decoder(target, target_mask, net.encode(source, source_mask))
    torch.testing.assert_close(forced.weights.sum(2), target_mask.double())
    memory = net.encode(source, source_mask)
    state = net.decoder.initial(memory)
    for i in range(target.shape[1]):
        readout, attended = net.decoder.step(state, memory)
        torch.testing.assert_close(readout[:, 0], forced.readout[:, i])
        for b in target_mask[:, i].nonzero().flatten().tolist():
            made, shown = attended.weights[b, 0], forced.weights[b, i]
            assert np.exp(-2) <= made.sum() < 0.99
            torch.testing.assert_close(shown, made / made.sum())
            energies = made.log() + attended.log_normaliser[b, 0]
            torch.testing.assert_close(shown.log() + forced.log_normaliser[b, i], energies)
        state = net.decoder.advance(state, attended, target[:, i : i + 1])


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
def test_weights_that_sum_to_1_are_not_divided_again(recurrence, monkeypatch):
    """Neither rounding nor time is added to global attention."""
    monkeypatch.delattr("nmt.layers.decoder.normalise_rows")
    make(recurrence=recurrence)(*batch())
    with pytest.raises(NameError, match="normalise_rows"):
        make_local(recurrence=recurrence)(*batch())


class Blind(Attention):
    """Attends to nothing in sentences of one symbol, and half in others."""

    normalised = False

    def forward(self, state, memory):
        found = super().forward(state, memory)
        seen = 0.5 * (memory.mask.sum(1) > 1)
        return AttentionOutput.weighted(
            found.weights * seen[:, None, None], found.log_normaliser, memory.annotations
        )


def test_a_step_without_weights_has_no_nan():
    net = make()
    net.decoder.context = Blind(5, 10, 7, Additive(7, 7)).double()
    source, source_mask, target, target_mask = batch()
    forced = net(source, source_mask, target, target_mask)
    expected = target_mask * (source_mask.sum(1, keepdim=True) > 1)
    torch.testing.assert_close(forced.weights.sum(2), expected.double())
    assert forced.log_normaliser.isfinite().all()
